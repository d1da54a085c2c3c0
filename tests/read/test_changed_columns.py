"""Columns that changed between base files: older entries are used where they still fit, and the
answers are Spark's, with entries from before the change and from after it."""

import pytest

from hudi_index_service import open_table
from hudi_index_service.errors import ColumnNotFound, TableFeatureUnsupported
from hudi_index_service.optimizer.plan import Access
from tests.golden.recipes.shapes import (
    FIELDS,
    NEW_FILES,
    WITH_ANOTHER_TEXT,
    WITHOUT_TEXT,
    keyed_rows,
)
from tests.hudi_tables import hudi_options, write
from tests.indexed import indexed
from tests.read.test_shapes import assert_sparks_answers


def test_fields_added_and_widened_inside_structs_and_arrays(golden, tmp_path):
    shape = golden("fields_changed")
    path = shape.put(tmp_path, "written")
    old = indexed(path, ["p.x", "p.y", "many", "cost"], name="before")
    shape.put(path)
    assert_sparks_answers(old, shape, FIELDS)
    plan = old.scan("p.x > 15").explain().plan
    assert plan.count(Access.INDEX) == 0  # its entry was built from 32-bit integers
    after = indexed(path, ["p.x", "p.z", "p.y", "many", "cost"])
    assert_sparks_answers(after, shape, FIELDS)


def test_the_name_of_a_dropped_column_can_be_reused(golden, tmp_path):
    shape = golden("column_dropped")
    path = shape.put(tmp_path, "written")
    table = indexed(path, ["s", "n"])
    shape.put(path, "dropped")
    with pytest.raises(ColumnNotFound):
        table.scan("s = 'a1'").count()
    assert_sparks_answers(table, shape, WITHOUT_TEXT, "dropped")
    shape.put(path, "there again")
    assert_sparks_answers(table, shape, WITH_ANOTHER_TEXT)
    table.build(strategy="all").raise_for_failures()
    assert_sparks_answers(table, shape, WITH_ANOTHER_TEXT)


def test_a_column_renamed_on_read_needs_spark(spark, tmp_path):
    path = tmp_path / "table"
    options = hudi_options("renamed", **NEW_FILES)
    write(keyed_rows(spark, 0, 10, "concat('a', id) AS s"), path, options, "bulk_insert")
    before = indexed(path, ["s"], name="by_s")
    spark.sql(f"CREATE TABLE renamed USING hudi LOCATION '{path}'")
    settings = {
        "hoodie.schema.on.read.enable": "true",
        "hoodie.datasource.write.schema.allow.auto.evolution.column.drop": "true",
    }
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
