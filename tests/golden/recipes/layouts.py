"""Base files in the layouts that Hudi writes."""

from pyspark.sql import DataFrame, SparkSession

from tests.golden.recipe import Writing, recipe
from tests.hudi_tables import NO_METADATA_TABLE, hudi_options, write

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


@recipe
def base_file_layouts(table: Writing) -> None:
    """The same rows in a base file of each layout; the layout's name is its partition."""
    options = hudi_options("t", partition_column="layout", **NO_METADATA_TABLE, **SMALL_PAGES)
    write(_rows(table.spark, "gzip", *BY_OTHERS), table.path, options, "bulk_insert")
    for layout, own in BY_HUDI.items():
        write(_rows(table.spark, layout), table.path, options | own, "bulk_insert")
    table.keep("written", PREDICATES)


@recipe
def without_hudis_columns(table: Writing) -> None:
    """Rows without Hudi's own columns."""
    extra = {**NO_METADATA_TABLE, **SMALL_PAGES, "hoodie.populate.meta.fields": "false"}
    write(_rows(table.spark, "bare"), table.path, hudi_options("t", **extra), "bulk_insert")
    table.keep("written", [FEW])


@recipe
def large_pages_of_lz4(table: Writing) -> None:
    """Pages of more than 256 KB, compressed as LZ4 in Hadoop's framing."""
    rows = table.spark.range(0, 4_000, 1, 1).selectExpr(
        "cast(id AS string) AS id",
        "concat('name', id) AS name",
        "repeat(substr(md5(cast(id AS string)), 1, 8), 17) AS text",
        "cast(0 AS bigint) AS ts",
    )
    options = hudi_options("t", **NO_METADATA_TABLE, **{CODEC: "lz4"})
    write(rows, table.path, options, "bulk_insert")
    table.keep()


@recipe
def rows_of_many_bytes(table: Writing) -> None:
    """1,200 rows of 100 KB each."""
    rows = table.spark.range(0, 1_200, 1, 1).selectExpr(
        "cast(id AS string) AS id",
        "cast(id % 2 AS string) AS name",
        "concat(id, repeat(sha2(cast(id AS string), 512), 800)) AS text",
        "cast(0 AS bigint) AS ts",
    )
    write(rows, table.path, hudi_options("t", **NO_METADATA_TABLE), "bulk_insert")
    table.keep()


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
