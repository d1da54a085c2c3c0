"""The time of one query as the optimizer chooses, always by index, and always by scan."""

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter, process_time
from typing import Any
from unittest.mock import patch

from benchmarks.optimizer.queries import Query
from hudi_index_service import IndexedTable
from hudi_index_service.config import Settings
from hudi_index_service.errors import IndexRequired
from hudi_index_service.optimizer.plan import Access, QueryPlan
from hudi_index_service.read import planner
from hudi_index_service.read.scan import Scan
from hudi_index_service.read.statistics import ReadStatistics

Cover = Callable[[QueryPlan], QueryPlan]

WAYS = {"auto": "auto", "index": "require", "scan": "never"}
LEAST_SECONDS, MOST_ROUNDS = 0.3, 15
SLOW_MS = 1_000
"""A query that takes longer needs no second run to be warm."""
SHORT_MS = 20
"""A way that takes less is run once before each measurement."""
DOUBTFUL = 1.15
"""A query with a greater ratio gets three times the rounds, all of which count."""
HOPELESS = 4.0
"""A way that takes this many times as long as the best, and over a second, runs only once more."""
PLANS = 7


def scan_of(table: IndexedTable, query: Query, use_index: str) -> Scan:
    """The query, not yet run."""
    columns = list(query.columns) or None
    return table.scan(query.where, columns=columns, use_index=use_index)


@dataclass(frozen=True)
class Measurement:
    """One run of a query: milliseconds of wall and processor time, rows, what was read."""

    ms: float
    cpu_ms: float
    rows: int
    read: ReadStatistics


def run_query(table: IndexedTable, query: Query, way: str) -> Measurement:
    """Runs the query once."""
    scan = scan_of(table, query, WAYS[way])
    started, began = perf_counter(), process_time()
    rows = scan.count() if query.counts else scan.to_arrow().num_rows
    ms, cpu_ms = (perf_counter() - started) * 1000, (process_time() - began) * 1000
    assert scan.statistics is not None, "Spark runs none of these queries"
    return Measurement(ms, cpu_ms, rows, scan.statistics)


def measured(table: IndexedTable, query: Query, rounds: int) -> dict[str, Any]:
    """One row of the results."""
    first: dict[str, Measurement] = {}
    for way in WAYS:
        try:
            first[way] = run_query(table, query, way)
            if first[way].ms < SLOW_MS:
                first[way] = run_query(table, query, way)
        except IndexRequired:  # no index can serve it, or not all of it
            continue
    if len({each.rows for each in first.values()}) != 1:
        raise SystemExit(f"The answers differ: {query}: {first}")
    rows, read = first["auto"].rows, first["auto"].read
    measurements = _alternating(table, query, {way: each.ms for way, each in first.items()}, rounds)
    better = _better(measurements)
    medians = {
        way: statistics.median(each.ms for each in runs) for way, runs in measurements.items()
    }
    cpu = {
        way: statistics.median(each.cpu_ms for each in runs) for way, runs in measurements.items()
    }
    return {
        "number": query.number,
        "kind": query.kind,
        "where": query.where if len(query.where) < 400 else query.where[:400] + " …",
        "asked": "count" if query.counts else ", ".join(query.columns) or "all",
        "rows": rows,
        "chosen": chosen(read),
        "why": next((each.note for each in read.slices if each.note), ""),
        "better": better,
        "ratio": round(_ratio(measurements, better), 3),
        "cpu_ratio": round(cpu["auto"] / min(ms for way, ms in cpu.items() if way != "auto"), 3),
        "ms": {way: round(ms, 2) for way, ms in medians.items()},
        "cpu_ms": {way: round(ms, 2) for way, ms in cpu.items()},
        "rounds": len(measurements["auto"]),
        **_planned(table, query, rows),
    }


def _alternating(
    table: IndexedTable, query: Query, first: dict[str, float], rounds: int
) -> dict[str, list[Measurement]]:
    """The runs of each way; each round starts with the next one. What is short is run once before
    it is measured: right after a scan, which leaves other data in the processor's caches and other
    pages in memory, it takes up to twice as long, whatever the way."""
    best = min(first.values())
    ways = [way for way in first if first[way] < max(SLOW_MS, HOPELESS * best) or way == "auto"]
    measurements: dict[str, list[Measurement]] = defaultdict(list)
    for way in first:
        if way not in ways:
            measurements[way].append(run_query(table, query, way))
    started, number = perf_counter(), 0
    while (
        number < rounds
        or (number < MOST_ROUNDS and perf_counter() - started < LEAST_SECONDS)
        or (number < 3 * rounds and _ratio(measurements, _better(measurements)) > DOUBTFUL)
    ):
        start = number % len(ways)
        for way in ways[start:] + ways[:start]:
            if first[way] < SHORT_MS:
                run_query(table, query, way)
            measurements[way].append(run_query(table, query, way))
        number += 1
    return measurements


def _better(measurements: dict[str, list[Measurement]]) -> str:
    others = [way for way in measurements if way != "auto"]
    return min(others, key=lambda way: statistics.median(each.ms for each in measurements[way]))


def _ratio(measurements: dict[str, list[Measurement]], better: str) -> float:
    """The median over the rounds; the ratio of the medians if a way did not run in each round."""
    auto, other = ([each.ms for each in measurements[way]] for way in ("auto", better))
    if len(other) < len(auto):
        return statistics.median(auto) / statistics.median(other)
    return statistics.median(a / b for a, b in zip(auto, other, strict=True))


def chosen(read: ReadStatistics) -> str:
    """How base files were read, with their numbers."""
    counts = {access.value: read.count(access) for access in (Access.INDEX, Access.SCAN)}
    read_by = [f"{count} {name}" for name, count in counts.items() if count]
    skipped = read.count(Access.SKIP)
    return ", ".join([*read_by, *([f"{skipped} skip"] if skipped else [])])


def _planned(table: IndexedTable, query: Query, rows: int) -> dict[str, Any]:
    """Milliseconds of planning and of the rules alone, and EXPLAIN's estimate of the rows."""
    plans, decisions, coverings = [], [], []
    for _ in range(PLANS):
        scan = scan_of(table, query, "auto")
        with _timed_rules() as spent:
            started = perf_counter()
            scan.planned()
            plans.append((perf_counter() - started) * 1000)
        decisions.append(spent["rules"])
        coverings.append(spent["cover"])
    row: dict[str, Any] = {
        "plan_ms": round(statistics.median(plans), 3),
        "decide_ms": round(statistics.median(decisions), 3),
        "cover_ms": round(statistics.median(coverings), 3),
    }
    plan = scan_of(table, query, "auto").explain().plan
    bounds = None if plan is None else stated(plan)
    if bounds is not None:
        least, expected, most = bounds
        row["stated"] = {"least": least, "expected": round(expected, 1), "most": most}
        row["within"] = least <= rows <= most
        row["q_error"] = round(q_error(expected, rows), 3)
    return row


def stated(plan: QueryPlan) -> tuple[int, float, int] | None:
    """The least, expected and greatest number of rows of all file slices; None if the plan states
    none for some slice."""
    least, expected, most = 0, 0.0, 0
    for each in plan.slices:
        if each.access is Access.SKIP:
            continue
        if each.expected is None:
            return None
        rows = each.expected.rows
        least, expected, most = least + rows.least, expected + rows.expected, most + rows.most
    return least, expected, most


def q_error(expected: float, actual: int) -> float:
    """The factor by which the estimate is too high or too low; numbers below one count as one."""
    one, other = max(expected, 1.0), max(float(actual), 1.0)
    return max(one / other, other / one)


@contextmanager
def _timed_rules() -> Iterator[dict[str, float]]:
    """The milliseconds of the rules in the block, and those of finding entries."""
    spent = {"rules": 0.0, "cover": 0.0}
    optimize = planner.optimize

    def timed(plan: QueryPlan, settings: Settings, cover: Cover, exclude: Cover) -> QueryPlan:
        def covered(plan: QueryPlan) -> QueryPlan:
            with _clocked(spent, "cover"):
                return cover(plan)

        with _clocked(spent, "rules"):
            return optimize(plan, settings, covered, exclude)

    with patch.object(planner, "optimize", timed):
        yield spent
    spent["rules"] -= spent["cover"]


@contextmanager
def _clocked(spent: dict[str, float], what: str) -> Iterator[None]:
    started = perf_counter()
    try:
        yield
    finally:
        spent[what] += (perf_counter() - started) * 1000
