"""TPC-H's lineitem as Hudi writes it, in six gzip files, indexed, and kept between runs.

`python -m benchmarks.scale.lineitem FOLDER SCALE` writes it if it is missing, by Spark in this
process, which ends before the measurements begin. At scale 1 it has 6.0 million rows, in the order
of `l_orderkey`. It has three columns more than TPC-H's: a record key of one column, an ordering
field, and `weight`, since no other one is a double.
"""

import shutil
import subprocess
import sys
from functools import reduce
from pathlib import Path
from time import perf_counter

from benchmarks.bench_table import spark_session, write_rows
from benchmarks.build import log
from hudi_index_service import Column, open_table

GENERATION = 1
"""Increased with every change of rows or indexes, so that older tables are not used."""

FILES = 6

INDEXED: list[str | Column] = [
    *("l_orderkey", "l_partkey", "l_suppkey", "l_extendedprice", "l_quantity", "l_shipdate"),
    *("l_shipmode", "l_returnflag"),
    Column(name="l_comment", options={"analyzer": "standard"}),
]

COLUMNS = (
    *("l_orderkey", "l_partkey", "l_suppkey", "l_linenumber", "l_quantity", "l_extendedprice"),
    *("l_discount", "l_tax", "l_returnflag", "l_linestatus", "l_shipdate", "l_commitdate"),
    *("l_receiptdate", "l_shipinstruct", "l_shipmode", "l_comment"),
)
"""TPC-H's sixteen."""


def folder_of(scratch: Path, scale: float) -> Path:
    """The table of this scale."""
    return scratch / f"lineitem-{GENERATION}-{scale:g}"


def prepare(scratch: Path, scale: float) -> None:
    """Writes and indexes the table."""
    from pyspark.sql import DataFrame
    from pyspark.sql import functions as F

    folder, parts = folder_of(scratch, scale), scratch / "generated"
    log(f"lineitem, scale {scale:g}: writing …")
    command = [str(Path(sys.executable).parent / "tpchgen-cli"), "parquet", "--quiet"]
    command += ["--tables", "lineitem", "--parts", str(FILES), "--scale-factor", str(scale)]
    subprocess.run([*command, "--output-dir", str(parts)], check=True)
    spark = spark_session(scratch)
    frames = [
        spark.read.parquet(str(each)).coalesce(1) for each in sorted(parts.rglob("*.parquet"))
    ]
    rows = reduce(DataFrame.union, frames).select(
        *COLUMNS,
        F.concat_ws("-", "l_orderkey", "l_linenumber").alias("key"),
        (F.pmod(F.xxhash64("l_orderkey", "l_linenumber"), F.lit(1_000_000)) / 7.0).alias("weight"),
        F.lit(0).cast("long").alias("ts"),
    )
    seconds = write_rows(rows, folder, FILES)
    spark.stop()
    shutil.rmtree(parts)
    log(f"lineitem, scale {scale:g}: written in {seconds:.0f} s; building its index …")
    started = perf_counter()
    with open_table(folder) as table:
        table.create_index("bench", INDEXED)
        table.build(strategy="all").raise_for_failures()
    log(f"lineitem, scale {scale:g}: indexed in {perf_counter() - started:.0f} s")


def main(scratch: str, scale: str) -> None:
    """Prepares the table if it is missing."""
    folder = Path(scratch)
    mark = folder_of(folder, float(scale)).with_suffix(".ready")
    if not mark.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        prepare(folder, float(scale))
        mark.touch()


if __name__ == "__main__":
    main(*sys.argv[1:])
