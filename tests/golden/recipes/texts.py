"""Tables of texts for full-text search."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.golden.recipe import Writing, recipe
from tests.hudi_tables import NO_METADATA_TABLE, hudi_options, write

ROWS = 240
TEXTS = [
    "Buying a new car", "selling the OLD car", "new, red-blue boat", "car; new", "newcar", None, "",
    "a new old car", "Cars are new", "tag42 fast", "tag421 slow", "TAG42!",
]  # fmt: skip


def text_of(key: int) -> str | None:
    """The text of a row of `searched_texts` after its last step."""
    return TEXTS[(key + (100 <= key < 120)) % len(TEXTS)]


@recipe
def searched_texts(table: Writing) -> None:
    """Merge on read, not partitioned: a base file; a second one; then a log file for the second
    one, and a third base file."""
    spark, path = table.spark, table.path
    extra = {"hoodie.parquet.small.file.limit": "0", **NO_METADATA_TABLE}
    options = hudi_options("texts", "MERGE_ON_READ", **extra)
    write(_texts(spark, 0, 80), path, options, "bulk_insert")
    table.keep("one base file")
    write(_texts(spark, 80, 160), path, options, "bulk_insert")
    table.keep("two base files")
    write(_texts(spark, 100, 120, version=1), path, options)
    write(_texts(spark, 160, ROWS), path, options, "bulk_insert")
    table.keep("updated and added to")


@recipe
def rfc_messages(table: Writing) -> None:
    """RFC-51's three messages."""
    rows = [
        ("1", "Summer is coming", "UserA"),
        ("2", "Buying a new car", "UserA"),
        ("3", "Buying a new home", "UserB"),
    ]
    frame = table.spark.createDataFrame(rows, "id string, msg string, sender string")
    write(frame, table.path, hudi_options("messages", ordering_column=None), "insert")
    table.keep()


def _texts(spark: SparkSession, start: int, end: int, version: int = 0) -> DataFrame:
    """Keys [start, end) with texts determined by key and version."""
    texts = F.array(*(F.lit(text) for text in TEXTS))
    place = (F.col("id") + version) % len(TEXTS)
    return spark.range(start, end, 1, 1).select(
        F.col("id").cast("string").alias("id"),
        F.element_at(texts, (place + 1).cast("int")).alias("msg"),
        (F.col("id") % 10).cast("int").alias("amount"),
        F.lit(version).cast("long").alias("ts"),
    )
