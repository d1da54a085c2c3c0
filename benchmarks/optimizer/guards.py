"""What each guard of the look-ups is worth: the queries of `benchmarks.optimizer` with all guards,
and without one at a time, in turn: `python -m benchmarks.optimizer.guards [--files 1,20,100,tpch]
[--queries N] [--rounds N] [--scratch FOLDER]`. Prints, for each guard, the sum of the times and the
queries that take at least 1.2 times as long without it, or with it. Answers must be equal.
"""

import argparse
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from time import perf_counter
from typing import Any
from unittest.mock import patch

from pyroaring import BitMap

from benchmarks.build import log
from benchmarks.optimizer.__main__ import SCRATCH, TPCH_QUERIES, prepare
from benchmarks.optimizer.learning import MEASURED, settings
from benchmarks.optimizer.measure import run_query
from benchmarks.optimizer.queries import QUERIES, Query, queries
from benchmarks.optimizer.tables import LAYOUTS, Layout, folder_of
from hudi_index_service import IndexedTable, open_table
from hudi_index_service.optimizer.decide import IndexBackoff
from hudi_index_service.read.slices import bounded_lookups, early_lookups, slice_reader

Without = Callable[[], AbstractContextManager[Any]]

GUARDS: dict[str, Without] = {
    "all": nullcontext,
    "backoff": lambda: patch.object(IndexBackoff, "should_skip", lambda *_: False),
    "weighing": lambda: patch.object(slice_reader, "lookups_are_weighed", lambda *_: False),
    "samples": lambda: patch.object(bounded_lookups, "sampled_rows", lambda *_: BitMap()),
    "looking up together": lambda: patch.object(
        early_lookups, "look_up_together", lambda *_: False
    ),
}
"""Guard → switches it off; ``all`` switches off none. ``weighing`` is step limits, bounds and
samples together."""

CLEARLY = 1.2
_LEAST_SECONDS = 0.2


def times(table: IndexedTable, query: Query, rounds: int) -> dict[str, float]:
    """The median milliseconds with all guards, and without each."""
    ms: dict[str, list[float]] = defaultdict(list)
    answers = {name: _run(table, query, name)[1] for name in GUARDS}
    if len(set(answers.values())) != 1:
        raise SystemExit(f"The answers differ: {query}: {answers}")
    names, started, number = list(GUARDS), perf_counter(), 0
    while number < rounds or (number < 3 * rounds and perf_counter() - started < _LEAST_SECONDS):
        start = number % len(names)
        for name in names[start:] + names[:start]:
            ms[name].append(_run(table, query, name)[0])
        number += 1
    return {name: statistics.median(each) for name, each in ms.items()}


def _run(table: IndexedTable, query: Query, without: str) -> tuple[float, int]:
    with GUARDS[without]():
        measurement = run_query(table, query, "auto")
    return measurement.ms, measurement.rows


def measure(scratch: Path, layout: Layout, most: int, rounds: int) -> list[dict[str, float]]:
    """The times of a layout's queries; the layouts of a group share them."""
    alike = [each for each in LAYOUTS if each.group == layout.group]
    most = min(most, TPCH_QUERIES if layout.group == "tpch" else QUERIES)
    folder, rows = folder_of(scratch, layout), []
    with (
        tempfile.TemporaryDirectory() as state,
        open_table(folder, settings=settings(Path(state), history=False)) as table,
    ):
        for query in queries(folder, layout.kind, MEASURED)[:most]:
            if query.number % len(alike) == alike.index(layout):
                rows.append(times(table, query, rounds))
                if len(rows) % 20 == 0:
                    log(f"{layout.name}: {len(rows)} queries measured")
    return rows


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--files", default="1,20,100,tpch", help="numbers of base files, tpch")
    parser.add_argument("--queries", type=int, default=QUERIES, help="the first so many")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scratch", type=Path, default=SCRATCH, help="folder of the tables")
    arguments = parser.parse_args()
    layouts = [each for each in LAYOUTS if each.group in arguments.files.split(",")]
    prepare(arguments.scratch, layouts)
    by_group: dict[str, list[dict[str, float]]] = defaultdict(list)
    for layout in layouts:
        rows = measure(arguments.scratch, layout, arguments.queries, arguments.rounds)
        by_group[layout.group] += rows
    for group, rows in by_group.items():
        total = sum(row["all"] for row in rows)
        print(f"{group}: {len(rows)} queries, {total:.0f} ms with all guards")
        for name in GUARDS:
            if name == "all":
                continue
            without = sum(row[name] for row in rows)
            slower = sum(row[name] > CLEARLY * row["all"] for row in rows)
            faster = sum(CLEARLY * row[name] < row["all"] for row in rows)
            print(
                f"  without {name:20} {without / total:6.2f} of the time; "
                f"{slower} queries slower, {faster} faster"
            )


if __name__ == "__main__":
    main()
