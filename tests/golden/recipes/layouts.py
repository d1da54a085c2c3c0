"""Base files in the layouts that Hudi writes."""

from pyspark.sql import DataFrame, SparkSession

from tests.golden.recipe import Recipe, numbers, put
from tests.hudi_tables import NO_METADATA_TABLE, hudi_options

ROWS = 3_000  # per layout
SMALL_PAGES = {"hoodie.parquet.page.size": "2048", "hoodie.parquet.small.file.limit": "0"}
CODEC = "hoodie.parquet.compression.codec"
LARGE_BLOOM_FILTER = {
    "hoodie.bloom.index.filter.type": "SIMPLE",
    "hoodie.index.bloom.num_entries": "400000",
}
BY_HUDI: dict[str, dict[str, str]] = {
    "snappy": {CODEC: "snappy", "hoodie.parquet.block.size": "40000"},
    "zstd": {CODEC: "zstd"},
    "lz4": {CODEC: "lz4"},
    "uncompressed": {CODEC: "uncompressed", **LARGE_BLOOM_FILTER},
}
BY_OTHERS = (
    *("v2 pages", "no page index", "int96", "page checksums"),
    *("brotli", "lz4_raw", "v2 gzip", "delta"),
)
"""Layouts into which a test rewrites base files that are GZIP here."""

PREDICATES = [
    "name = 'name7'",
    "name = 'name7' AND number < 200",
    "name IN ('name8', 'name9') AND place.zip > 90 AND at > TIMESTAMP'1999-01-01 00:00:00'",
    "name IS NULL AND text LIKE 'a%'",
    "at = TIMESTAMP'2000-01-01 00:05:00'",
    "name > 'name998'",
    "number BETWEEN 40 AND 45 OR name = 'name1'",
]
FEW = "name = 'name7' AND number < 2000"


def _rows(spark: SparkSession, *layouts: str) -> DataFrame:
    """The same rows for each layout."""
    listed = ", ".join(f"'{layout}'" for layout in layouts)
    repeated = spark.range(0, ROWS, 1, 1).selectExpr("id", f"explode(array({listed})) AS layout")
    return repeated.selectExpr(
        "concat(layout, id) AS id",
        "layout",
        "if(id % 50 = 0, null, concat('name', id % 1000)) AS name",
        "id AS number",
        "repeat(substr(md5(cast(id AS string)), 1, 8), 4) AS text",
        "timestamp_seconds(946684800 + id * 60) AS at",
        "if(id % 7 = 0, null, named_struct('zip', cast(id % 100 AS int), 'city', 'c')) AS place",
        "if(id % 6 = 0, null, array(id, null)) AS tags",
        "cast(id * 1.25 AS decimal(30, 2)) AS cost",
        "cast(0 AS bigint) AS ts",
    )


# The same rows in a base file of each layout; the layout's name is its partition.
base_file_layouts = Recipe(
    hudi_options("t", partition_column="layout", **NO_METADATA_TABLE, **SMALL_PAGES),
    put(_rows, "gzip", *BY_OTHERS),
    *(put(_rows, layout, options=own) for layout, own in BY_HUDI.items()),
    lambda table: table.keep("written", PREDICATES),
)

# Rows without Hudi's own columns.
_BARE = {**NO_METADATA_TABLE, **SMALL_PAGES, "hoodie.populate.meta.fields": "false"}
without_hudis_columns = Recipe(hudi_options("t", **_BARE), put(_rows, "bare", answers=[FEW]))

ID, TS = "cast(id AS string) AS id", "cast(0 AS bigint) AS ts"
# Pages of more than 256 KB, compressed as LZ4 in Hadoop's framing.
_TEXT = "repeat(substr(md5(cast(id AS string)), 1, 8), 17) AS text"
large_pages_of_lz4 = Recipe(
    hudi_options("t", **NO_METADATA_TABLE, **{CODEC: "lz4"}),
    put(numbers, 4_000, ID, "concat('name', id) AS name", _TEXT, TS),
)

# 1,200 rows of 100 KB each.
_LONG = "concat(id, repeat(sha2(cast(id AS string), 512), 800)) AS text"
rows_of_many_bytes = Recipe(
    hudi_options("t", **NO_METADATA_TABLE),
    put(numbers, 1_200, ID, "cast(id % 2 AS string) AS name", _LONG, TS),
)
