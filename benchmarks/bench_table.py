"""The table of the build benchmark: the same rows in every run, written by Hudi itself.

A message of six common words and a tag (of which there are 500,000), a sender (400,000), a city
(300), an amount (1,000,000), and columns without an index. At 4,000,000 rows, one base file
after clustering has about 363 MB.
"""

from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from dev.jars import bundle_path

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROOT = Path(__file__).resolve().parent.parent
NAME = "bench"

_WORDS = ["buying", "selling", "new", "old", "car", "home", "boat", "summer", "winter", "coming"]
_WORDS += ["going", "red", "blue", "fast", "slow", "quiet"]

OPTIONS = {
    "hoodie.table.name": NAME,
    "hoodie.datasource.write.table.type": "COPY_ON_WRITE",
    "hoodie.datasource.write.recordkey.field": "key",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.operation": "bulk_insert",
    "hoodie.datasource.write.keygenerator.class": (
        "org.apache.hudi.keygen.NonpartitionedKeyGenerator"
    ),
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider",
    # As many files as there are tasks, however large these get.
    "hoodie.parquet.max.file.size": str(64 << 30),
}


def spark_session(scratch: Path) -> "SparkSession":
    """Two cores, and Hudi with its extensions."""
    from hudi_index_service.hudi.spark import local_session

    return local_session(
        "hudi-index-bench",
        scratch / "warehouse",
        cores=2,
        memory="8g",
        bundle=bundle_path(),
        settings={"spark.local.dir": str(scratch / "spark")},
    )


def bench_rows(spark: "SparkSession", rows: int, files: int) -> "DataFrame":
    """The rows, in `files` tasks."""
    from pyspark.sql import functions as F

    def dice(salt: int):  # type: ignore[no-untyped-def]  # a Column
        return F.abs(F.xxhash64("id", F.lit(salt)))

    words = F.array(*[F.lit(word) for word in _WORDS])
    common = [F.element_at(words, (dice(i) % len(_WORDS) + 1).cast("int")) for i in range(6)]
    tag = F.concat(F.lit("tag"), (dice(77) % 500_000).cast("string"))
    return spark.range(0, rows, 1, files).select(
        F.concat(F.lit("k"), F.lpad(F.abs(F.xxhash64("id")).cast("string"), 19, "0")).alias("key"),
        F.concat_ws(" ", *common, tag).alias("msg"),
        F.concat(F.lit("User"), (dice(20) % 400_000).cast("string")).alias("sender"),
        F.concat(F.lit("city"), (dice(21) % 300).cast("string")).alias("city"),
        (dice(22) % 1_000_000).alias("amount"),
        (dice(23) % 100_000 / 7.0).alias("price"),
        (F.lit(1_767_225_600) + dice(24) % 31_536_000).cast("timestamp").alias("event_ts"),
        F.sha2(F.col("id").cast("string"), 256).alias("payload"),
        F.lit(0).cast("long").alias("ts"),
    )


def write_table(spark: "SparkSession", path: Path, rows: int, files: int) -> float:
    """Writes the table in `files` base files; returns the seconds."""
    return write_rows(bench_rows(spark, rows, files), path, files)


def write_rows(rows: "DataFrame", path: Path, files: int, partitioned_by: str = "") -> float:
    """Writes rows, of `files` tasks, as a table of as many base files; returns the seconds. The
    rows of a task are of one partition."""
    started = perf_counter()
    options = {**OPTIONS, "hoodie.bulkinsert.shuffle.parallelism": str(files)}
    if partitioned_by:
        options["hoodie.datasource.write.partitionpath.field"] = partitioned_by
        options["hoodie.datasource.write.keygenerator.class"] = (
            "org.apache.hudi.keygen.SimpleKeyGenerator"
        )
    (rows.write.format("hudi").options(**options).mode("overwrite").save(str(path)))
    return perf_counter() - started


def cluster(spark: "SparkSession", path: Path, codec: str = "gzip") -> float:
    """Clusters the table into base files of this codec; returns the seconds."""
    started = perf_counter()
    options = f"hoodie.parquet.compression.codec={codec}"
    call = f"path => '{path}', op => 'scheduleAndExecute', options => '{options}'"
    done = spark.sql(f"call run_clustering({call})").collect()
    if not done:
        raise SystemExit(f"There was nothing to cluster in {path}.")
    return perf_counter() - started


def base_files(path: Path) -> list[Path]:
    """The table's Parquet files, old slices included."""
    found = (each for each in path.rglob("*.parquet") if ".hoodie" not in each.parts)
    return sorted(found)
