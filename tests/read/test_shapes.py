"""Tables of unusual shape: changed columns, types that cannot be indexed, old calendars.

What cannot be answered as Spark does is refused with a clear error, and left to Spark if there is
a session.
"""

from collections.abc import Sequence

import pyarrow.parquet as pq
import pytest

from hudi_index_service import IndexedTable, open_table
from hudi_index_service.errors import BuildFailed, ColumnNotIndexable, TableFeatureUnsupported
from hudi_index_service.hudi.spark import SparkHudiReader
from hudi_index_service.optimizer.plan import Access
from tests.golden.recipes.shapes import (
    CHANGED,
    NAMES,
    NESTED,
    NEW_FILES,
    NO_UTF8,
    NULL_PARTITIONS,
    TAGS,
    UMLAUT,
    WALL,
    WALL_CLOCK,
    keyed_rows,
)
from tests.golden.table import GoldenTable
from tests.hudi_tables import NO_METADATA_TABLE, hudi_options, read_rows, write
from tests.indexed import indexed
from tests.same_rows import assert_same_rows


def assert_sparks_answers(
    table: IndexedTable, golden: GoldenTable, predicates: Sequence[str], step: str | None = None
) -> None:
    """Compares rows, counts and existence for each predicate, with the index and without, with
    Spark's answers after a step, the last one by default."""
    for where in (None, *predicates):
        expected = golden.rows(step) if where is None else golden.answer(where, step)
        for scan in (table.scan(where), table.scan(where, use_index="never")):
            assert_same_rows(scan.to_arrow(), expected)
            assert scan.count() == expected.num_rows, where
            assert scan.exists() == bool(expected.num_rows), where


def test_columns_added_widened_and_in_another_order(golden, tmp_path):
    shape = golden("columns_added_and_widened")
    path = shape.put(tmp_path, "written")
    old = indexed(path, ["i", "d", "s"], name="before")
    shape.put(path)
    assert_sparks_answers(old, shape, CHANGED)  # entries from before the change
    assert_sparks_answers(indexed(path, ["i", "d", "s", "n"]), shape, CHANGED)


def test_a_scan_uses_the_schema_at_the_time_it_runs(golden, tmp_path):
    shape = golden("columns_added_and_widened")
    path = shape.put(tmp_path, "written")
    table = indexed(path, ["i"])
    equal, above = table.scan("i = 3000000000"), table.scan("i > 3000000000")
    assert (equal.count(), above.count()) == (0, 0)  # no int is that large
    shape.put(path)
    table.build(strategy="all").raise_for_failures()
    assert (equal.count(), above.count()) == (10, 0)
    assert equal.to_arrow().column("i").to_pylist() == [3_000_000_000] * 10
    assert shape.rows()["i"].to_pylist().count(3_000_000_000) == 10
    assert table.scan("i >= 2500000000", columns=["i"]).count() == 10


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_float_widened_to_double_needs_spark(spark, tmp_path, table_type):
    options = hudi_options("t", table_type, **NEW_FILES)
    number = "if(id < 0, null, cast(id * 0.1 AS {})) AS f"
    write(keyed_rows(spark, 0, 10, number.format("float")), tmp_path, options, "bulk_insert")
    if table_type == "COPY_ON_WRITE":
        write(keyed_rows(spark, 10, 20, number.format("double")), tmp_path, options, "bulk_insert")
    else:
        changed = keyed_rows(spark, 0, 2, number.format("double"), version=1)
        write(changed, tmp_path, options, "upsert")
    table = open_table(tmp_path)
    with pytest.raises(TableFeatureUnsupported, match="holds column f as float"):
        table.scan("f = 0.3").to_arrow()
    assert table.scan("id = '3'", columns=["id"]).count() == 1
    # Spark widens via the printed number: 0.3 and not 0.30000001192092896.
    by_spark = open_table(tmp_path, spark=spark).scan("f = 0.3D", columns=["id", "f"])
    assert by_spark.to_arrow().to_pylist() == [{"id": "3", "f": 0.3}]


def test_dates_in_the_legacy_calendar_need_spark(spark, tmp_path):
    modes = [f"spark.sql.parquet.{kind}RebaseModeInWrite" for kind in ("datetime", "int96")]
    before = {mode: spark.conf.get(mode) for mode in modes}
    for mode in modes:
        spark.conf.set(mode, "LEGACY")
    try:
        old = keyed_rows(
            spark,
            0,
            10,
            "date_add(date'1000-01-01', cast(id AS int)) AS born",
            "timestamp_seconds(id) AS seen",
        )
        write(old, tmp_path, hudi_options("t", **NO_METADATA_TABLE), "bulk_insert")
    finally:
        for mode, value in before.items():
            spark.conf.set(mode, value)
    table = open_table(tmp_path)
    with pytest.raises(TableFeatureUnsupported, match="column born in the legacy calendar"):
        table.scan("born = DATE'1000-01-03'").count()
    # Both calendars agree on the values within this column's statistics.
    assert table.scan("seen = TIMESTAMP'1970-01-01 00:00:02'", columns=["id"]).count() == 1
    table.create_index("by_time", ["seen"])
    with pytest.raises(BuildFailed, match="column born in the legacy calendar"):
        table.build(strategy="all").raise_for_failures()
    by_spark = open_table(tmp_path, spark=spark).scan("born = DATE'1000-01-03'", columns=["id"])
    assert by_spark.to_arrow().to_pylist() == [{"id": "2"}]


@pytest.mark.parametrize("name", ["null_partitions", "null_partitions_hive_style"])
def test_null_in_a_partition_column(golden, tmp_path, name):
    table = indexed(golden(name).put(tmp_path), ["day", "city"])
    assert_sparks_answers(table, golden(name), NULL_PARTITIONS)


def test_copy_on_write_slices_are_read_without_hudi_rs(golden, tmp_path):
    """hudi-rs cannot read such column names."""
    shape = golden("column_with_umlaut")
    assert_sparks_answers(indexed(shape.put(tmp_path), ["größe"]), shape, UMLAUT)


def test_log_files_with_column_names_that_hudi_rs_cannot_read_need_spark(spark, tmp_path):
    mor, size = tmp_path / "mor", "id AS `größe`"
    options = hudi_options("mor", "MERGE_ON_READ", **NO_METADATA_TABLE)
    write(keyed_rows(spark, 0, 10, size), mor, options, "bulk_insert")
    assert open_table(mor).scan("`größe` > '7'").count() == 2
    write(keyed_rows(spark, 0, 1, size, version=2), mor, options)
    with pytest.raises(TableFeatureUnsupported, match="größe"):
        open_table(mor).scan("id = '3'").count()
    assert open_table(mor, spark=spark).scan("`größe` > 7").count() == 2


def test_types_that_cannot_be_indexed_are_still_read(golden, tmp_path):
    shape = golden("nested_types")
    path = shape.put(tmp_path, "written")
    table = open_table(path)
    for column, type in {
        "numbers": "list<element: list<",
        "nested": "struct<x: int64",
        "nested.deep": "struct<y: double",
        "pairs": "map<string, int64",
        "days": "list<element: struct<days: list<",
    }.items():
        with pytest.raises(ColumnNotIndexable, match=f"Column {column}: .*{type}"):
            table.create_index("refused", [column])
    table = indexed(path, ["name", "nested.deep.y"])
    assert_sparks_answers(table, shape, NESTED, "written")
    shape.put(path)
    assert_sparks_answers(table, shape, NESTED)


def test_partitioning_by_a_struct_field_needs_spark(spark, tmp_path):
    options = hudi_options("t", partition_column="place.city", **NO_METADATA_TABLE)
    place = "named_struct('city', concat('c', id % 3), 'zip', id) AS place"
    write(keyed_rows(spark, 0, 12, place), tmp_path, options, "bulk_insert")
    with pytest.raises(TableFeatureUnsupported, match=r"partitioned by place\.city"):
        open_table(tmp_path).create_index("by_zip", ["place.zip"])
    with pytest.raises(TableFeatureUnsupported, match=r"partitioned by place\.city"):
        open_table(tmp_path).scan("place.zip = 3").count()
    assert open_table(tmp_path, spark=spark).scan("place.zip = 3").count() == 1


def test_arrays_in_the_older_two_level_layout(golden, tmp_path):
    shape = golden("arrays_of_two_levels")
    path = shape.put(tmp_path)
    (base_file,) = path.glob("*.parquet")
    assert pq.read_schema(base_file).field("tags").type.value_field.name == "array"
    assert_sparks_answers(indexed(path, ["tags"]), shape, TAGS)


def test_text_that_is_not_utf8(golden, tmp_path):
    shape = golden("texts_that_are_no_utf8")
    table = indexed(shape.put(tmp_path), ["s"])
    for where in NO_UTF8:
        expected = sorted(shape.answer(where).column("id").to_pylist())
        for use_index in ("auto", "never"):
            scan = table.scan(where, columns=["id"], use_index=use_index)
            assert sorted(scan.to_arrow().column("id").to_pylist()) == expected, where
            assert scan.count() == len(expected), where
    checked = table.verify(repair=True)
    assert (checked.entries > 0, checked.problems) == (True, ())
    assert len(table.builds()) == 1, "nothing was rebuilt"
    # Java decodes before it matches: one character here, three there.
    with pytest.raises(TableFeatureUnsupported, match="Column `s` holds text that is not UTF-8"):
        table.scan("s LIKE 'a_'", columns=["id"]).to_arrow()


def test_patterns_on_text_that_is_not_utf8_need_spark(spark, golden, tmp_path):
    path = golden("texts_that_are_no_utf8").put(tmp_path)
    by_spark = open_table(path, spark=spark).scan("s LIKE 'a_'", columns=["id"])
    assert by_spark.count() == SparkHudiReader(spark, path).count("s LIKE 'a_'") == 20


@pytest.mark.parametrize("name", ["wall_clock_times_in_version_6", "wall_clock_times"])
def test_timestamps_without_time_zone(golden, tmp_path, name):
    """hudi-rs does not know this type; base files are read without it."""
    table = indexed(golden(name).put(tmp_path), ["wall", "id", "s.at"])
    assert_sparks_answers(table, golden(name), WALL_CLOCK)
    assert all(table.scan(each).explain().plan.count(Access.INDEX) == 1 for each in WALL_CLOCK)


@pytest.mark.parametrize("version", ["6", "9"])
def test_log_files_with_timestamps_without_time_zone_need_spark(spark, tmp_path, version):
    options = hudi_options(
        "t",
        "MERGE_ON_READ",
        partition_column="part",
        **NO_METADATA_TABLE,
        **{"hoodie.write.table.version": version},
    )
    of_two = (f"{WALL} AS wall", "concat('p', id % 2) AS part")
    write(keyed_rows(spark, 0, 30, *of_two), tmp_path, options, "bulk_insert")
    write(keyed_rows(spark, 0, 1, *of_two, version=2), tmp_path, options)
    with pytest.raises(TableFeatureUnsupported, match="wall holds a timestamp without time"):
        open_table(tmp_path).scan("id IS NOT NULL").to_arrow()
    by_spark = open_table(tmp_path, spark=spark).scan("ts = 2")
    assert by_spark.count() == SparkHudiReader(spark, tmp_path).count("ts = 2") == 1
    # The slice without log files.
    assert open_table(tmp_path).scan("part = 'p1'").count() == 15


def test_merged_compacted_and_merged_again(golden, tmp_path):
    shape = golden("compacted_twice")
    path = shape.put(tmp_path, "compacted")
    table = indexed(path, ["name"])
    shape.put(path, "updated")
    assert_sparks_answers(table, shape, NAMES, "updated")
    shape.put(path, "compacted again")
    table.build(strategy="all").raise_for_failures()
    shape.put(path, "updated again")
    plan = table.scan("name = 'x1'").explain().plan
    assert {each.file_slice.partition: bool(each.file_slice.log_files) for each in plan.slices} == {
        "p0": True,
        "p1": False,
    }
    assert {each.access for each in plan.slices} == {Access.INDEX}
    assert_sparks_answers(table, shape, NAMES)


def test_a_partition_value_that_looks_like_hive_style_needs_spark(spark, tmp_path):
    path = tmp_path / "table"
    options = hudi_options("t", partition_column="part", **NEW_FILES)
    write(keyed_rows(spark, 0, 12, "concat('p=', id % 3) AS part"), path, options, "bulk_insert")
    with pytest.raises(TableFeatureUnsupported, match="p=0"):
        open_table(path).scan("id = '1'").to_arrow()
    # Spark shows 1 where the files hold p=1.
    found = open_table(path, spark=spark).scan(columns=["id", "part"]).to_arrow()
    by_spark = read_rows(spark, path).select("id", "part").collect()
    assert sorted(found.column("id").to_pylist()) == sorted(row["id"] for row in by_spark)
    assert {row["part"] for row in by_spark} == set(found.column("part").to_pylist())
    assert "p=1" not in found.column("part").to_pylist()
