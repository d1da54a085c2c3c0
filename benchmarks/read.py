"""How long exact reads take, against what a Hudi user has today: `make bench-read`.

On one table of 4,000,000 rows, one base file of 363 MB after clustering (gzip, as Hudi writes it;
and another one with snappy). Contestants, each in a process of its own, are asked the same queries
in turn, round by round, beginning with another one in each; a ratio is the median of the rounds':

- ours, warm: the table is open, its snapshot cached and revalidated by a listing of the timeline
  at each query, planning included. Index C: `msg` analyzed and as keyword, `sender`, `city`,
  `amount` and the record key `key`. No Spark session in the process;
- Spark with Hudi, with and without Hudi's own record index, secondary index and data skipping,
  whichever is faster; what gives other rows than Spark without them does not count;
- DuckDB on the base file;
- Lance on a copy that was written anew into its own format: B-trees on sender, amount and key, a
  bitmap on city, an inverted index on msg.

`bytes_read` over `floor_bytes`: the floor is the pages that hold matching rows, of the columns
returned. Each contestant is first asked for two seconds, which are not counted: there are virtual
machines that compile what they run often; `first_ms` is the median of ours' first seven answers.
`cold_ms`: the same query on a table just opened, in a warm process. `planning`: tables of
1, 10 and 100 base files; a value that every file may hold, and one that their statistics exclude.
`half`: half of the rows, against the scan that it falls back to.

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
from benchmarks.build import environment, say
from hudi_index_service import Column, IndexedTable, open_table

RESULTS = ROOT / "benchmarks" / "results"
FILE_COUNTS = (1, 10, 100)
INDEX_C = [*COLUMNS["B"], Column(name="key")]
# By contestant: whom to ask, how, how often a round.
ENTRANTS: dict[str, tuple[str, dict[str, Any], int]] = {
    "ours": ("ours", {}, 7),
    "spark": ("spark", {"indexed": False}, 1),
    "spark_indexed": ("spark", {"indexed": True}, 1),
    "duckdb": ("duckdb", {}, 3),
    "lance": ("lance", {}, 7),
}

WARM_SECONDS = 2.0
HALF_OVER_SCAN = 1.1

Answers = dict[str, list[dict[str, Any]]]


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


def asked_in_turn(
    contestants: dict[str, Contestant], entrants: list[str], query: Query, rounds: int
) -> Answers:
    """The answers of each entrant, round by round, after a round that is not counted, of as many
    questions as take `WARM_SECONDS`; its own first answers are ``first``."""
    answers: Answers = defaultdict(list)
    for name in entrants:
        process, options, repeat = ENTRANTS[name]
        answers["first " + name].append(
            contestants[process].ask(query.name, repeat, least_seconds=WARM_SECONDS, **options)
        )
    for number in range(rounds):
        start = number % len(entrants)
        for name in entrants[start:] + entrants[:start]:
            process, options, repeat = ENTRANTS[name]
            answers[name].append(contestants[process].ask(query.name, repeat, **options))
    return answers


def reported(query: Query, codec: str, answers: Answers) -> dict[str, Any]:
    """One row of the results."""
    first = statistics.median(answers["first ours"][0]["ms"][: ENTRANTS["ours"][2]])
    answers = {name: given for name, given in answers.items() if not name.startswith("first ")}
    took = {
        name: [statistics.median(answer["ms"]) for answer in given]
        for name, given in answers.items()
    }
    rows = {name: given[-1]["rows"] for name, given in answers.items()}
    ours = answers["ours"][-1]

    def over(name: str) -> float:
        return statistics.median(a / b for a, b in zip(took[name], took["ours"], strict=True))

    right = [name for name in took if name.startswith("spark") and rows[name] == rows["spark"]]
    ratios = {"spark": min(over(name) for name in right), "duckdb": over("duckdb")}
    ratios |= {"lance": over("lance")} if "lance" in took else {}
    wanted = {"spark": query.spark, "duckdb": query.duckdb}
    return {
        "query": query.name,
        "codec": codec,
        "where": query.where,
        "columns": list(query.columns) or ("count(*)" if query.counts else "all"),
        "rows": rows["ours"],
        "wrong_rows": {name: found for name, found in rows.items() if found != rows["spark"]},
        "ms": {name: round(statistics.median(each), 3) for name, each in took.items()},
        "times_as_fast_as": {name: round(ratio, 2) for name, ratio in ratios.items()},
        "wanted": wanted,
        "reached": all(ratios[name] >= wanted[name] for name in wanted),
        "bytes_read": ours["bytes_read"],
        "floor_bytes": ours["floor_bytes"],
        "pages": ours["pages"],
        "first_ms": round(first, 3),
        "cold_ms": round(statistics.median(each["cold_ms"] for each in answers["ours"]), 3),
    }


def measured(folder: Path, codec: str, rounds: int) -> dict[str, Any]:
    """All queries on the table of one codec."""
    table = clustered(folder, codec)
    say(f"{codec}: building index C …")
    seconds = index(table)
    key = key_of_some_row(table)
    names = [n for n in ENTRANTS if codec == "gzip" or n not in ("spark_indexed", "lance")]
    results: list[dict[str, Any]] = []
    say(f"{codec}: starting {', '.join(names)} …")
    processes = dict.fromkeys(ENTRANTS[name][0] for name in names)
    contestants = {name: Contestant(name, table, key) for name in processes}
    try:
        for query in queries(key):
            results.append(reported(query, codec, asked_in_turn(contestants, names, query, rounds)))
            row = results[-1]
            ratios = ", ".join(f"{v:g} × {name}" for name, v in row["times_as_fast_as"].items())
            say(f"{codec}: {query.name}: {row['rows']} rows, {row['ms']['ours']:g} ms; {ratios}")
        half = half_of_the_rows(contestants["ours"], rounds)
        say(f"{codec}: half of the rows: {half['over_scan']} of a scan")
    finally:
        for contestant in contestants.values():
            contestant.close()
    return {"queries": results, "half": {codec: half}, "build_seconds": {codec: round(seconds, 1)}}


def half_of_the_rows(ours: Contestant, rounds: int) -> dict[str, Any]:
    """A query that no index helps, and the scan it falls back to."""
    took = [
        [
            statistics.median(ours.ask(HALF.name, 2, use_index=use_index)["ms"])
            for use_index in ("auto", "never")
        ]
        for _ in range(rounds + 1)
    ][1:]
    return {
        "where": HALF.where,
        "ms": round(statistics.median(auto for auto, _ in took), 1),
        "scan_ms": round(statistics.median(never for _, never in took), 1),
        "over_scan": round(statistics.median(auto / never for auto, never in took), 3),
    }


EVERYWHERE, NOWHERE = "sender = 'User1234' AND amount = 77", "key = 'a'"

PLANNING: dict[str, Callable[[IndexedTable], object]] = {
    "plan": lambda table: table.scan(EVERYWHERE).explain(),
    "plan_and_ask_all": lambda table: table.scan(EVERYWHERE).count(),
    "excluded": lambda table: table.scan(NOWHERE).count(),
}
"""Planning; planning and asking the index of every file; and where no file's need be asked."""


def planning(folder: Path, rounds: int) -> list[dict[str, Any]]:
    """Milliseconds of `PLANNING`, in all and a file, for tables of several numbers of files."""
    results = []
    for files in FILE_COUNTS:
        table = of_files(folder, files)
        index(table)
        with open_table(table) as opened:
            took = {name: _median_ms(work, opened, 3 * rounds) for name, work in PLANNING.items()}
        found: dict[str, Any] = {"files": files}
        found |= {f"{name}_ms": round(ms, 3) for name, ms in took.items()}
        found |= {f"{name}_ms_a_file": round(ms / files, 4) for name, ms in took.items()}
        say(f"planning: {found}")
        results.append(found)
    return results


def targets(results: dict[str, Any]) -> list[Target]:
    """Each query against Spark and DuckDB, and half of the rows against a scan."""
    found = [
        at_least(
            f"{row['codec']}, {row['query']}: times as fast as {name}",
            wanted,
            row["times_as_fast_as"].get(name),
        )
        for row in results["queries"]
        for name, wanted in row["wanted"].items()
    ]
    return found + [
        at_most(f"{codec}, half of the rows: over a scan", HALF_OVER_SCAN, each["over_scan"])
        for codec, each in results["half"].items()
    ]


def _median_ms(work: Callable[[IndexedTable], object], table: IndexedTable, times: int) -> float:
    work(table)
    work(table)
    found = []
    for _ in range(times):
        started = perf_counter()
        work(table)
        found.append((perf_counter() - started) * 1000)
    return statistics.median(found)


def options() -> argparse.Namespace:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--codecs", default="gzip,snappy")
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--scratch", type=Path, help="folder for tables; a temporary one if absent")
    return parser.parse_args()


def main() -> None:
    """Measures, prints and writes the results."""
    asked = options()
    codecs = asked.codecs.split(",")
    with tempfile.TemporaryDirectory(prefix="bench-", dir=asked.scratch) as name:
        folder = Path(name)
        files = ",".join(map(str, FILE_COUNTS))
        tables = [sys.executable, "-m", "benchmarks.bench_read_tables", str(folder)]
        subprocess.run([*tables, str(asked.rows), asked.codecs, files], cwd=ROOT, check=True)
        found = [measured(folder, codec, asked.rounds) for codec in codecs]
        results = {
            "queries": [row for each in found for row in each["queries"]],
            "half": {k: v for each in found for k, v in each["half"].items()},
            "planning": planning(folder, asked.rounds),
            "build_seconds": {k: v for each in found for k, v in each["build_seconds"].items()},
            "rows": asked.rows,
            "environment": environment(),
        }
        results = {"targets": targets(results), **results}
    asked.output.mkdir(parents=True, exist_ok=True)
    (asked.output / "read.json").write_text(json.dumps(results, indent=1) + "\n")
    print(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
