"""What the history of queries adds: the same queries by cost alone, and by cost and history.

The history has seen three sets of other literals of every shape, and learns nothing more while the
fourth is measured. `q_error` is how many times too many or too few rows the plan expects.
"""

import statistics
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any
from unittest.mock import patch

from benchmarks.optimizer.measure import Asked, asked, chosen, q_error, scan_of, stated
from benchmarks.optimizer.queries import Query
from benchmarks.optimizer.summary import spread
from hudi_index_service import IndexedTable, open_table
from hudi_index_service.config import HistorySettings, Settings
from hudi_index_service.optimizer.history.history import History

LEARNT, MEASURED = (1, 2, 3), 0
"""Sets of literals."""

CLEARLY = 1.2
"""So many times as fast counts as faster."""

Row = dict[str, Any]


@contextmanager
def contestants(folder: Path, state: Path) -> Iterator[dict[str, IndexedTable]]:
    """The table as opened without and with a history, which is kept in `state`."""
    with (
        open_table(folder, settings=settings(state, history=False)) as plain,
        open_table(folder, settings=settings(state, history=True)) as learned,
    ):
        yield {"cost": plain, "history": learned}


def settings(state: Path, *, history: bool) -> Settings:
    """The default ones, but for the state folder."""
    return Settings(state_folder=state, history=HistorySettings(enabled=history))


def learn(tables: dict[str, IndexedTable], query: Query) -> None:
    """Asks the query, to be remembered."""
    asked(tables["history"], query, "auto")


def compared(tables: dict[str, IndexedTable], query: Query, rounds: int) -> Row:
    """One row of the results: both in turn, round by round, after one that is not counted."""
    with patch.object(History, "record", lambda *_: None):
        rows = {name: asked(table, query, "auto").rows for name, table in tables.items()}
        if len(set(rows.values())) != 1:
            raise SystemExit(f"The answers differ: {query}: {rows}")
        names, number = list(tables), 0
        took: dict[str, list[Asked]] = {name: [] for name in names}
        started = perf_counter()
        while number < rounds or (number < 3 * rounds and perf_counter() - started < 0.3):
            for name in names if number % 2 else reversed(names):
                took[name].append(asked(tables[name], query, "auto"))
            number += 1
        found: Row = {
            "number": query.number,
            "rows": rows["cost"],
            "ms": {name: _median(each.ms for each in runs) for name, runs in took.items()},
            "cpu_ms": {name: _median(each.cpu_ms for each in runs) for name, runs in took.items()},
            "chosen": {name: chosen(runs[-1].read) for name, runs in took.items()},
        }
        guesses = {
            name: stated(scan_of(table, query, "auto").planned().plan)
            for name, table in tables.items()
        }
    known = {name: guess for name, guess in guesses.items() if guess is not None}
    if len(known) == len(tables):
        found["q_error"] = {
            name: round(q_error(guess[1], rows["cost"]), 3) for name, guess in known.items()
        }
    return found


def _median(values: Iterable[float]) -> float:
    return round(statistics.median(values), 2)


def summary(rows: list[Row]) -> dict[str, Any]:
    """What all of them say together."""
    found: dict[str, Any] = {"queries": len(rows)}
    if not rows:
        return found
    for name in ("cost", "history"):
        errors = [row["q_error"][name] for row in rows if "q_error" in row]
        found[name] = {
            f"total_{kind}": round(sum(row[kind][name] for row in rows))
            for kind in ("ms", "cpu_ms")
        }
        if errors:
            found[name]["q_error"] = spread(errors)
    # By the clock and by processors' time alike: other load on the machine seldom turns both.
    gains = [
        [row[kind]["cost"] / row[kind]["history"] for kind in ("ms", "cpu_ms")] for row in rows
    ]
    found["faster_beyond"] = {str(CLEARLY): sum(min(each) > CLEARLY for each in gains)}
    found["slower_beyond"] = {str(CLEARLY): sum(max(each) < 1 / CLEARLY for each in gains)}
    other = [row for row in rows if row["chosen"]["cost"] != row["chosen"]["history"]]
    found["chosen_otherwise"] = len(other)
    found["faster_by_that"] = sum(row["cpu_ms"]["history"] < row["cpu_ms"]["cost"] for row in other)
    return found
