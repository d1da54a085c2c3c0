"""The tables of the optimizer's benchmark, written by Hudi, indexed, and kept between runs.

The same rows in every run: each value is a hash of the row's number. Numbers of base files are 1,
20 and 100; of each there is one table as it was written, sorted by nothing but `seq`, and one
clustered by a column. Estimates are hard because of:

- correlated columns: a city lies in one country, a day in one month; amounts depend on categories;
- skew: names, cities, categories and words by Zipf's law, rare flags and states, one hot key;
- the same values sorted (`seq`) and shuffled (`mixed`);
- NULLs, few and nearly all; near-unique numbers and texts; two columns that no index has.

And two tables of TPC-H's, whose dates and states are correlated: orders, and lineitem clustered.

`python -m benchmarks.optimizer.tables <folder> [<name> …]` writes those that are missing, by Spark
in this process, which ends before the measurements begin.
"""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from benchmarks.bench_table import spark_session, write_rows
from benchmarks.build import log
from hudi_index_service import Column, open_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

GENERATION = 1
"""Increased with every change of rows, layouts or indexes, so that older tables are not used."""


@dataclass(frozen=True)
class Layout:
    """A table.

    Attributes:
        files: Base files.
        rows: Rows in all.
        clustered_by: The column that rows are sorted by; None for as written.
        kind: Of rows: ``generated``, or a table of TPC-H's.
    """

    files: int
    rows: int
    clustered_by: str | None
    kind: str = "generated"

    @property
    def name(self) -> str:
        """The folder's name."""
        prefix = "" if self.kind == "generated" else f"{self.kind}-"
        return f"{prefix}{self.files}-{self.clustered_by or 'written'}"

    @property
    def group(self) -> str:
        """Its group in the results: the number of base files, or ``tpch``."""
        return str(self.files) if self.kind == "generated" else "tpch"


LAYOUTS = (
    Layout(1, 2_000_000, None),
    Layout(1, 2_000_000, "city"),
    Layout(20, 2_000_000, None),
    Layout(20, 2_000_000, "day"),
    Layout(100, 2_500_000, None),
    Layout(100, 2_500_000, "city"),
    Layout(1, 450_000, None, "orders"),
    Layout(20, 1_800_000, "l_shipdate", "lineitem"),
)

_SCALE = "0.3"

INDEXED: dict[str, tuple[str | Column, ...]] = {
    "generated": (
        *("seq", "mixed", "ref", "city", "country", "day", "month", "category", "amount", "name"),
        *("status", "flag", "hot", "note", "weight", "closed"),
    ),
    "orders": (
        *("o_orderkey", "o_custkey", "o_orderdate", "o_orderstatus", "o_orderpriority"),
        "o_comment",
    ),
    "lineitem": (
        *("l_orderkey", "l_partkey", "l_suppkey", "l_quantity", "l_discount", "l_returnflag"),
        *("l_linestatus", "l_shipdate", "l_commitdate", "l_receiptdate", "l_shipinstruct"),
        *("l_shipmode", "l_comment"),
    ),
}

_DAYS = 730
_CITIES, _COUNTRIES, _NAMES, _WORDS, _CATEGORIES = 3_000, 40, 30_000, 2_000, 24


def _rows(spark: "SparkSession", layout: Layout) -> "DataFrame":
    from pyspark.sql import functions as F

    def dice(salt: int, most: int):  # type: ignore[no-untyped-def]  # a Column
        return F.pmod(F.xxhash64("id", F.lit(salt)), F.lit(most))

    def zipf(salt: int, most: int):  # type: ignore[no-untyped-def]
        """Rank k from 0, with a frequency of about 1/(k+1)."""
        part = dice(salt, 1 << 40) / float(1 << 40)
        return F.floor(F.pow(F.lit(float(most)), part)).cast("int") - 1

    def padded(text: str, number, width: int):  # type: ignore[no-untyped-def]
        return F.concat(F.lit(text), F.lpad(number.cast("string"), width, "0"))

    city, category, day = zipf(1, _CITIES), zipf(2, _CATEGORIES), dice(3, _DAYS)
    words = [padded("w", zipf(20 + i, _WORDS), 4) for i in range(5)]
    date = F.date_add(F.lit("2024-01-01").cast("date"), day.cast("int"))
    rows = spark.range(0, layout.rows, 1, layout.files).select(
        F.concat(F.lit("k"), F.lpad(F.abs(F.xxhash64("id")).cast("string"), 19, "0")).alias("key"),
        F.col("id").alias("seq"),
        F.pmod(F.col("id") * 1_000_003, F.lit(layout.rows)).alias("mixed"),
        padded("ref-", dice(4, 2 * layout.rows), 8).alias("ref"),
        padded("city", city, 4).alias("city"),
        padded("land", city % _COUNTRIES, 2).alias("country"),
        date.alias("day"),
        F.date_format(date, "yyyy-MM").alias("month"),
        padded("cat", category, 2).alias("category"),
        (category * 1_000 + dice(5, 1_500)).cast("long").alias("amount"),
        padded("name", zipf(6, _NAMES), 5).alias("name"),
        F.when(dice(7, 1_000) < 970, "done")
        .when(dice(7, 1_000) < 999, "open")
        .otherwise("lost")
        .alias("status"),
        (dice(8, 5_000) == 0).alias("flag"),
        F.when(dice(9, 10) < 3, F.lit(42)).otherwise(dice(10, 1_000_000)).alias("hot"),
        F.when(dice(11, 10) < 4, F.concat_ws(" ", *words)).alias("note"),
        F.when(dice(12, 20) > 0, dice(13, 1_000_000) / 1_000.0).alias("weight"),
        F.when(
            dice(14, 2_000) == 0, (dice(15, 31_536_000) + 1_735_689_600).cast("timestamp")
        ).alias("closed"),
        (dice(16, 100_000) / 7.0).alias("price"),
        F.sha2(F.col("id").cast("string"), 256).alias("payload"),
        F.lit(0).cast("long").alias("ts"),
    )
    return _laid_out(rows, layout, "mixed")


def _tpch_rows(spark: "SparkSession", layout: Layout, scratch: Path) -> "DataFrame":
    """With a key of one column, and an ordering field."""
    from pyspark.sql import functions as F

    command = [str(Path(sys.executable).parent / "tpchgen-cli"), "parquet", "--quiet"]
    where = ["--scale-factor", _SCALE, "--tables", layout.kind, "--output-dir", str(scratch)]
    subprocess.run([*command, *where], check=True)
    keys = {"orders": ["o_orderkey"], "lineitem": ["l_orderkey", "l_linenumber"]}[layout.kind]
    rows = spark.read.parquet(str(scratch / f"{layout.kind}.parquet")).select(
        F.concat_ws("-", *keys).alias("key"), "*", F.lit(0).cast("long").alias("ts")
    )
    return _laid_out(rows, layout, "key")


def _laid_out(rows: "DataFrame", layout: Layout, then: str) -> "DataFrame":
    if layout.clustered_by is None:
        return rows.coalesce(layout.files)
    order = (layout.clustered_by, then)
    return rows.repartitionByRange(layout.files, *order).sortWithinPartitions(*order)


def folder_of(scratch: Path, layout: Layout) -> Path:
    """The folder of a table."""
    return scratch / f"generation-{GENERATION}" / layout.name


def is_ready(scratch: Path, layout: Layout) -> bool:
    """Whether the table exists and is indexed."""
    return _mark(scratch, layout).is_file()


def _mark(scratch: Path, layout: Layout) -> Path:
    return folder_of(scratch, layout).with_name(f"{layout.name}.ready")


def prepare(spark: "SparkSession", scratch: Path, layout: Layout) -> None:
    """Writes and indexes a table."""
    folder = folder_of(scratch, layout)
    generated = layout.kind == "generated"
    rows = _rows(spark, layout) if generated else _tpch_rows(spark, layout, scratch)
    seconds = write_rows(rows, folder, layout.files)
    (scratch / f"{layout.kind}.parquet").unlink(missing_ok=True)
    log(f"{layout.name}: written in {seconds:.0f} s; building its index …")
    started = perf_counter()
    with open_table(folder) as table:
        table.create_index("bench", INDEXED[layout.kind])
        table.build(strategy="all").raise_for_failures()
    size = sum(each.stat().st_size for each in folder.rglob("*") if each.is_file())
    log(f"{layout.name}: indexed in {perf_counter() - started:.0f} s; {size / 2**20:.0f} MiB")
    _mark(scratch, layout).touch()


def main(scratch: str, *names: str) -> None:
    """Prepares the tables of these names; all if there is none."""
    folder = Path(scratch)
    missing = [each for each in LAYOUTS if not is_ready(folder, each)]
    spark = None
    for layout in missing:
        if names and layout.name not in names:
            continue
        if spark is None:
            folder.mkdir(parents=True, exist_ok=True)
            spark = spark_session(folder)
        log(f"{layout.name}: writing {layout.rows:,} rows …")
        prepare(spark, folder, layout)
    if spark is not None:
        spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
