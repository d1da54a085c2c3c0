"""Queries of merge-on-read tables with log files: `make bench-merge`.

Two tables of the rows of `bench_table`, written by Hudi, with a Lucene index on `sender`: `many`
has 100 base files of 100,000 rows, of which 1 % have newer versions in log files; `large` has one
of 1,000,000 rows, of which 0.6 % have. Each has a copy in which Hudi has compacted the log files,
and one whose index has the record key, too. Contestants are in one process, and run the same
queries in turn; ratios are the medians of the rounds' ratios.

- log rows: only the rows of record keys in log files are merged. Cold: by a table just opened, with
  Java and the files' pages in memory; warm: again;
- scan: the same without an index, cold and warm;
- whole: every slice with log files is merged whole, by a table just opened;
- compacted: the same query after compaction, warm.

Written to benchmarks/results/merge.json. `--slices`, `--rows` and `--output` make a small run.
"""

import argparse
import json
import shutil
import statistics
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from benchmarks.bench_table import NAME, OPTIONS, ROOT, bench_rows, spark_session
from benchmarks.bench_targets import Target, at_most
from benchmarks.build import environment, log
from hudi_index_service import IndexedTable, open_table
from hudi_index_service.optimizer import decide

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RESULTS = ROOT / "benchmarks" / "results"

MERGE_ON_READ = {
    **OPTIONS,
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.index.type": "SIMPLE",
    "hoodie.compact.inline": "false",
}

Run = Callable[..., int]

KINDS: dict[str, Run] = {
    "rows": lambda table, where, **how: (
        table.scan(where, columns=["key", "price"], **how).to_arrow().num_rows
    ),
    "count": lambda table, where, **how: table.scan(where, **how).count(),
    "exists": lambda table, where, **how: int(table.scan(where, **how).exists()),
}


def prepare(scratch: Path, name: str, slices: int, rows: int, touched: int) -> Path:
    """A table with log files, indexed; kept between runs.

    Args:
        rows: Of each base file.
        touched: Every so many-th row has a newer version in a log file.
    """
    folder = scratch / f"{name}-{slices}-{rows}-{touched}"
    if not folder.with_suffix(".ready").exists():
        shutil.rmtree(folder, ignore_errors=True)
        spark = spark_session(scratch)
        log(f"{name}: writing {slices * rows:,} rows …")
        _write(spark, folder, slices, rows, touched)
        spark.stop()
        folder.with_suffix(".ready").touch()
    return folder


def _write(spark: "SparkSession", folder: Path, slices: int, rows: int, touched: int) -> None:
    from pyspark.sql import functions as F

    every = bench_rows(spark, slices * rows, slices)
    options = {"hoodie.bulkinsert.shuffle.parallelism": str(slices), **MERGE_ON_READ}
    every.write.format("hudi").options(**options).mode("overwrite").save(str(folder))
    newer = every.where(F.crc32("key") % touched == 0).withColumn("ts", F.lit(1).cast("long"))
    newer = newer.withColumn("price", F.col("price") + 1)
    upsert = {**options, "hoodie.datasource.write.operation": "upsert"}
    newer.write.format("hudi").options(**upsert).mode("append").save(str(folder))
    log("compacting a copy …")
    compacted = folder.with_name(f"{folder.name}-compacted")
    shutil.copytree(folder, compacted, dirs_exist_ok=True)
    spark.sql(
        f"call run_compaction(op => 'scheduleAndExecute', path => '{compacted}', "
        "options => 'hoodie.compact.inline.max.delta.commits=1')"
    ).collect()
    keyed = folder.with_name(f"{folder.name}-keyed")
    shutil.copytree(folder, keyed, dirs_exist_ok=True)
    for path, columns in (
        (folder, ["sender"]),
        (compacted, ["sender"]),
        (keyed, ["sender", "_hoodie_record_key"]),
    ):
        log(f"{path.name}: building its index …")
        with open_table(path) as table:
            table.create_index(NAME, columns)
            table.build(strategy="all").raise_for_failures()


@contextmanager
def merged_whole() -> Iterator[None]:
    """Merges slices whole in the block."""
    most = decide.MOST_TOUCHED
    decide.MOST_TOUCHED = -1
    try:
        yield
    finally:
        decide.MOST_TOUCHED = most


def timed(run: Run, table: IndexedTable, where: str) -> tuple[float, int]:
    """Milliseconds of a query, and its result."""
    started = perf_counter()
    result = run(table, where)
    return 1000 * (perf_counter() - started), result


def warm(run: Run, table: IndexedTable, wheres: list[str]) -> float:
    """The median of the milliseconds of queries that have run before."""
    for where in wheres:
        run(table, where)
    return statistics.median(timed(run, table, where)[0] for where in wheres)


def measured(folder: Path, wheres: list[str], run: Run) -> dict[str, float]:
    """Milliseconds of one query by each contestant, equal in result."""
    results: dict[str, float] = {}
    found = set()
    for name, path in (("cold", folder), ("keyed_cold", folder.with_name(f"{folder.name}-keyed"))):
        with open_table(path) as table:
            results[name], number = timed(run, table, wheres[0])
            found.add(number)
            if name == "cold":
                results["warm"] = warm(run, table, wheres)
    scanned = partial(run, use_index="never")
    with open_table(folder) as table:
        results["scan_cold"], number = timed(scanned, table, wheres[0])
        found.add(number)
        results["scan_warm"] = warm(scanned, table, wheres)
    with merged_whole(), open_table(folder) as table:
        results["whole"], number = timed(run, table, wheres[0])
        found.add(number)
    with open_table(folder.with_name(f"{folder.name}-compacted")) as table:
        found.add(run(table, wheres[0]))
        results["compacted"] = warm(run, table, wheres)
    assert len(found) == 1, f"contestants disagree on {wheres[0]}: {found}"
    return results


def of_table(folder: Path, rounds: int) -> dict[str, Any]:
    """The medians and ratios of each kind of query."""
    results: dict[str, Any] = {}
    for kind, run in KINDS.items():
        runs = []
        for number in range(rounds):
            senders = [f"User{(7919 * (5 * number + each)) % 400_000}" for each in range(5)]
            runs.append(measured(folder, [f"sender = '{each}'" for each in senders], run))
            shown = ", ".join(f"{name} {ms:.1f}" for name, ms in runs[-1].items())
            log(f"{folder.name}, {kind}, round {number + 1} of {rounds}: {shown} ms")
        medians = {name: statistics.median(each[name] for each in runs) for name in runs[0]}
        results[kind] = {
            "milliseconds": {name: round(ms, 2) for name, ms in medians.items()},
            "cold_over_whole": _ratio(runs, "cold", "whole"),
            "keyed_cold_over_whole": _ratio(runs, "keyed_cold", "whole"),
            "warm_over_compacted": _ratio(runs, "warm", "compacted"),
            "cold_over_scan": _ratio(runs, "cold", "scan_cold"),
            "warm_over_scan": _ratio(runs, "warm", "scan_warm"),
        }
    return results


def _ratio(runs: list[dict[str, float]], one: str, other: str) -> float:
    return round(statistics.median(each[one] / each[other] for each in runs), 3)


def targets(tables: dict[str, Any]) -> list[Target]:
    """What was wanted of each kind of query."""
    result = []
    for kind in KINDS:
        many, large = tables["many"][kind], tables["large"][kind]
        result += [
            at_most(f"{kind}, 100 slices, warm, over compacted", 2, many["warm_over_compacted"]),
            at_most(f"{kind}, 100 slices, cold, over whole", 0.5, many["cold_over_whole"]),
            at_most(
                f"{kind}, 100 slices, cold, with the key's index, over whole",
                0.3,
                many["keyed_cold_over_whole"],
            ),
            at_most(
                f"{kind}, one slice of 1,000,000 rows, cold, over whole",
                0.35,
                large["cold_over_whole"],
            ),
        ]
    many = tables["many"]
    return [
        *result,
        at_most("count, 100 slices, warm, over a scan", 1, many["count"]["warm_over_scan"]),
        at_most("exists, 100 slices, cold, over a scan", 0.3, many["exists"]["cold_over_scan"]),
    ]


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(prog="make bench-merge", description=__doc__)
    parser.add_argument("--slices", type=int, default=100)
    parser.add_argument("--rows", type=int, default=100_000, help="of each slice of `many`")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--scratch", type=Path, help="kept; by default a temporary folder")
    parser.add_argument("--output", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        scratch = arguments.scratch or Path(temporary)
        scratch.mkdir(parents=True, exist_ok=True)
        many = prepare(scratch, "many", arguments.slices, arguments.rows, 100)
        large = prepare(scratch, "large", 1, 10 * arguments.rows, 167)
        tables = {
            "many": of_table(many, arguments.rounds),
            "large": of_table(large, arguments.rounds),
        }
    results = {
        "environment": environment(),
        "slices": arguments.slices,
        "rows": arguments.rows,
        "tables": tables,
        "targets": targets(tables),
    }
    arguments.output.mkdir(parents=True, exist_ok=True)
    path = arguments.output / "merge.json"
    path.write_text(json.dumps(results, indent=2) + "\n", "utf-8")
    missed = [each["name"] for each in results["targets"] if not each["reached"]]
    log(f"{path}: {len(missed)} of {len(results['targets'])} targets missed: {missed}")


if __name__ == "__main__":
    main()
