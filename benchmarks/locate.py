"""Locates a million record keys of a DataFrame by one Spark job: `python -m benchmarks.locate
[--rows N] [--keys N] [--files N] [--scratch FOLDER]`, in the environment of the project (.venv).

Two tables, indexed by key: in one, each base file has a range of keys of its own, so that the least
and greatest keys in the manifests exclude most files; in the other, keys lie anywhere. Printed as
JSON: seconds, tasks, rows and bytes shuffled (by Spark's metrics), and the peak memory of a Python
worker.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any

from pyspark.sql import SparkSession

from benchmarks.bench_table import spark_session
from hudi_index_service import open_table

_KEYS = {"ranges": "lpad(cast(id AS string), 12, '0')", "anywhere": "md5(cast(id AS string))"}


def main() -> None:
    """Writes the tables, and prints the measurements."""
    parser = argparse.ArgumentParser(prog="benchmarks.locate")
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--files", type=int, default=16)
    parser.add_argument("--scratch", type=Path, default=None)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as folder:
        spark = spark_session(Path(folder))
        spark.conf.set("spark.sql.adaptive.enabled", "false")  # else each shuffle is a job
        spark.conf.set("spark.sql.shuffle.partitions", "8")
        for name, key in _KEYS.items():
            path = Path(folder) / name
            print(f"Writing {arguments.rows:,} rows, keys {name} …", file=sys.stderr, flush=True)
            _write(spark, path, key, arguments.rows, arguments.files)
            table = open_table(path)
            table.create_index("by_key", ["key"])
            table.build(strategy="all").raise_for_failures()
            print(json.dumps({"table": name, **_locate(spark, path, key, arguments)}), flush=True)


def _write(spark: SparkSession, path: Path, key: str, rows: int, files: int) -> None:
    (
        spark.range(0, rows, 1, files)
        .selectExpr(f"{key} AS key", "id % 1000 AS amount", "0L AS ts")
        .write.format("hudi")
        .option("hoodie.table.name", "locate")
        .option("hoodie.datasource.write.recordkey.field", "key")
        .option("hoodie.datasource.write.precombine.field", "ts")
        .option("hoodie.datasource.write.operation", "bulk_insert")
        .option("hoodie.bulkinsert.sort.mode", "NONE")  # a file for each task
        .option("hoodie.metadata.enable", "false")
        .mode("overwrite")
        .save(str(path))
    )


def _locate(
    spark: SparkSession, path: Path, key: str, arguments: argparse.Namespace
) -> dict[str, Any]:
    """Locates keys, half of which are in the table."""
    half, step = arguments.keys // 2, 2 * arguments.rows // arguments.keys
    ids = spark.range(0, half * step, step, 8).union(spark.range(-half, 0, 1, 8))
    keys = ids.selectExpr(f"{key} AS record_key")
    before = len(_stages(spark))
    started = perf_counter()
    locations = open_table(path).tag_location(keys)
    counts = locations.selectExpr(
        "count(row_id) AS found", "count(*) AS rows", "max(row_id)"
    ).first()
    seconds = perf_counter() - started
    assert counts is not None
    assert (counts.found, counts.rows) == (half, arguments.keys), counts
    stages = _stages(spark)[: len(_stages(spark)) - before]
    return {
        "keys": counts.rows,
        "found": counts.found,
        "seconds": round(seconds, 1),
        "stages": len(stages),
        "tasks": sum(each.numTasks() for each in stages),
        "shuffled_rows": sum(each.shuffleWriteRecords() for each in stages),
        "shuffled_bytes": sum(each.shuffleWriteBytes() for each in stages),
        "worker_peak_mb": _peak_of_workers() // 2**20,
    }


def _stages(spark: SparkSession) -> list[Any]:
    """Spark's metrics of the stages that have run, the latest first."""
    context = spark.sparkContext._jsc.sc()
    context.listenerBus().waitUntilEmpty()
    store = context.statusStore()
    stages = store.stageList(
        None, *(getattr(store, f"stageList$default${n}")() for n in range(2, 6))
    )
    return [stages.apply(number) for number in range(stages.size())]


def _peak_of_workers() -> int:
    """The most memory, in bytes, that any Python worker on this machine has held."""
    peaks = [0]
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if b"pyspark.daemon" not in (process / "cmdline").read_bytes():
                continue
            lines = (process / "status").read_text().splitlines()
        except OSError:  # it has ended
            continue
        peaks += [int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")]
    return max(peaks)


if __name__ == "__main__":
    main()
