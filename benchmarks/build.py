"""Build time, compared with what Hudi users have today: `make bench-build`.

On one table of 4,000,000 rows, one base file of 363 MB after clustering. Contestants run in turn,
each round starting with the next one; every ratio is the median over the rounds:

- ours, index A: `msg` analyzed, `sender`, `city`, `amount`; index B: the same, and `msg` as keyword
  too (4,000,000 distinct values); by Spark, `local[2]`, as with `hudi-index build`;
- the clustering run that wrote the base file;
- Hudi's own secondary index on `sender`, dropped and created again (its record index, which it
  needs, is there already and not counted);
- Lance: B-trees on sender and amount, a bitmap on city, an inverted index on msg (the copy into
  Lance's format is not counted).

Files that were not used for a few minutes may have to be read from the disk again, so each
contestant's input is read before its clock starts. Spark ends Python workers that were idle for a
minute, and with them the code that the JVM has compiled; so ours first builds the index of a table
of 400,000 rows. Otherwise its time would depend on that of the others (index B: 12.3 or 15.3 s).

`worker_over_helper`: rows per second of one build task, from the Parquet file to the published
entry, over those of the Java helper alone, which gets the same Arrow batches from memory; both
build index A in a process of their own, on one thread. `peak_rss_mb`: of such a task, for a base
file and for one 10 times larger. `growth`: seconds of index A against rows in one base file;
`growth_files`: against the number of base files of one size.

Profile by sampling (JFR) on a table of 1,000,000 rows, warm, one thread: looking up terms in the
dictionary of the new segment 38%, mostly waiting for memory; writing postings and terms through
Lucene's codec 28%, sorting occurrences and terms 10%, analyzing text 5%, points 4%. A cold JVM
spends as much again on compiling, in parallel with the indexing. Reading 4
columns of 1,000,000 rows from gzip takes 0.3 s, hidden behind the indexing by a thread; their least
and greatest values 0.04 s, checking UTF-8 0.03 s; CRC-32 and SHA-256 of 90 MB 0.08 s. Before
segments were written column by column, an IndexWriter took about twice the processor time.

Written to benchmarks/results/build.json and build-growth.svg. A small run to try things out:
`python -m benchmarks.build --rows 200000 --rounds 1 --growth 100000,200000 --output /tmp/bench`.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.bench_contestants import Contestants, our_build
from benchmarks.bench_plot import growth_plot, line_through
from benchmarks.bench_table import ROOT, spark_session, write_table
from benchmarks.bench_targets import Target, at_most
from dev.jars import bundle_path
from hudi_index_service.build.entry.worker import RESIDENT_MB
from hudi_index_service.config import settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RESULTS = ROOT / "benchmarks" / "results"
FILE_COUNTS = (1, 4, 16)
WARM_UP_ROWS = 400_000
LANCE = "pylance"
# A tenth above the first measurements.
MAX_RATIOS = {
    "A": {"hudi_secondary": 0.21, "clustering": 0.15, "lance": 0.6},
    "B": {"hudi_secondary": 0.3, "clustering": 0.21, "lance": 0.82},
}
MOST_DEVIATION = 0.1

Measured = dict[str, list[float]]


def log(text: str) -> None:
    """Prints a line of progress to stderr."""
    print(text, file=sys.stderr, flush=True)


def in_rounds(
    contestants: dict[str, Callable[[], float]], rounds: int, measured: Measured
) -> Measured:
    """Seconds of each contestant in each round; each round starts with the next one."""
    names = list(contestants)
    for number in range(rounds):
        for name in names[number % len(names) :] + names[: number % len(names)]:
            seconds = contestants[name]()
            measured[name].append(round(seconds, 3))
            log(f"round {number + 1} of {rounds}: {name} {seconds:.2f} s")
    return measured


def over(measured: Measured, one: str, other: str) -> float:
    """The median of the rounds' ratios."""
    pairs = zip(measured[one], measured[other], strict=True)
    return round(statistics.median(a / b for a, b in pairs), 3)


def compared(
    spark: "SparkSession", scratch: Path, rows: int, rounds: int, small: Contestants
) -> dict[str, Any]:
    """Our builds over those of the others, and a worker over the helper."""
    log(f"Writing and clustering a table of {rows:,} rows; then Hudi's record index …")
    contestants = Contestants(spark, scratch, rows, small)
    sizes: dict[str, int] = {}

    def ours(index: str) -> float:
        seconds, sizes[index] = contestants.ours(index)
        return seconds

    def lance() -> float:
        seconds, sizes["lance"] = contestants.lance()
        return seconds

    measured = in_rounds(
        {
            "A": lambda: ours("A"),
            "hudi_secondary": contestants.hudi_secondary,
            "lance": lance,
            "B": lambda: ours("B"),
            "clustering": contestants.clustering,
            "helper": lambda: worker("helper", contestants.table)["seconds"],
            "worker": lambda: worker("worker", contestants.table)["seconds"],
        },
        rounds,
        defaultdict(list),
    )
    against = ("hudi_secondary", "clustering", "lance")
    return {
        **{
            index: {f"build_over_{other}": over(measured, index, other) for other in against}
            | {"index_bytes": sizes[index]}
            for index in ("A", "B")
        },
        "worker_over_helper": over(measured, "helper", "worker"),
        "lance_index_bytes": sizes["lance"],
        "base_file_bytes": contestants.base_file.stat().st_size,
        "seconds": dict(measured),
    }


def worker(role: str, table: Path) -> dict[str, Any]:
    """Measurements of one task, or of the helper alone, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.bench_worker", role, str(table)]
    run = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE)
    result: dict[str, Any] = json.loads(run.stdout)
    return result


def memory(spark: "SparkSession", scratch: Path, rows: int) -> dict[str, Any]:
    """Peak memory of a task, for base files of a tenth of the rows and of all rows."""
    peaks = {}
    for count in (rows // 10, rows):
        table = scratch / f"memory-{count}"
        write_table(spark, table, count, files=1)
        peaks[count] = worker("worker", table)["peak_rss_mb"]
        log(f"peak of a task for {count:,} rows: {peaks[count]} MiB")
    return {"peak_rss_mb": peaks, "peak_rss_bound_mb": settings().lucene.heap_mb + RESIDENT_MB}


def growth(
    spark: "SparkSession", scratch: Path, sizes: Sequence[int], rounds: int
) -> dict[str, Any]:
    """Seconds of index A against rows, and against base files of the smallest size."""
    tables = {("rows", rows): (rows, 1) for rows in sizes}
    few = min(sizes) // 4
    tables |= {("files", files): (few * files, files) for files in FILE_COUNTS}
    for name, (rows, files) in tables.items():
        log(f"Writing {rows:,} rows in {files} base files …")
        write_table(spark, _folder(scratch, *name), rows, files)
    measured = in_rounds(
        {
            f"{kind} {count}": lambda kind=kind, count=count: our_build(
                _folder(scratch, kind, count), "A", spark
            )[0]
            for kind, count in tables
        },
        rounds,
        defaultdict(list),
    )
    medians: dict[str, dict[int, float]] = {"rows": {}, "files": {}}
    for kind, count in tables:
        medians[kind][count] = round(statistics.median(measured[f"{kind} {count}"]), 3)
    return {
        "growth": medians["rows"],
        "growth_deviation": round(line_through(medians["rows"]).deviation, 3),
        "growth_files": medians["files"],
        "growth_files_rows": few,
        "growth_files_deviation": round(line_through(medians["files"]).deviation, 3),
    }


def targets(results: dict[str, Any]) -> list[Target]:
    """Build time over that of the others, memory against its bound, growth against a line."""
    ratios = [
        at_most(f"index {index}: build over {other}", bound, results[index][f"build_over_{other}"])
        for index, others in MAX_RATIOS.items()
        for other, bound in others.items()
    ]
    peak = max(results["peak_rss_mb"].values())
    memory_target = at_most("peak MiB of a task", results["peak_rss_bound_mb"], peak)
    return [*ratios, memory_target] + [
        at_most(f"{name}: relative deviation from a line", MOST_DEVIATION, results.get(name))
        for name in ("growth_deviation", "growth_files_deviation")
    ]


def _folder(scratch: Path, kind: str, count: int) -> Path:
    return scratch / f"growth-{kind}-{count}"


def environment() -> dict[str, Any]:
    """The machine, and the versions in use."""
    lance = ROOT / "constraints" / "bench.txt"
    pins = dict(line.split("==") for line in lance.read_text().splitlines() if "==" in line)
    return {
        "cores": len(os.sched_getaffinity(0)),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "spark": version("pyspark"),
        "hudi": Path(bundle_path()).stem,
        "pyarrow": version("pyarrow"),
        "lucene": version("hudi-index-pylucene"),
        "lance": pins[LANCE],
        "duckdb": pins["duckdb"],
    }


def parse_arguments() -> argparse.Namespace:
    """The arguments of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--growth", default="1000000,4000000,16000000", help="rows; empty: none")
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--scratch", type=Path, help="folder for tables; a temporary one if absent")
    return parser.parse_args()


def main() -> None:
    """Measures, prints and writes the results."""
    arguments = parse_arguments()
    sizes = [int(rows) for rows in arguments.growth.split(",") if rows]
    with tempfile.TemporaryDirectory(prefix="bench-", dir=arguments.scratch) as folder:
        scratch = Path(folder)
        spark = spark_session(scratch)
        log("Warming up …")
        small = Contestants(spark, scratch, WARM_UP_ROWS)
        small.ours("B")
        results = compared(spark, scratch, arguments.rows, arguments.rounds, small)
        results |= memory(spark, scratch, arguments.rows)
        if sizes:
            results |= growth(spark, scratch, sizes, arguments.rounds)
        spark.stop()
    results["rows"] = arguments.rows
    results["environment"] = environment()
    results = {"targets": targets(results), **results}
    arguments.output.mkdir(parents=True, exist_ok=True)
    (arguments.output / "build.json").write_text(json.dumps(results, indent=1) + "\n")
    if sizes:
        plot = growth_plot([("rows", results["growth"]), ("base files", results["growth_files"])])
        (arguments.output / "build-growth.svg").write_text(plot)
    print(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
