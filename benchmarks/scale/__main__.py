"""The service on tables of one to ten thousand base files: `make bench-scale`.

Contestants, each in a process of its own, run the same queries in turn, each round starting with
the next one, and no condition twice: the service (the table is open, its snapshot revalidated at
each query; planning included; in the mixed queries also with stored values), DuckDB over the
snapshot's base files, and Lance on a copy in its own format with an index on each column. Times
are medians over all conditions; a ratio is the median over the rounds, `spread` its least and
greatest value.

Written to benchmarks/results/scale.json. Tables are kept in the scratch folder. A small run to try
things out: `python -m benchmarks.scale --files 1,6 --rounds 1 --output /tmp/bench`.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.bench_table import ROOT
from benchmarks.bench_targets import Target, at_least, at_most
from benchmarks.build import environment, log
from benchmarks.scale import tables
from benchmarks.scale.building import build_ms_a_file
from benchmarks.scale.contestant import Contestant
from benchmarks.scale.joined import KEYS, located_over_join
from benchmarks.scale.queries import (
    FEW_FILES,
    UNINDEXED,
    Query,
    long_in,
    look_ups,
    mixed,
    some_keys,
)
from benchmarks.scale.remote import first_remote_query
from benchmarks.scale.routing import routing_bytes_a_pair, without_runs
from hudi_index_service import open_table

RESULTS = ROOT / "benchmarks" / "results"
SCRATCH = Path(tempfile.gettempdir()) / "hudi-index-bench-scale"
A_ROUND = 11
"""Conditions in each round; a contestant that is slow runs only the first three of them."""
SLOW_MS = 50
STORED_QUERIES = (
    *("record key", "point, two columns", "point, all columns"),
    *("narrow range, no order", "narrow range, in order", "range of 1 %"),
)
"""Mixed queries for which an index that stores values has a target."""


def in_turn(
    contestants: dict[str, Contestant], query: Query, rounds: int, conditions: int = A_ROUND
) -> dict[str, Any]:
    """One row of the results."""
    ms: dict[str, list[float]] = defaultdict(list)
    rows: dict[str, int] = defaultdict(int)
    names = [name for name in contestants if name != "lance" or query.lance]
    reading_ms: list[float] = []
    limits = dict.fromkeys(names, conditions)
    for name in names:  # not counted: virtual machines compile
        first = contestants[name].run(query.wheres(3, "warm"), **query.options())["ms"]
        if min(first) < SLOW_MS:
            contestants[name].run(query.wheres(10 * conditions, "warmer"), **query.options())
        else:
            limits[name] = min(3, conditions)
    medians: dict[str, list[float]] = defaultdict(list)
    for number in range(rounds):
        start = number % len(names)
        for name in names[start:] + names[:start]:
            wheres = query.wheres(conditions, str(number))[: limits[name]]
            response = contestants[name].run(wheres, **query.options())
            ms[name] += response["ms"]
            reading_ms += response["reading_ms"] if name == "ours" else []
            medians[name].append(statistics.median(response["ms"]))
            rows[name] += response["rows"]
    ratios = {
        name: [ours / theirs for ours, theirs in zip(medians["ours"], each, strict=True)]
        for name, each in medians.items()
        if name != "ours"
    }
    row = {
        "query": query.name,
        "ms": {name: round(statistics.median(each), 3) for name, each in ms.items()},
        "p90_ms": round(sorted(ms["ours"])[int(0.9 * len(ms["ours"]))], 3),
        "reading_ms": round(statistics.median(reading_ms), 3),
        "rows": dict(rows),
        "over": {name: round(statistics.median(each), 4) for name, each in ratios.items()},
        "spread": {
            name: [round(min(each), 4), round(max(each), 4)] for name, each in ratios.items()
        },
    }
    alike = [name for name in names if limits[name] == limits["ours"]]  # the same conditions
    if any(rows[name] != rows["ours"] for name in alike):
        raise SystemExit(f"{query.name}: other numbers of rows: {dict(rows)}")
    log(f"{query.name}: {row['ms']}, over {row['over']}")
    return row


def of_files(scratch: Path, files: int, rounds: int) -> dict[str, Any]:
    """The queries on the table of so many base files."""
    table = tables.folder_of(scratch, files)
    names = ("ours", "duckdb", "lance") if files == FEW_FILES else ("ours", "duckdb")
    log(f"{files} base files: starting {', '.join(names)} …")
    contestants = {name: Contestant(name, table) for name in names}
    try:
        results: dict[str, Any] = {"files": files}
        results["queries"] = [in_turn(contestants, each, rounds) for each in look_ups(files)]
        if files == 1:
            results["queries"] += [in_turn(contestants, each, rounds, 3) for each in UNINDEXED]
        if files == FEW_FILES:
            results["queries"].append(in_turn(contestants, long_in(files), rounds, 3))
            stored = Contestant("ours", tables.with_stored_values(scratch, files))
            several = {**contestants, "stored": stored}
            results["mixed"] = [in_turn(several, each, rounds) for each in mixed(table)]
            results["stored_over_lance"] = {
                each["query"]: round(each["ms"]["stored"] / each["ms"]["lance"], 2)
                for each in results["mixed"]
            }
            stored.close()
            results["far_behind_lance"] = far_behind_lance(results["mixed"])
            results |= by_threads(contestants["ours"], files, rounds)
        last = contestants["ours"].run(look_ups(files)[0].wheres(1, "memory"))
        results["anonymous_mib"] = round(last["anonymous_mib"])
    finally:
        for contestant in contestants.values():
            contestant.close()
    results["first_query_seconds"] = first_query(table, files, rounds)
    return results


def by_threads(ours: Contestant, files: int, rounds: int) -> dict[str, dict[int, float]]:
    """``queries_a_second`` and ``busy_cores`` by the number of threads that share the queries. One
    query alone decodes pages on all cores, so more threads gain only what it leaves idle."""
    rates: dict[int, list[float]] = defaultdict(list)
    cores: dict[int, list[float]] = defaultdict(list)
    for number in range(rounds):
        for threads in (1, 2, 8):
            wheres = look_ups(files)[0].wheres(400, f"{threads} {number}")
            response = ours.run(wheres, threads=threads)
            rates[threads].append(400 / response["seconds"])
            cores[threads].append(response["cpu_seconds"] / response["seconds"])
    results = {
        "queries_a_second": {n: round(statistics.median(each), 1) for n, each in rates.items()},
        "busy_cores": {n: round(statistics.median(each), 2) for n, each in cores.items()},
    }
    log(f"by threads: {results}")
    return results


def first_query(table: Path, files: int, rounds: int) -> float:
    """Seconds of the first query of a process, from its start to its end."""
    seconds = []
    for where in look_ups(files)[0].wheres(rounds + 1, "first"):
        began = perf_counter()
        subprocess.run(
            [sys.executable, "-m", "benchmarks.scale.first", str(table), where],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.DEVNULL,
            check=True,
        )
        seconds.append(perf_counter() - began)
    median = round(statistics.median(seconds[1:]), 3)
    log(f"{files} base files: first query of a process {median} s")
    return median


def located(scratch: Path, files: int, rounds: int) -> dict[str, float]:
    """Seconds to locate 1,000 record keys, half of them absent: the first time, and warm."""
    table = tables.folder_of(scratch, files)
    keys = [*some_keys(table, 500), *(f"absent{number}" for number in range(500))]
    seconds = []
    with open_table(table) as opened:
        for _ in range(rounds + 1):
            began = perf_counter()
            locations = opened.tag_location(keys)
            seconds.append(perf_counter() - began)
    assert sum(each is not None for each in locations.column("file_id").to_pylist()) == 500
    result = {"first": round(seconds[0], 3), "warm": round(statistics.median(seconds[1:]), 3)}
    log(f"{files} base files: 1,000 keys located in {result} s")
    return result


def unrouted(scratch: Path, files: int, rounds: int) -> dict[str, Any]:
    """Point look-ups of the service on the table of so many base files, by statistics alone."""
    table, query = tables.folder_of(scratch, files), look_ups(files)[0]
    with without_runs(table):
        contestants = {"ours": Contestant("ours", table)}
        try:
            # All entries are opened once.
            contestants["ours"].run(query.wheres(1, "open"), **query.options())
            return {"files": files, **in_turn(contestants, query, rounds)}
        finally:
            contestants["ours"].close()


def far_behind_lance(mixed_rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The mixed queries that take more than twice Lance's time, and the share of their time that
    goes into reading pages of gzip and checking their rows."""
    return [
        {
            "query": each["query"],
            "times_as_fast_as_lance": round(1 / each["over"]["lance"], 2),
            "share_of_reading": round(each["reading_ms"] / each["ms"]["ours"], 2),
        }
        for each in mixed_rows
        if each["over"]["lance"] > 2
    ]


def targets(results: dict[str, Any]) -> list[Target]:
    """The targets; a measurement is None if the run left it out."""
    by_files = {each["files"]: each for each in results["tables"]}

    def row(files: int, name: str, kind: str = "queries") -> dict[str, Any]:
        rows = by_files.get(files, {}).get(kind, [])
        empty: dict[str, Any] = {"ms": {}, "over": {}}
        return next((each for each in rows if each["query"] == name), empty)

    def ms(files: int, name: str) -> float | None:
        return row(files, name)["ms"].get("ours")

    def over(files: int, name: str, other: str) -> float | None:
        return row(files, name)["over"].get(other)

    def quotient(above: float | None, below: float | None) -> float | None:
        return None if above is None or not below else round(above / below, 3)

    point, narrow, none = (each.name for each in look_ups(1))
    rates = by_files.get(FEW_FILES, {}).get("queries_a_second", {})
    rows = by_files.get(FEW_FILES, {}).get("mixed", [])
    faster = {
        other: round(statistics.median(1 / each["over"][other] for each in rows), 3)
        for other in ("lance", "duckdb")
        if rows
    }
    stored = by_files.get(FEW_FILES, {}).get("stored_over_lance", {})
    many = long_in(FEW_FILES).name
    built, by_statistics = results["build_ms_a_file"], results["unrouted"]
    unrouted_ms = by_statistics["ms"]["ours"] if by_statistics["files"] == 10_000 else None
    remote = results["remote"]
    return [
        at_most("u = x, 1,000 files: ms", 10, ms(1_000, point)),
        at_most("u = x, 1,000 files: over DuckDB", 0.05, over(1_000, point, "duckdb")),
        at_most("u = x, 10,000 files: ms", 15, ms(10_000, point)),
        at_most(
            "u = x, 10,000 files: over 1,000", 1.5, quotient(ms(10_000, point), ms(1_000, point))
        ),
        at_most("a narrow range without order, 1,000 files: ms", 25, ms(1_000, narrow)),
        at_most("a narrow range without order, 10,000 files: ms", 130, ms(10_000, narrow)),
        at_most("no file can match, 1,000 files: ms", 4, ms(1_000, none)),
        at_most("no file can match, 10,000 files: ms", 6, ms(10_000, none)),
        at_most("first query of a process, 1 file: s", 0.75, _first(by_files, 1)),
        at_most("first query of a process, 1,000 files: s", 0.85, _first(by_files, 1_000)),
        at_most("1,000 keys located in 1,000 files, warm: s", 0.1, results["located"].get("warm")),
        at_most("1,000 keys located in 1,000 files, first: s", 2, results["located"].get("first")),
        at_most(f"{many}, 6 files: ms", 220, ms(FEW_FILES, many)),
        at_most(f"{many}, 6 files: over DuckDB", 0.5, over(FEW_FILES, many, "duckdb")),
        at_least("queries a second, 8 threads over 2", 1.0, quotient(rates.get(8), rates.get(2))),
        at_least("queries a second, 2 threads over 1", 1.5, quotient(rates.get(2), rates.get(1))),
        *(
            at_most(f"{each.name}: over DuckDB", bound, over(1, each.name, "duckdb"))
            for each, bound in zip(UNINDEXED, (1.1, 1.6), strict=True)
        ),
        at_least("20 mixed queries: median times as fast as Lance", 0.8, faster.get("lance")),
        at_least("20 mixed queries: median times as fast as DuckDB", 2, faster.get("duckdb")),
        *(
            at_most(f"values stored, {name}: over Lance", 1.0, stored.get(name))
            for name in STORED_QUERIES
        ),
        at_most("remote store, cold process, one value: s", 1, remote["seconds"]),
        at_most(
            "remote store: requests to the index and base files", remote["allowed"], remote["own"]
        ),
        at_most(
            f"{KEYS:,} keys located in 1,000 files: over Spark's join",
            0.2,
            results["located_by_spark"]["over_join"],
        ),
        at_most("u = x, 10,000 files, without routing: ms", 80, unrouted_ms),
        at_most("building 1,000 files: ms a file", 12, built.get("1000", {}).get("routed")),
        at_most(
            "building 6 files: over a build without routing",
            1.15,
            built.get(str(FEW_FILES), {}).get("over_unrouted"),
        ),
        at_most("routing: bytes a pair", 3.2, results["routing_bytes_a_pair"]),
        at_most(
            "reading 10,000 files: anonymous MiB",
            350,
            by_files.get(10_000, {}).get("anonymous_mib"),
        ),
    ]


def _first(by_files: dict[int, Any], files: int) -> float | None:
    seconds: float | None = by_files.get(files, {}).get("first_query_seconds")
    return seconds


def parse_arguments() -> argparse.Namespace:
    """The arguments of the command line."""
    parser = argparse.ArgumentParser(prog="benchmarks.scale", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--files", default="1,6,100,1000,10000", help="base files of the tables")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--scratch", type=Path, default=SCRATCH, help="folder of the tables")
    return parser.parse_args()


def main() -> None:
    """Measures, prints and writes the results."""
    arguments = parse_arguments()
    files = [int(each) for each in arguments.files.split(",")]
    writing = [sys.executable, "-m", "benchmarks.scale.tables", str(arguments.scratch)]
    subprocess.run([*writing, *map(str, files)], cwd=ROOT, check=True)
    thousand = 1_000 if 1_000 in files else files[-1]
    results: dict[str, Any] = {
        "tables": [of_files(arguments.scratch, each, arguments.rounds) for each in files],
        "remote": first_remote_query(arguments.scratch, thousand, arguments.rounds),
        "located": located(arguments.scratch, thousand, arguments.rounds),
        "located_by_spark": located_over_join(arguments.scratch, thousand, arguments.rounds),
        "unrouted": unrouted(arguments.scratch, files[-1], arguments.rounds),
        "build_ms_a_file": {
            str(each): build_ms_a_file(arguments.scratch, each, arguments.rounds)
            for each in sorted({min(FEW_FILES, thousand), thousand})
        },
        "routing_bytes_a_pair": routing_bytes_a_pair(arguments.scratch, thousand),
        "rounds": arguments.rounds,
        "environment": environment(),
    }
    results = {"targets": targets(results), **results}
    arguments.output.mkdir(parents=True, exist_ok=True)
    (arguments.output / "scale.json").write_text(json.dumps(results, indent=1) + "\n")
    for each in results["targets"]:
        log(f"{'reached' if each['reached'] else 'MISSED '}  {each['name']}: {each['measured']}")


if __name__ == "__main__":
    main()
