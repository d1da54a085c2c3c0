"""Columns that changed between base files: what was built before serves on where it still fits, and
the answers are Spark's, with entries from before the change and from after it."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from hudi_index_service import open_table
from hudi_index_service.errors import ColumnNotFound, TableFeatureUnsupported
from hudi_index_service.optimizer.plan import Access
from tests.hudi_tables import hudi_options, write
from tests.read.test_shapes import NEW_FILES, assert_sparks_answers, indexed, rows

DROPS = {"hoodie.datasource.write.schema.allow.auto.evolution.column.drop": "true"}


@pytest.fixture
def row_by_row(spark: SparkSession) -> None:
    """Hudi's vectorized reader refuses types that changed inside structs and arrays."""
    spark.conf.set("spark.sql.parquet.enableVectorizedReader", "false")


@pytest.mark.usefixtures("row_by_row")
def test_fields_added_and_widened_inside_structs_and_arrays(
    spark: SparkSession, tmp_path: Path
) -> None:
    options = hudi_options("t", **NEW_FILES)
    before = rows(
        spark,
        0,
        20,
        "if(id % 5 = 0, null, named_struct('x', cast(id AS int), 'y', 'old')) AS p",
        "if(id % 4 = 0, null, array(cast(id AS int), null)) AS many",
        "cast(id * 1.25 AS decimal(10, 2)) AS cost",
    )
    write(before, tmp_path, options, "bulk_insert")
    old = open_table(tmp_path)
    old.create_index("before", ["p.x", "p.y", "many", "cost"])
    old.build(strategy="all").raise_for_failures()
    after = rows(
        spark,
        20,
        40,
        "if(id % 5 = 0, null, named_struct('x', id + 3000000000, 'z', id % 3, 'y', 'new')) AS p",
        "if(id % 4 = 0, null, array(id, id + 3000000000)) AS many",
        "cast(id * 1.25 AS decimal(22, 4)) AS cost",
    )
    write(after, tmp_path, options, "bulk_insert")
    predicates = [
        "p.x > 15",
        "p.z IS NULL AND p.y = 'old'",
        "p.z = 1",
        "p.y = 'new' OR p IS NULL",
        "array_contains(many, 3)",
        "NOT array_contains(many, 3000000021)",
        "cost = 12.5 OR cost > 45.1",
    ]
    assert_sparks_answers(spark, old, predicates)
    plan = old.scan("p.x > 15").explain().plan
    assert plan is not None
    assert plan.count(Access.INDEX) == 0  # its entry was built of 32-bit integers
    assert_sparks_answers(
        spark, indexed(tmp_path, ["p.x", "p.z", "p.y", "many", "cost"]), predicates
    )


def test_a_dropped_column_is_gone_and_another_takes_its_name(
    spark: SparkSession, tmp_path: Path
) -> None:
    options = hudi_options("t", **NEW_FILES, **DROPS)
    write(rows(spark, 0, 10, "concat('a', id) AS s", "id AS n"), tmp_path, options, "bulk_insert")
    table = open_table(tmp_path)
    table.create_index("both", ["s", "n"])
    table.build(strategy="all").raise_for_failures()
    write(rows(spark, 10, 20, "id AS n"), tmp_path, options, "bulk_insert")
    with pytest.raises(ColumnNotFound):
        table.scan("s = 'a1'").count()
    assert_sparks_answers(spark, table, ["n IN (3, 13)"])
    again = rows(spark, 20, 30, "if(id < 0, null, concat('b', id)) AS s", "id AS n")
    write(again, tmp_path, options, "bulk_insert")
    predicates = ["s = 'a1'", "s IS NULL", "s > 'a8'", "s LIKE 'b2%' AND n < 25"]
    assert_sparks_answers(spark, table, predicates)
    table.build(strategy="all").raise_for_failures()
    assert_sparks_answers(spark, table, predicates)


def test_a_column_renamed_on_read_is_sparks_to_read(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "table"
    options = hudi_options("renamed", **NEW_FILES)
    write(rows(spark, 0, 10, "concat('a', id) AS s"), path, options, "bulk_insert")
    before = open_table(path)
    before.create_index("by_s", ["s"])
    before.build(strategy="all").raise_for_failures()
    spark.sql(f"CREATE TABLE renamed USING hudi LOCATION '{path}'")
    settings = {"hoodie.schema.on.read.enable": "true", **DROPS}
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        spark.sql("ALTER TABLE renamed RENAME COLUMN s TO t")
        for table in (before, open_table(path)):
            with pytest.raises(TableFeatureUnsupported, match="schema was changed on read"):
                table.scan("t = 'a1'").count()
            with pytest.raises(TableFeatureUnsupported, match="schema was changed on read"):
                table.create_index("by_t", ["t"])
        found = open_table(path, spark=spark).scan("t = 'a1'", columns=["id", "t"]).to_arrow()
        assert found.to_pylist() == [{"id": "1", "t": "a1"}]
    finally:
        for key in settings:
            spark.conf.unset(key)
        spark.sql("DROP TABLE renamed")
