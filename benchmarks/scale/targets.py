"""The targets of `benchmarks.scale`; a measurement is None if the run left it out."""

import statistics
from collections.abc import Sequence
from typing import Any

from benchmarks.bench_targets import Target, at_least, at_most
from benchmarks.scale.measure import THREADS
from benchmarks.scale.queries import FEW_FILES

SLOWER_THAN_BOTH = ("OR of three columns", "AND NOT", "a rare word", "a narrow range without order")
"""Queries on lineitem that each have a target of their own."""
STATES = {"kept": "ours", "cache empty": "empty"}
"""Whether pages are kept between queries → the contestant on many small files."""
OF_LINEITEM = {"kept": "filled", "cache empty": "empty"}
"""The same on lineitem, whose pages the default cache cannot keep."""

Row = dict[str, Any]


def targets(results: dict[str, Any]) -> list[Target]:
    """All of them."""
    return [
        *_of_files({each["files"]: each for each in results["files"]}),
        *_of_lineitem(results.get("lineitem", {})),
        *(_of_builds(results) if results["files"] else ()),
    ]


def _row(rows: Sequence[Row], name: str) -> Row:
    empty: Row = {"ms": {}, "over": {"ours": {}, "filled": {}}}
    return next((each for each in rows if each["query"] == name), empty)


def _of_files(by_files: dict[int, Any]) -> list[Target]:
    def rows(files: int, kind: str) -> list[Row]:
        found: list[Row] = by_files.get(files, {}).get(kind, [])
        return found

    def ms(files: int, name: str, kind: str = "queries", who: str = "ours") -> float | None:
        measured: float | None = _row(rows(files, kind), name)["ms"].get(who)
        return measured

    def over_duckdb(files: int, name: str) -> float | None:
        measured: float | None = _row(rows(files, "queries"), name)["over"]["ours"].get("duckdb")
        return measured

    point, narrow, none = "u = x", "a narrow range without order", "no file can match"
    first = {each["query"]: each["over"] for each in by_files.get(1, {}).get("first", [])}
    stored = rows(FEW_FILES, "stored")
    located = "tag_location of 1,000 keys"
    remote = by_files.get(1_000, {}).get("remote", {})
    return [
        at_most("u = x, 1,000 files: ms", 6, ms(1_000, point)),
        at_most("u = x, 1,000 files: over DuckDB", 0.05, over_duckdb(1_000, point)),
        at_most("a narrow range without order, 1,000 files: ms", 25, ms(1_000, narrow)),
        at_most("no file can match, 1,000 files: ms", 4, ms(1_000, none)),
        *(
            at_most(f"{name}, {state}: ms", bound, ms(1_000, name, "by_keys", who))
            for name, bounds in (("key IN (100)", (15, 40)), ("key IN (1,000)", (40, 120)))
            for (state, who), bound in zip(STATES.items(), bounds, strict=True)
        ),
        *(
            at_most(
                f"{each['query']}, 1,000 files, {state}: over DuckDB", bound, _duckdb(each, who)
            )
            for each in rows(1_000, "unindexed")
            for (state, who), bound in zip(STATES.items(), (0.2, 0.7), strict=True)
        ),
        at_most(f"{located}, warm: ms", 50, ms(1_000, located, "by_keys")),
        at_most(f"{located}, whole first process: s", 0.9, _located_first(by_files)),
        at_most("u = x, 10,000 files: ms", 6, ms(10_000, point)),
        at_most("a narrow range without order, 10,000 files: ms", 12, ms(10_000, narrow)),
        at_most("no file can match, 10,000 files: ms", 1.5, ms(10_000, none)),
        *(
            at_most(f"{each['query']}, 10,000 files: over the oracle", 1, _oracle(each))
            for each in rows(10_000, "stopped_early")
        ),
        at_most("10,000 files: anonymous MiB", 350, by_files.get(10_000, {}).get("mib")),
        *(
            at_most(f"{each['query']}: over the oracle", 1.1, _oracle(each))
            for each in rows(1, "may_get_slower")
        ),
        at_most("first row of a process, no JVM: over Lance", 1, _lance(first, "no JVM needed")),
        at_most("first row of a process, Lucene: over Lance", 1.5, _lance(first, "Lucene asked")),
        *(
            at_most(f"values stored, {each['query']}: over Lance", 1, each["over"]["ours"]["lance"])
            for each in stored
        ),
        at_most("remote store, first query of a process: s", 1, remote.get("seconds")),
        at_most("remote store: dependent rounds", 10, remote.get("dependent_rounds")),
        at_most(
            "remote store: requests to the index and base files",
            remote.get("allowed", 18),
            remote.get("own"),
        ),
    ]


def _oracle(row: Row) -> float:
    measured: float = row["over"]["ours"]["oracle"]
    return measured


def _duckdb(row: Row, who: str) -> float:
    measured: float = row["over"][who]["duckdb"]
    return measured


def _located_first(by_files: dict[int, Any]) -> float | None:
    rows = by_files.get(1_000, {}).get("first", [])
    return rows[0]["seconds"]["ours"] if rows else None


def _lance(first: dict[str, Any], name: str) -> float | None:
    measured: float | None = first.get(name, {}).get("lance")
    return measured


def _of_lineitem(lineitem: dict[str, Any]) -> list[Target]:
    rows, filters = lineitem.get("queries", []), lineitem.get("filters", [])

    def as_fast(who: str, other: str) -> list[float]:
        return [1 / each["over"][who][other] for each in rows] or [float("nan")]

    def worst(who: str) -> float | None:
        over = [each["over"][who]["duckdb"] for each in filters]
        return max(over) if over else None

    def of(name: str, other: str | None = None) -> float | None:
        row, who = _row(rows, name), OF_LINEITEM["kept"]
        measured: float | None = row["over"][who].get(other) if other else row["ms"].get(who)
        return measured

    def rate(who: str, threads: int) -> float | None:
        rates: dict[int, float] = lineitem.get("queries_a_second", {}).get(who, {})
        return rates.get(threads)

    bounds = {
        ("kept", "lance"): (3, 0.9),
        ("cache empty", "lance"): (0.7, 0.25),
        ("kept", "duckdb"): (20, 2),
        ("cache empty", "duckdb"): (4, 1.2),
    }
    result = []
    for (state, other), (median, least) in bounds.items():
        ratios = as_fast(OF_LINEITEM[state], other)
        name = f"24 queries on lineitem, {state}: times as fast as {other}"
        result += [
            at_least(f"{name}, median", median, _known(statistics.median(ratios))),
            at_least(f"{name}, worst", least, _known(min(ratios))),
        ]
    for name in SLOWER_THAN_BOTH:
        over = of(name, "lance")
        ratio = 1 / over if over else None
        result.append(at_least(f"{name}, kept: times as fast as lance", 3, _known(ratio)))
    return [
        *result,
        at_most("count of a value: ms", 1, of("count of a value")),
        at_most("count of a month: over lance", 1, of("count of a month", "lance")),
        at_most("filter without index, kept, worst: over duckdb", 0.2, worst("filled")),
        at_most("filter without index, cache empty, worst: over duckdb", 0.7, worst("empty")),
        *(
            at_least(
                f"queries a second by {threads} threads: times lance's",
                4,
                _quotient(rate("filled", threads), rate("lance", threads)),
            )
            for threads in THREADS
        ),
        at_least(
            "queries a second, 8 threads over 1", 1, _quotient(rate("filled", 8), rate("filled", 1))
        ),
        at_most(
            "after the 24 queries: resident MiB",
            700,
            lineitem.get("memory", {}).get("ours", {}).get("resident"),
        ),
    ]


def _of_builds(results: dict[str, Any]) -> list[Target]:
    built, by_statistics = results["build_ms_a_file"], results["unrouted"]
    unrouted_ms = by_statistics["ms"]["ours"] if by_statistics["files"] == 10_000 else None
    return [
        at_most(
            "1,000,000 keys located in 1,000 files: over Spark's join",
            0.2,
            results["located_by_spark"].get("over_join"),
        ),
        at_most("u = x, 10,000 files, without routing: ms", 80, unrouted_ms),
        at_most("building 1,000 files: ms a file", 12, built.get("1000", {}).get("routed")),
        at_most(
            "building 6 files: over a build without routing",
            1.15,
            built.get(str(FEW_FILES), {}).get("over_unrouted"),
        ),
        at_most("routing: bytes a pair", 3.2, results["routing_bytes_a_pair"]),
    ]


def _quotient(above: float | None, below: float | None) -> float | None:
    return None if above is None or not below else round(above / below, 3)


def _known(ratio: float | None) -> float | None:
    return None if ratio is None or ratio != ratio else round(ratio, 3)
