"""The contestants of the build benchmark: our builds, Hudi's services, and Lance."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from benchmarks.bench_table import NAME, ROOT, base_files, cluster, write_table
from hudi_index_service import Column, open_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LANCE = ROOT / ".venv" / "bench"

COLUMNS = {
    "A": [
        Column(name="msg", options={"analyzer": "standard", "keyword": "false"}),
        Column(name="sender"),
        Column(name="city"),
        Column(name="amount"),
    ],
    "B": [
        Column(name="msg", options={"analyzer": "standard"}),
        Column(name="sender"),
        Column(name="city"),
        Column(name="amount"),
    ],
}
"""Of the indexes A and B."""


def read_whole(files: Iterable[Path]) -> None:
    """Reads files into the page cache: a virtual machine may have dropped them while other
    contestants ran."""
    for file in files:
        with file.open("rb") as content:
            while content.read(2**20):
                pass


def our_build(table: Path, index: str, spark: "SparkSession | None") -> tuple[float, int]:
    """Builds index A or B of every base file anew; returns the seconds and the index's bytes."""
    shutil.rmtree(table / ".hoodie" / ".index", ignore_errors=True)
    opened = open_table(table, spark=spark)
    opened.create_index("bench", COLUMNS[index])
    read_whole(base_files(table))
    started = perf_counter()
    build = opened.build(strategy="all").raise_for_failures()
    return perf_counter() - started, sum(outcome.index_bytes for outcome in build.built)


class Contestants:
    """One table, and everything that can be built on it. Before a contestant's clock starts, its
    input is read once; ours also builds the index of a small table.

    Args:
        scratch: Folder for tables.
        rows: Rows of the table.
        small: The small table; None for none.
    """

    def __init__(
        self,
        spark: "SparkSession",
        scratch: Path,
        rows: int,
        small: "Contestants | None" = None,
    ) -> None:
        self._spark = spark
        self._small = small
        self._written = scratch / f"written-{rows}"
        self.table = scratch / f"clustered-{rows}"
        self._scratch = scratch
        for folder in (self._written, self.table):
            shutil.rmtree(folder, ignore_errors=True)
        write_table(spark, self._written, rows, files=8)
        shutil.copytree(self._written, self.table)
        cluster(spark, self.table)
        self._index_by_hudi()

    @property
    def base_file(self) -> Path:
        """The base file that clustering wrote."""
        return max(base_files(self.table), key=lambda path: path.stat().st_size)

    def _index_by_hudi(self) -> None:
        """Creates Hudi's record index, which its secondary indexes need, and a first secondary
        index, which is dropped later."""
        self._spark.sql(f"drop table if exists {NAME}")
        self._spark.sql(f"create table {NAME} using hudi location '{self.table}'")
        with record_index(self._spark):
            self._spark.sql(f"create index record_index on {NAME} (key)")
            self._spark.sql(f"create index secondary on {NAME} (sender)")

    def hudi_secondary(self) -> float:
        """Seconds of Hudi's secondary index on one column."""
        with record_index(self._spark):
            self._spark.sql(f"drop index secondary on {NAME}")
            read_whole(base_files(self.table))
            started = perf_counter()
            self._spark.sql(f"create index secondary on {NAME} (sender)")
            return perf_counter() - started

    def clustering(self) -> float:
        """Seconds of clustering a fresh copy of the table as it was written."""
        copy = self._scratch / "to-be-clustered"
        shutil.copytree(self._written, copy)
        read_whole(base_files(copy))
        try:
            return cluster(self._spark, copy)
        finally:
            shutil.rmtree(copy)

    def ours(self, index: str) -> tuple[float, int]:
        """Seconds and bytes of our index A or B."""
        if self._small is not None:
            self._small.ours(index)
        return our_build(self.table, index, self._spark)

    def lance(self) -> tuple[float, int]:
        """Seconds and bytes of Lance's indexes of the same columns."""
        folder = self._scratch / "lance"
        shutil.rmtree(folder, ignore_errors=True)
        read_whole(base_files(self.table))
        command = [sys.executable, str(ROOT / "benchmarks" / "bench_lance.py")]
        environment = {**os.environ, "PYTHONPATH": str(LANCE)}
        result = json.loads(
            subprocess.run(
                [*command, str(self.base_file), str(folder)],
                env=environment,
                check=True,
                stdout=subprocess.PIPE,
            ).stdout
        )
        shutil.rmtree(folder)
        return result["seconds"], result["bytes"]


@contextmanager
def record_index(spark: "SparkSession") -> Iterator[None]:
    """Hudi's settings for its own indexes, which would slow down its other services."""
    lock = "org.apache.hudi.client.transaction.lock.InProcessLockProvider"
    settings = {
        "hoodie.metadata.record.index.enable": "true",
        "hoodie.metadata.global.record.level.index.enable": "true",
        "hoodie.write.lock.provider": lock,
    }
    # Hudi's SQL reads what SET has set, not what conf.set has.
    for key, value in settings.items():
        spark.sql(f"set {key}={value}")
    try:
        yield
    finally:
        for key in settings:
            spark.sql(f"reset {key}")
