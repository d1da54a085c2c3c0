"""Writes real Hudi tables through Spark for the tests.

Rows that matter are written by `write`; table services run through Hudi's own procedures, on a
path, so that no table has to be registered.
"""

from pathlib import Path

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

# Some services and the non-blocking writers ask for a lock; within one JVM this one is enough.
IN_PROCESS_LOCK = {
    "hoodie.write.lock.provider": ("org.apache.hudi.client.transaction.lock.InProcessLockProvider"),
}

# Writes twice as fast; for tests that turn on something else.
NO_METADATA_TABLE = {"hoodie.metadata.enable": "false"}

# File groups that have only log files until a compaction runs.
BUCKET_INDEX_NON_BLOCKING = {
    "hoodie.index.type": "BUCKET",
    "hoodie.index.bucket.engine": "SIMPLE",
    "hoodie.bucket.index.num.buckets": "1",
    "hoodie.write.concurrency.mode": "NON_BLOCKING_CONCURRENCY_CONTROL",
    "hoodie.clean.failed.writes.policy": "LAZY",
    "hoodie.cleaner.policy.failed.writes": "LAZY",
    **IN_PROCESS_LOCK,
}


def hudi_options(
    name: str,
    table_type: str = "COPY_ON_WRITE",
    *,
    record_key: str = "id",
    ordering_column: str | None = "ts",
    partition_column: str | None = None,
    **extra: str,
) -> dict[str, str]:
    """Write options of a small table without inline services.

    Args:
        name: The table's name.
        table_type: ``COPY_ON_WRITE`` or ``MERGE_ON_READ``.
        record_key: The key column, or several, separated by commas.
        ordering_column: The column that decides between versions of a row; None for none.
        partition_column: The partition column, or several, separated by commas.
        extra: More options; pass those with dots as ``**{"hoodie.…": "…"}``.
    """
    options = {
        "hoodie.table.name": name,
        "hoodie.datasource.write.table.type": table_type,
        # SQL's MERGE and the procedures read the type by this key.
        "hoodie.table.type": table_type,
        "hoodie.datasource.write.recordkey.field": record_key,
        "hoodie.datasource.write.partitionpath.field": partition_column or "",
        "hoodie.upsert.shuffle.parallelism": "2",
        "hoodie.insert.shuffle.parallelism": "2",
        "hoodie.bulkinsert.shuffle.parallelism": "2",
        "hoodie.delete.shuffle.parallelism": "2",
        # Hudi's own column statistics double the time of a small write.
        "hoodie.metadata.index.column.stats.enable": "false",
        "hoodie.compact.inline": "false",
        "hoodie.clustering.inline": "false",
    }
    if ordering_column is not None:
        options["hoodie.datasource.write.precombine.field"] = ordering_column
    if partition_column is None:
        options["hoodie.datasource.write.keygenerator.class"] = (
            "org.apache.hudi.keygen.NonpartitionedKeyGenerator"
        )
    elif "," in partition_column or "," in record_key:
        options["hoodie.datasource.write.keygenerator.class"] = (
            "org.apache.hudi.keygen.ComplexKeyGenerator"
        )
    return {**options, **extra}


def numbered_rows(spark: SparkSession, start: int, stop: int, version: int = 0) -> DataFrame:
    """Small rows for keys [start, stop): ``id`` (text), ``msg``, ``amount`` (3 * id + version),
    ``ts`` (the version) and ``dt`` (even ids 2026-01-01, odd ones 2026-01-02)."""
    number = F.col("id")
    return spark.range(start, stop).select(
        number.cast("string").alias("id"),
        F.concat(F.lit("Buying car "), (number % 7).cast("string")).alias("msg"),
        (number * 3 + version).alias("amount"),
        F.lit(version).cast("long").alias("ts"),
        F.concat(F.lit("2026-01-0"), (number % 2 + 1).cast("string")).alias("dt"),
    )


def write(
    rows: DataFrame,
    path: Path | str,
    options: dict[str, str],
    operation: str = "upsert",
    mode: str = "append",
) -> None:
    """One Hudi write of `rows`: ``upsert``, ``insert``, ``bulk_insert``, ``delete``,
    ``insert_overwrite``, ``insert_overwrite_table``."""
    (
        rows.write.format("hudi")
        .options(**options)
        .option("hoodie.datasource.write.operation", operation)
        .mode(mode)
        .save(str(path))
    )


def run_clustering(
    spark: SparkSession, path: Path | str, op: str = "scheduleAndExecute", options: str = ""
) -> list[Row]:
    """Clusters the table: `op` is ``schedule``, ``execute`` or ``scheduleAndExecute``."""
    arguments = f", options => '{options}'" if options else ""
    return spark.sql(f"call run_clustering(path => '{path}', op => '{op}'{arguments})").collect()


def run_compaction(
    spark: SparkSession, path: Path | str, op: str = "scheduleAndExecute"
) -> list[Row]:
    """Compacts the MERGE_ON_READ table, however few delta commits it has: `op` is ``schedule``,
    ``run`` or ``scheduleAndExecute``."""
    return spark.sql(
        f"call run_compaction(op => '{op}', path => '{path}', "
        "options => 'hoodie.compact.inline.max.delta.commits=1')"
    ).collect()


def timeline_folder(path: Path | str) -> Path:
    """Where the table keeps its instants: ``.hoodie/timeline``, or ``.hoodie`` on version 6."""
    folder = Path(path, ".hoodie", "timeline")
    return folder if folder.is_dir() else folder.parent


def forget_commit(path: Path | str) -> str:
    """Makes the table's latest data commit unfinished, as if the writer had died before its last
    step: the files it wrote stay. Returns the name of the instant's file that went."""
    completed = sorted(
        file
        for file in timeline_folder(path).iterdir()
        if file.suffix in (".commit", ".deltacommit", ".replacecommit")
    )
    completed[-1].unlink()
    # Hadoop's checksum of the file that went.
    completed[-1].with_name(f".{completed[-1].name}.crc").unlink(missing_ok=True)
    return completed[-1].name


def read_rows(spark: SparkSession, path: Path | str, **options: str) -> DataFrame:
    """The table as Spark reads it."""
    return spark.read.format("hudi").options(**options).load(str(path))


def as_if_changed_on_read(path: Path) -> None:
    """Makes the table Spark's to read, as a change of its schema on read would."""
    (path / ".hoodie" / ".schema").mkdir(exist_ok=True)
    (path / ".hoodie" / ".schema" / "20260101000000000.schemacommit").touch()


def write_four_base_files(spark: SparkSession, path: Path, rows: int) -> None:
    """A table of `numbered_rows` with two base files in each of its two partitions."""
    options = hudi_options("four", partition_column="dt", **NO_METADATA_TABLE)
    unsorted = {**options, "hoodie.bulkinsert.sort.mode": "NONE"}
    write(numbered_rows(spark, 0, rows).repartition(2), path, unsorted, "bulk_insert")
    assert len(list(path.glob("*/*.parquet"))) == 4
