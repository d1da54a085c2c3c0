"""The time of exact reads, compared with what Hudi users have today: `make bench-read`.

On one table of 4,000,000 rows, one base file of 363 MB after clustering (gzip, as Hudi writes it;
and another one with snappy). Contestants, each in a process of its own, run the same queries in
turn, each round starting with the next one; a ratio is the median over the rounds:

- ours, warm: the table is open, its snapshot cached and revalidated by a listing of the timeline
  at each query; planning included. Index C: `msg` analyzed and as keyword, `sender`, `city`,
  `amount` and the record key `key`. No Spark session in the process;
- Spark with Hudi, with and without Hudi's own record index, secondary index and data skipping,
  whichever is faster and returns the rows that Spark returns without them;
- DuckDB on the base file;
- Lance on a copy in its own format: B-trees on sender, amount and key, a
  bitmap on city, an inverted index on msg.

`bytes_read` over `floor_bytes`: the floor is the pages that hold matching rows, of the columns
returned. Each contestant first runs each query for two seconds, which are not counted, so that
virtual machines compile it; `first_ms` is the median of our first seven runs. `cold_ms`: the same
query on a table just opened, in a warm process. `planning`: tables of 1, 10 and 100 base files; a
value that every file may hold, and one that their statistics exclude. `half`: half of the rows,
compared with the scan that the query falls back to.

Written to benchmarks/results/read.json. A small run to try things out:
`python -m benchmarks.read --rows 200000 --rounds 1 --output /tmp/bench`.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import pyarrow.parquet as pq

from benchmarks.bench_contestants import COLUMNS
from benchmarks.bench_queries import HALF, Query, queries
from benchmarks.bench_read_tables import clustered, of_files
from benchmarks.bench_reader import Contestant
from benchmarks.bench_table import ROOT, base_files
from benchmarks.bench_targets import Target, at_least, at_most
from benchmarks.build import environment, log
from hudi_index_service import Column, IndexedTable, open_table

RESULTS = ROOT / "benchmarks" / "results"
FILE_COUNTS = (1, 10, 100)
INDEX_C = [*COLUMNS["B"], Column(name="key")]
# By entrant: the contestant, its options, and the runs in each round.
ENTRANTS: dict[str, tuple[str, dict[str, Any], int]] = {
    "ours": ("ours", {}, 7),
    "spark": ("spark", {"indexed": False}, 1),
    "spark_indexed": ("spark", {"indexed": True}, 1),
    "duckdb": ("duckdb", {}, 3),
    "lance": ("lance", {}, 7),
}

WARM_SECONDS = 2.0
HALF_OVER_SCAN = 1.1

Responses = dict[str, list[dict[str, Any]]]


def index(table: Path) -> float:
    """Builds index C; returns the seconds."""
    started = perf_counter()
    with open_table(table) as opened:
        opened.create_index("bench", INDEX_C)
        opened.build(strategy="all").raise_for_failures()
    return perf_counter() - started


def key_of_some_row(table: Path) -> str:
    """The record key of a row in the middle of the largest base file."""
    largest = max(base_files(table), key=lambda path: path.stat().st_size)
    with pq.ParquetFile(largest) as file:
        keys = file.read_row_group(file.num_row_groups // 2, columns=["key"]).column("key")
        return str(keys[len(keys) // 2])


def in_turn(
    contestants: dict[str, Contestant], entrants: list[str], query: Query, rounds: int
) -> Responses:
    """The responses of each entrant, round by round, after `WARM_SECONDS` that are not counted;
    those of the latter are under ``first`` and the entrant's name."""
    responses: Responses = defaultdict(list)
    for name in entrants:
        process, options, repeat = ENTRANTS[name]
        responses["first " + name].append(
            contestants[process].run(query.name, repeat, least_seconds=WARM_SECONDS, **options)
        )
    for number in range(rounds):
        start = number % len(entrants)
        for name in entrants[start:] + entrants[:start]:
            process, options, repeat = ENTRANTS[name]
            responses[name].append(contestants[process].run(query.name, repeat, **options))
    return responses


def reported(query: Query, codec: str, responses: Responses) -> dict[str, Any]:
    """One row of the results."""
    first = statistics.median(responses["first ours"][0]["ms"][: ENTRANTS["ours"][2]])
    responses = {name: each for name, each in responses.items() if not name.startswith("first ")}
    ms = {
        name: [statistics.median(response["ms"]) for response in each]
        for name, each in responses.items()
    }
    rows = {name: each[-1]["rows"] for name, each in responses.items()}
    ours = responses["ours"][-1]

    def over(name: str) -> float:
        return statistics.median(a / b for a, b in zip(ms[name], ms["ours"], strict=True))

    right = [name for name in ms if name.startswith("spark") and rows[name] == rows["spark"]]
    ratios = {"spark": min(over(name) for name in right), "duckdb": over("duckdb")}
    ratios |= {"lance": over("lance")} if "lance" in ms else {}
    bounds = {"spark": query.spark, "duckdb": query.duckdb}
    return {
        "query": query.name,
        "codec": codec,
        "where": query.where,
        "columns": list(query.columns) or ("count(*)" if query.counts else "all"),
        "rows": rows["ours"],
        "wrong_rows": {name: count for name, count in rows.items() if count != rows["spark"]},
        "ms": {name: round(statistics.median(each), 3) for name, each in ms.items()},
        "times_as_fast_as": {name: round(ratio, 2) for name, ratio in ratios.items()},
        "wanted": bounds,
        "reached": all(ratios[name] >= bound for name, bound in bounds.items()),
        "bytes_read": ours["bytes_read"],
        "floor_bytes": ours["floor_bytes"],
        "pages": ours["pages"],
        "first_ms": round(first, 3),
        "cold_ms": round(statistics.median(each["cold_ms"] for each in responses["ours"]), 3),
    }


def measured(folder: Path, codec: str, rounds: int) -> dict[str, Any]:
    """All queries on the table of one codec."""
    table = clustered(folder, codec)
    log(f"{codec}: building index C …")
    seconds = index(table)
    key = key_of_some_row(table)
    names = [n for n in ENTRANTS if codec == "gzip" or n not in ("spark_indexed", "lance")]
    results: list[dict[str, Any]] = []
    log(f"{codec}: starting {', '.join(names)} …")
    processes = dict.fromkeys(ENTRANTS[name][0] for name in names)
    contestants = {name: Contestant(name, table, key) for name in processes}
    try:
        for query in queries(key):
            results.append(reported(query, codec, in_turn(contestants, names, query, rounds)))
            row = results[-1]
            ratios = ", ".join(f"{v:g} × {name}" for name, v in row["times_as_fast_as"].items())
            log(f"{codec}: {query.name}: {row['rows']} rows, {row['ms']['ours']:g} ms; {ratios}")
        half = half_of_the_rows(contestants["ours"], rounds)
        log(f"{codec}: half of the rows: {half['over_scan']} of a scan")
    finally:
        for contestant in contestants.values():
            contestant.close()
    return {"queries": results, "half": {codec: half}, "build_seconds": {codec: round(seconds, 1)}}


def half_of_the_rows(ours: Contestant, rounds: int) -> dict[str, Any]:
    """A query that no index helps, and the scan that it falls back to."""
    pairs = [
        [
            statistics.median(ours.run(HALF.name, 2, use_index=use_index)["ms"])
            for use_index in ("auto", "never")
        ]
        for _ in range(rounds + 1)
    ][1:]
    return {
        "where": HALF.where,
        "ms": round(statistics.median(auto for auto, _ in pairs), 1),
        "scan_ms": round(statistics.median(never for _, never in pairs), 1),
        "over_scan": round(statistics.median(auto / never for auto, never in pairs), 3),
    }


EVERYWHERE, NOWHERE = "sender = 'User1234' AND amount = 77", "key = 'a'"

PLANNING: dict[str, Callable[[IndexedTable], object]] = {
    "plan": lambda table: table.scan(EVERYWHERE).explain(),
    "plan_and_ask_all": lambda table: table.scan(EVERYWHERE).count(),
    "excluded": lambda table: table.scan(NOWHERE).count(),
}
"""Planning; planning and looking up in every file's index; a query that excludes every file."""


def planning(folder: Path, rounds: int) -> list[dict[str, Any]]:
    """Milliseconds of `PLANNING`, in all and per file, for each table of `FILE_COUNTS`."""
    results = []
    for files in FILE_COUNTS:
        table = of_files(folder, files)
        index(table)
        with open_table(table) as opened:
            ms = {name: _median_ms(work, opened, 3 * rounds) for name, work in PLANNING.items()}
        row: dict[str, Any] = {"files": files}
        row |= {f"{name}_ms": round(median, 3) for name, median in ms.items()}
        row |= {f"{name}_ms_a_file": round(median / files, 4) for name, median in ms.items()}
        log(f"planning: {row}")
        results.append(row)
    return results


def targets(results: dict[str, Any]) -> list[Target]:
    """Each query against Spark and DuckDB, and half of the rows against a scan."""
    speedups = [
        at_least(
            f"{row['codec']}, {row['query']}: times as fast as {name}",
            bound,
            row["times_as_fast_as"].get(name),
        )
        for row in results["queries"]
        for name, bound in row["wanted"].items()
    ]
    return speedups + [
        at_most(f"{codec}, half of the rows: over a scan", HALF_OVER_SCAN, each["over_scan"])
        for codec, each in results["half"].items()
    ]


def _median_ms(work: Callable[[IndexedTable], object], table: IndexedTable, times: int) -> float:
    work(table)
    work(table)
    samples = []
    for _ in range(times):
        started = perf_counter()
        work(table)
        samples.append((perf_counter() - started) * 1000)
    return statistics.median(samples)


def parse_arguments() -> argparse.Namespace:
    """The arguments of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--codecs", default="gzip,snappy")
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--scratch", type=Path, help="folder for tables; a temporary one if absent")
    return parser.parse_args()


def main() -> None:
    """Measures, prints and writes the results."""
    arguments = parse_arguments()
    codecs = arguments.codecs.split(",")
    with tempfile.TemporaryDirectory(prefix="bench-", dir=arguments.scratch) as name:
        folder = Path(name)
        files = ",".join(map(str, FILE_COUNTS))
        tables = [sys.executable, "-m", "benchmarks.bench_read_tables", str(folder)]
        subprocess.run(
            [*tables, str(arguments.rows), arguments.codecs, files], cwd=ROOT, check=True
        )
        measurements = [measured(folder, codec, arguments.rounds) for codec in codecs]
        results = {
            "queries": [row for each in measurements for row in each["queries"]],
            "half": {k: v for each in measurements for k, v in each["half"].items()},
            "planning": planning(folder, arguments.rounds),
            "build_seconds": {
                k: v for each in measurements for k, v in each["build_seconds"].items()
            },
            "rows": arguments.rows,
            "environment": environment(),
        }
        results = {"targets": targets(results), **results}
    arguments.output.mkdir(parents=True, exist_ok=True)
    (arguments.output / "read.json").write_text(json.dumps(results, indent=1) + "\n")
    print(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
