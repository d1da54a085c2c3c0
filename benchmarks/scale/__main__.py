"""The service on tables of one to ten thousand base files, and on TPC-H's lineitem: `make
bench-scale`.

Contestants, each in a process of its own, run the same queries in turn, each round starting with
the next one, and no condition twice. A ratio is the median over the rounds, `spread` its least and
greatest value; times are medians over all conditions.

- ours: the table is open, its snapshot revalidated at each query; planning included. Pages are kept
  between queries, in a cache of the default size;
- filled: the same with a cache that has room for all pages of lineitem;
- empty: the same with no page kept;
- oracle: the service as of a fixed commit (`dev/oracle.py`), for what may get slower;
- stored: ours with an index that also stores values;
- duckdb: DuckDB over the snapshot's base files;
- lance: Lance on a copy in its own format, with an index on each column that ours has.

Written to benchmarks/results/scale.json. Tables are kept in the scratch folder. A full run takes
hours, most of them for the tables of 1,000 and 10,000 files when they are new. A small run to try
things out: `python -m benchmarks.scale --files 1,6,1000 --smaller 20 --scale 0.01 --rounds 1
--output /tmp/bench`.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.bench_table import ROOT
from benchmarks.build import environment, log
from benchmarks.scale import lineitem, queries, tables
from benchmarks.scale.building import build_ms_a_file
from benchmarks.scale.joined import located_over_join
from benchmarks.scale.lineitem_queries import filters, lineitem_queries
from benchmarks.scale.measure import all_in_turn, by_threads, fresh, in_turn, memory, started
from benchmarks.scale.queries import FEW_FILES, look_ups, some_keys
from benchmarks.scale.remote import first_remote_query
from benchmarks.scale.routing import routing_bytes_a_pair, without_runs
from benchmarks.scale.targets import targets
from dev import oracle
from hudi_index_service.optimizer.cost.constants import SCANS_FOR_OPENING

RESULTS = ROOT / "benchmarks" / "results"
SCRATCH = Path(tempfile.gettempdir()) / "hudi-index-bench-scale"
MANY_FILES = 1_000
"""Base files of the partitioned table."""


def of_files(scratch: Path, files: int, rounds: int) -> dict[str, Any]:
    """The queries on the table of so many base files."""
    table = tables.folder_of(scratch, files)
    own = {1: _one_file, FEW_FILES: _few_files, MANY_FILES: _many_files, 10_000: _most_files}
    results: dict[str, Any] = {"files": files, "partitions": tables.PARTITIONS.get(files, 0)}
    others = ["empty"] if files == MANY_FILES else []
    with started(table, "ours", *others, "duckdb") as contestants:
        results["queries"] = all_in_turn(contestants, look_ups(files), rounds)
        if files == MANY_FILES:
            keys = some_keys(table, 100_000)
            by_keys = queries.by_keys(keys)
            every_file = queries.of_keys(keys[:10_000])
            # Opens all entries, which are scanned until that takes as long as opening them; see
            # "first" for a new process.
            for name in ("ours", *others):
                opening = every_file.wheres(SCANS_FOR_OPENING + 1, "open")
                contestants[name].run(opening, every_file.how)
            results["by_keys"] = all_in_turn(contestants, by_keys, rounds, 3)
            results["unindexed"] = all_in_turn(contestants, [queries.without_index()], rounds, 3)
        results["mib"] = memory(contestants, look_ups(files)[0])["ours"]["anonymous"]
    if files in own:
        results |= own[files](scratch, table, rounds)
    return results


def _one_file(scratch: Path, table: Path, rounds: int) -> dict[str, Any]:
    keys = some_keys(table, 1_000)
    with started(table, "ours", "oracle") as contestants:
        slower = all_in_turn(contestants, queries.may_get_slower(1, keys), rounds)
    with started(table, "lance"):
        pass  # makes its copy
    asked = replace(look_ups(1)[0], name="Lucene asked", limit=1)
    not_indexed = replace(queries.without_index(), name="no JVM needed", limit=1)
    first = [fresh(table, each, rounds, "ours", "duckdb", "lance") for each in (not_indexed, asked)]
    return {"may_get_slower": slower, "first": first}


def _few_files(scratch: Path, table: Path, rounds: int) -> dict[str, Any]:
    stored = tables.with_stored_values(scratch, FEW_FILES)
    with started(table, "lance") as contestants, started(stored, "ours") as ours:
        both = {**ours, **contestants}
        asked = queries.of_stored_values(some_keys(table, 5_000))
        return {"stored": all_in_turn(both, asked, rounds)}


def _many_files(scratch: Path, table: Path, rounds: int) -> dict[str, Any]:
    located = queries.by_keys(some_keys(table, 100_000))[-1]
    return {
        "first": [fresh(table, located, rounds, "ours")],
        "remote": first_remote_query(scratch, MANY_FILES, rounds),
    }


def _most_files(scratch: Path, table: Path, rounds: int) -> dict[str, Any]:
    with started(table, "ours", "oracle") as contestants:
        early = queries.stopped_early(10_000)
        return {"stopped_early": all_in_turn(contestants, early, rounds)}


def of_lineitem(scratch: Path, scale: float, rounds: int) -> dict[str, Any]:
    """The queries on lineitem."""
    table = lineitem.folder_of(scratch, scale)
    asked, unindexed = lineitem_queries(table, scale), filters(table, scale)
    with started(table, "ours", "filled", "empty", "duckdb", "lance") as contestants:
        results: dict[str, Any] = {
            "scale": scale,
            "indexed": [getattr(each, "name", each) for each in lineitem.INDEXED],
            "queries": all_in_turn(contestants, asked, rounds),
            "memory": memory(contestants, asked[0]),
            "filters": all_in_turn(contestants, unindexed, rounds, 3),
        }
        (whole_rows,) = (each for each in asked if each.name == "one key, 16 columns")
        some = {name: contestants[name] for name in ("ours", "filled", "lance")}
        results |= by_threads(some, whole_rows, rounds)
    behind = [each for each in results["queries"] if each["over"]["filled"]["lance"] > 1]
    results["behind_lance"] = [each["query"] for each in behind]
    return results


def unrouted(scratch: Path, files: int, rounds: int) -> dict[str, Any]:
    """Point look-ups of the service on the table of so many base files, by statistics alone."""
    table, query = tables.folder_of(scratch, files), look_ups(files)[0]
    with without_runs(table), started(table, "ours") as contestants:
        # Opens all entries, which are scanned until then.
        contestants["ours"].run(query.wheres(SCANS_FOR_OPENING + 1, "open"), query.how)
        return {"files": files, **in_turn(contestants, query, rounds)}


def parse_arguments() -> argparse.Namespace:
    """The arguments of the command line."""
    parser = argparse.ArgumentParser(prog="benchmarks.scale", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--files", default="1,6,100,1000,10000", help="base files of the tables")
    parser.add_argument("--scale", type=float, default=1, help="of lineitem; 0 leaves it out")
    parser.add_argument("--smaller", type=int, default=1, help="divides the rows of each file")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--scratch", type=Path, default=SCRATCH, help="folder of the tables")
    return parser.parse_args()


def written(scratch: Path, files: list[int], scale: float) -> None:
    """Writes the tables that are missing."""
    writing = ["tables", str(scratch), *map(str, files)]
    commands = [writing] + ([["lineitem", str(scratch), str(scale)]] if scale else [])
    for module, *arguments in commands:
        command = [sys.executable, "-m", f"benchmarks.scale.{module}", *arguments]
        subprocess.run(command, cwd=ROOT, check=True)


def main() -> None:
    """Measures, prints and writes the results."""
    arguments = parse_arguments()
    scratch, rounds = arguments.scratch, arguments.rounds
    os.environ[tables.SMALLER] = str(arguments.smaller)
    files = [int(each) for each in arguments.files.split(",") if each]
    if files:
        try:
            oracle.made()
        except oracle.NoHistory as absent:
            raise SystemExit(str(absent)) from None
    written(scratch, files, arguments.scale)
    results: dict[str, Any] = {"files": [of_files(scratch, each, rounds) for each in files]}
    if arguments.scale:
        results["lineitem"] = of_lineitem(scratch, arguments.scale, rounds)
    if files:
        thousand = MANY_FILES if MANY_FILES in files else files[-1]
        results |= {
            "located_by_spark": located_over_join(scratch, thousand, rounds),
            "unrouted": unrouted(scratch, files[-1], rounds),
            "build_ms_a_file": {
                str(each): build_ms_a_file(scratch, each, rounds)
                for each in sorted({min(FEW_FILES, thousand), thousand})
            },
            "routing_bytes_a_pair": routing_bytes_a_pair(scratch, thousand),
        }
    results |= {"rounds": rounds, "environment": environment()}
    results = {"targets": targets(results), **results}
    arguments.output.mkdir(parents=True, exist_ok=True)
    (arguments.output / "scale.json").write_text(json.dumps(results, indent=1) + "\n")
    for each in results["targets"]:
        log(f"{'reached' if each['reached'] else 'MISSED '}  {each['name']}: {each['measured']}")


if __name__ == "__main__":
    main()
