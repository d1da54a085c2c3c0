"""A million record keys located by Spark tasks, and by a join with the table: `python -m
benchmarks.scale.joined TABLE ROWS ROUNDS` prints the seconds of each round as JSON.

Half of the keys are in the table. Spark's join reads the key and the file name of each row, as a
writer without an index would.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from benchmarks.bench_table import ROOT, spark_session
from benchmarks.build import log
from benchmarks.scale import tables
from hudi_index_service import open_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

KEYS = 1_000_000


def located_over_join(scratch: Path, files: int, rounds: int) -> dict[str, float]:
    """Medians of the seconds, ``ours`` and ``join``, and ``over_join``, that of the rounds'
    ratios."""
    table, rows = tables.folder_of(scratch, files), tables.rows_of(files)
    process = subprocess.run(
        [sys.executable, "-m", "benchmarks.scale.joined", str(table), str(rows), str(rounds)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        check=True,
    )
    seconds: dict[str, list[float]] = json.loads(process.stdout.splitlines()[-1])
    ratios = [a / b for a, b in zip(seconds["ours"], seconds["join"], strict=True)]
    result = {name: round(statistics.median(each), 2) for name, each in seconds.items()}
    result["over_join"] = round(statistics.median(ratios), 3)
    log(f"{files} base files: {KEYS:,} keys located in {result} s")
    return result


def main(table: str, rows: str, rounds: str) -> None:
    """Runs both in turn; the first round is not counted."""
    from pyspark.sql import functions as F

    with tempfile.TemporaryDirectory() as folder:
        spark = spark_session(Path(folder))
        number = int(rows)
        sought = min(KEYS, number)
        step = number * 2 // sought
        present = spark.range(0, sought // 2 * step, step, 8)
        ids = present.union(spark.range(number, number + sought // 2, 1, 8))
        keys = ids.select(tables.key_of(F.col("id")).alias("record_key")).cache()
        assert keys.count() == sought

        def ours() -> "DataFrame":
            return open_table(table).tag_location(keys).select("file_id")

        def join() -> "DataFrame":
            rows = spark.read.format("hudi").load(table)
            names = rows.select(
                F.col("_hoodie_record_key").alias("record_key"),
                F.col("_hoodie_file_name").alias("file_id"),
            )
            return keys.join(names, "record_key", "left").select("file_id")

        seconds: dict[str, list[float]] = {"ours": [], "join": []}
        contestants = {"ours": ours, "join": join}
        for round_number in range(int(rounds) + 1):
            for name in sorted(contestants, reverse=bool(round_number % 2)):
                started = perf_counter()
                counts: Any = contestants[name]().selectExpr("count(*)", "count(file_id)").first()
                if round_number:
                    seconds[name].append(perf_counter() - started)
                assert tuple(counts) == (sought, sought // 2), (name, counts)
        spark.stop()
    print(json.dumps(seconds))


if __name__ == "__main__":
    main(*sys.argv[1:])
