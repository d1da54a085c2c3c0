"""Tables for look-ups of record keys."""

from pyspark.sql import DataFrame, SparkSession

from tests.golden.recipe import Recipe, insert, numbers, put
from tests.hudi_tables import NO_METADATA_TABLE, hudi_options, numbered_rows


def _newer(spark: SparkSession) -> DataFrame:
    twice = numbered_rows(spark, 3000, 3010).drop("dt")
    days = spark.createDataFrame([("2026-01-01",), ("2026-01-02",)], "dt string")
    return numbered_rows(spark, 4000, 5000).unionByName(twice.crossJoin(days))


# Two partitions with a base file each, of many small pages; then a second base file in each. The
# keys 3000 to 3009 are in both partitions. Each write creates its own base files.
_SIZES = {"hoodie.parquet.small.file.limit": "0", "hoodie.parquet.page.size": "512"}
keys_in_four_base_files = Recipe(
    hudi_options("keys", partition_column="dt", **NO_METADATA_TABLE, **_SIZES),
    insert(numbered_rows, 0, 3000, keep="written"),
    insert(_newer, keep="added to"),
)

NOT_STORED = {"hoodie.populate.meta.fields": "false"}


def _keys_of_two_columns(**options: str) -> Recipe:
    """400 rows with keys of two columns; some parts are empty, and some look like two parts."""
    columns = (
        "if(id % 10 = 0, '', if(id % 10 = 1, concat('a,number:', id), concat('k', id))) AS id",
        "cast(id AS int) AS number",
        "1L AS ts",
    )
    own = hudi_options("t", record_key="id,number", **NO_METADATA_TABLE, **options)
    return Recipe(own, insert(numbers, 400, *columns))


keys_of_two_columns = _keys_of_two_columns(**{"hoodie.populate.meta.fields": "true"})
# The same without Hudi's own columns.
keys_of_two_columns_not_stored = _keys_of_two_columns(**NOT_STORED)

# Four rows whose key is a date, without Hudi's own columns.
_DAY = "date_add(date'2026-01-01', cast(id AS int)) AS id"
days_as_keys_not_stored = Recipe(
    hudi_options("t", **NO_METADATA_TABLE, **NOT_STORED),
    put(numbers, 4, _DAY, "1 ts", slices=None),
)
