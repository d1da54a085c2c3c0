"""The effect of the query history: the same queries by cost alone, and by cost and history.

The history contains three other sets of literals of every shape, and records nothing while the
fourth is measured. `q_error` is the factor by which the expected number of rows is too high or too
low.
"""

import statistics
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any
from unittest.mock import patch

from benchmarks.optimizer.measure import Measurement, chosen, q_error, run_query, scan_of, stated
from benchmarks.optimizer.queries import Query
from benchmarks.optimizer.summary import spread
from hudi_index_service import IndexedTable, open_table
from hudi_index_service.config import HistorySettings, Settings
from hudi_index_service.optimizer.history.history import History

LEARNT, MEASURED = (1, 2, 3), 0
"""Sets of literals."""

CLEARLY = 1.2
"""The least speed-up that counts as faster."""

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
    """The default settings, except for the state folder and the history."""
    return Settings(state_folder=state, history=HistorySettings(enabled=history))


def learn(tables: dict[str, IndexedTable], query: Query) -> None:
    """Runs the query, so that the history records it."""
    run_query(tables["history"], query, "auto")


def compared(tables: dict[str, IndexedTable], query: Query, rounds: int) -> Row:
    """One row of the results: both tables in turn, after a round that is not counted."""
    with patch.object(History, "record", lambda *_: None):
        rows = {name: run_query(table, query, "auto").rows for name, table in tables.items()}
        if len(set(rows.values())) != 1:
            raise SystemExit(f"The answers differ: {query}: {rows}")
        names, number = list(tables), 0
        measurements: dict[str, list[Measurement]] = {name: [] for name in names}
        started = perf_counter()
        while number < rounds or (number < 3 * rounds and perf_counter() - started < 0.3):
            for name in names if number % 2 else reversed(names):
                measurements[name].append(run_query(tables[name], query, "auto"))
            number += 1
        result: Row = {
            "number": query.number,
            "rows": rows["cost"],
            "ms": {name: _median(each.ms for each in runs) for name, runs in measurements.items()},
            "cpu_ms": {
                name: _median(each.cpu_ms for each in runs) for name, runs in measurements.items()
            },
            "chosen": {name: chosen(runs[-1].read) for name, runs in measurements.items()},
        }
        estimates = {
            name: stated(scan_of(table, query, "auto").planned().plan)
            for name, table in tables.items()
        }
    complete = {name: estimate for name, estimate in estimates.items() if estimate is not None}
    if len(complete) == len(tables):
        result["q_error"] = {
            name: round(q_error(estimate[1], rows["cost"]), 3)
            for name, estimate in complete.items()
        }
    return result


def _median(values: Iterable[float]) -> float:
    return round(statistics.median(values), 2)


def summary(rows: list[Row]) -> dict[str, Any]:
    """The sums and error distributions over all queries."""
    result: dict[str, Any] = {"queries": len(rows)}
    if not rows:
        return result
    for name in ("cost", "history"):
        errors = [row["q_error"][name] for row in rows if "q_error" in row]
        result[name] = {
            f"total_{kind}": round(sum(row[kind][name] for row in rows))
            for kind in ("ms", "cpu_ms")
        }
        if errors:
            result[name]["q_error"] = spread(errors)
    # By wall and processor time alike: other load on the machine seldom affects both.
    gains = [
        [row[kind]["cost"] / row[kind]["history"] for kind in ("ms", "cpu_ms")] for row in rows
    ]
    result["faster_beyond"] = {str(CLEARLY): sum(min(each) > CLEARLY for each in gains)}
    result["slower_beyond"] = {str(CLEARLY): sum(max(each) < 1 / CLEARLY for each in gains)}
    other = [row for row in rows if row["chosen"]["cost"] != row["chosen"]["history"]]
    result["chosen_otherwise"] = len(other)
    result["faster_by_that"] = sum(
        row["cpu_ms"]["history"] < row["cpu_ms"]["cost"] for row in other
    )
    return result
