"""Tables for look-ups of record keys."""

from tests.golden.recipe import Writing, recipe
from tests.hudi_tables import NO_METADATA_TABLE, hudi_options, numbered_rows, write


@recipe
def keys_in_four_base_files(table: Writing) -> None:
    """Two partitions with a base file each, of many small pages; then a second base file in each.
    The keys 3000 to 3009 are in both partitions."""
    spark, path = table.spark, table.path
    # Each write creates its own base files.
    sizes = {"hoodie.parquet.small.file.limit": "0", "hoodie.parquet.page.size": "512"}
    options = hudi_options("keys", partition_column="dt", **NO_METADATA_TABLE, **sizes)
    write(numbered_rows(spark, 0, 3000), path, options, "insert")
    table.keep("written")
    twice = numbered_rows(spark, 3000, 3010).drop("dt")
    days = spark.createDataFrame([("2026-01-01",), ("2026-01-02",)], "dt string")
    newer = numbered_rows(spark, 4000, 5000).unionByName(twice.crossJoin(days))
    write(newer, path, options, "insert")
    table.keep("added to")


@recipe
def keys_of_two_columns(table: Writing) -> None:
    """400 rows with keys of two columns; some parts are empty, and some look like two parts."""
    _keys_of_two_columns(table, stored=True)


@recipe
def keys_of_two_columns_not_stored(table: Writing) -> None:
    """The same without Hudi's own columns."""
    _keys_of_two_columns(table, stored=False)


@recipe
def days_as_keys_not_stored(table: Writing) -> None:
    """Four rows whose key is a date, without Hudi's own columns."""
    virtual = {**NO_METADATA_TABLE, "hoodie.populate.meta.fields": "false"}
    rows = table.spark.range(0, 4).selectExpr(
        "date_add(date'2026-01-01', cast(id AS int)) AS id", "1 ts"
    )
    write(rows, table.path, hudi_options("t", **virtual), "bulk_insert")
    table.keep()


def _keys_of_two_columns(table: Writing, *, stored: bool) -> None:
    populated = {"hoodie.populate.meta.fields": str(stored).lower()}
    options = hudi_options("t", record_key="id,number", **NO_METADATA_TABLE, **populated)
    rows = table.spark.range(0, 400, 1, 1).selectExpr(
        "if(id % 10 = 0, '', if(id % 10 = 1, concat('a,number:', id), concat('k', id))) AS id",
        "cast(id AS int) AS number",
        "1L AS ts",
    )
    write(rows, table.path, options, "insert")
    table.keep()
