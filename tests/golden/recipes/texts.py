"""Tables of texts for full-text search."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.golden.recipe import Recipe, insert, put, upsert
from tests.hudi_tables import NO_METADATA_TABLE, hudi_options

ROWS = 240
TEXTS = [
    "Buying a new car", "selling the OLD car", "new, red-blue boat", "car; new", "newcar", None, "",
    "a new old car", "Cars are new", "tag42 fast", "tag421 slow", "TAG42!",
]  # fmt: skip


def text_of(key: int) -> str | None:
    """The text of a row of `searched_texts` after its last step."""
    return TEXTS[(key + (100 <= key < 120)) % len(TEXTS)]


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


# Merge on read, not partitioned: a base file; a second one; then a log file for the second one, and
# a third base file.
_OWN_FILES = {"hoodie.parquet.small.file.limit": "0", **NO_METADATA_TABLE}
searched_texts = Recipe(
    hudi_options("texts", "MERGE_ON_READ", **_OWN_FILES),
    put(_texts, 0, 80, keep="one base file"),
    put(_texts, 80, 160, keep="two base files"),
    upsert(_texts, 100, 120, version=1),
    put(_texts, 160, ROWS, keep="updated and added to"),
)

# RFC-51's three messages.
_MESSAGES = [
    ("1", "Summer is coming", "UserA"),
    ("2", "Buying a new car", "UserA"),
    ("3", "Buying a new home", "UserB"),
]
rfc_messages = Recipe(
    hudi_options("messages", ordering_column=None),
    insert(SparkSession.createDataFrame, _MESSAGES, "id string, msg string, sender string"),
)
