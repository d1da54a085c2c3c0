"""The tables of `benchmarks.scale`, written by Hudi, indexed, and kept between runs.

`python -m benchmarks.scale.tables FOLDER FILES…` writes those that are missing, by Spark in this
process, which ends before the measurements begin. Each value is a hash of the row's number, the
same in every run. A value of `u` occurs in about five base files; `v` is a number without order;
record keys are spread over all files. The table of 1,000 base files has 100 partitions.
"""

import os
import shutil
import sys
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from benchmarks.bench_table import spark_session, write_rows
from benchmarks.build import log
from hudi_index_service import Column, open_table

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession

GENERATION = 3
"""Increased with every change of rows or indexes, so that older tables are not used."""

ROWS_A_FILE = {1: 2_000_000, 6: 300_000, 100: 20_000, 1_000: 2_000, 10_000: 2_000}
"""Base files of a table → rows of each."""

PARTITIONS = {1_000: 100}
"""Base files of a table → its partitions; others are not partitioned."""

FILES_A_VALUE = 5
V_VALUES = 1_000_000_000

INDEXED: list[str | Column] = [
    *("key", "u", "v", "seq", "city", "amount"),
    Column(name="msg", options={"analyzer": "standard", "keyword": "false"}),
]
LARGEST_INDEXED: list[str | Column] = ["key", "u", "v"]
"""Of the table of 10,000 base files, whose index would otherwise take an hour of each run."""

_WORDS = ("buying", "selling", "new", "old", "car", "home", "boat", "summer", "winter", "coming")


SMALLER = "BENCH_SCALE_SMALLER"
"""Environment variable: by what the rows of each file are divided, to try things out."""


def smaller() -> int:
    """The value of `SMALLER`."""
    return int(os.environ.get(SMALLER, "1"))


def folder_of(scratch: Path, files: int) -> Path:
    """The table of so many base files."""
    return scratch / f"generation-{GENERATION}-{smaller()}" / f"files-{files}"


def rows_a_file(files: int) -> int:
    """Rows of each base file of the table."""
    return ROWS_A_FILE[files] // smaller()


def rows_of(files: int) -> int:
    """Rows of the table in all."""
    return files * rows_a_file(files)


def distinct_u(files: int) -> int:
    """Distinct values of `u`."""
    return rows_of(files) // FILES_A_VALUE


def key_of(number: "SparkColumn") -> "SparkColumn":
    """The record key of the row of this number."""
    from pyspark.sql import functions as F

    digits = F.lpad(F.abs(F.xxhash64(number)).cast("string"), 19, "0")
    return F.concat(F.lit("k"), digits)


def _rows(spark: "SparkSession", files: int) -> "DataFrame":
    from pyspark.sql import functions as F

    def dice(salt: int, most: int) -> Any:
        return F.pmod(F.xxhash64("id", F.lit(salt)), F.lit(most))

    words = F.array(*map(F.lit, _WORDS))
    common = [F.element_at(words, (dice(i, len(_WORDS)) + 1).cast("int")) for i in range(6)]
    return spark.range(0, rows_of(files), 1, files).select(
        key_of(F.col("id")).alias("key"),
        F.concat(F.lit("u"), dice(30, distinct_u(files)).cast("string")).alias("u"),
        dice(31, V_VALUES).alias("v"),
        F.col("id").alias("seq"),
        F.concat(F.lit("city"), dice(32, 300).cast("string")).alias("city"),
        dice(33, 1_000_000).alias("amount"),
        F.concat_ws(" ", *common, F.concat(F.lit("tag"), dice(34, 500_000))).alias("msg"),
        (dice(35, 100_000) / 7.0).alias("price"),
        F.concat(F.lit("note"), dice(36, 50_000).cast("string")).alias("note"),
        F.sha2(F.col("id").cast("string"), 256).alias("payload"),
        F.lit(0).cast("long").alias("ts"),
        F.concat(F.lit("p"), _partition(F.col("id"), files).cast("string")).alias("part"),
    )


def _partition(number: "SparkColumn", files: int) -> "SparkColumn":
    """Of the row of this number: the same for all rows of a file."""
    from pyspark.sql import functions as F

    return F.floor(number / rows_a_file(files)) % PARTITIONS.get(files, 1)


def is_ready(scratch: Path, files: int) -> bool:
    """Whether the table exists and is indexed."""
    return _mark(scratch, files).is_file()


def _mark(scratch: Path, files: int) -> Path:
    return folder_of(scratch, files).with_name(f"files-{files}.ready")


def prepare(spark: "SparkSession", scratch: Path, files: int) -> None:
    """Writes and indexes a table."""
    folder = folder_of(scratch, files)
    log(f"{files} base files: writing {rows_of(files):,} rows …")
    partitioned_by = "part" if files in PARTITIONS else ""
    seconds = write_rows(_rows(spark, files), folder, files, partitioned_by)
    log(f"{files} base files: written in {seconds:.0f} s; building their index …")
    started = perf_counter()
    with open_table(folder) as table:
        table.create_index("bench", LARGEST_INDEXED if files == max(ROWS_A_FILE) else INDEXED)
        table.build(strategy="all").raise_for_failures()
    log(f"{files} base files: indexed in {perf_counter() - started:.0f} s")
    _mark(scratch, files).touch()


def with_stored_values(scratch: Path, files: int) -> Path:
    """A copy of the table by hard links, whose index also stores the values of a further column, so
    that queries read no base file; made if it is missing."""
    copy = folder_of(scratch, files).with_name(f"files-{files}-stored")
    mark = copy.with_name(f"{copy.name}.ready")
    if not mark.is_file():
        shutil.rmtree(copy, ignore_errors=True)
        without_index = shutil.ignore_patterns(".index")
        source = folder_of(scratch, files)
        shutil.copytree(source, copy, copy_function=os.link, ignore=without_index)
        with open_table(copy) as table:
            table.create_index("bench", INDEXED, include=["note"])
            table.build(strategy="all").raise_for_failures()
        mark.touch()
    return copy


def main(scratch: str, *files: str) -> None:
    """Prepares the tables of so many base files."""
    folder = Path(scratch)
    missing = [each for each in map(int, files) if not is_ready(folder, each)]
    if missing:
        folder.mkdir(parents=True, exist_ok=True)
        spark = spark_session(folder)
        for each in missing:
            prepare(spark, folder, each)
        spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
