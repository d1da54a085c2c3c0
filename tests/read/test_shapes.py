"""Tables of unusual shape: columns that changed, types that no index holds, old calendars.

What cannot be answered as Spark does is refused by name, and served by Spark where there is a
session.
"""

from collections.abc import Sequence
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from hudi_index_service import IndexedTable, open_table
from hudi_index_service.errors import BuildFailed, ColumnNotIndexable, TableFeatureUnsupported
from hudi_index_service.optimizer.plan import Access
from hudi_index_service.table.spark import SparkHudiReader
from tests.hudi_tables import NO_METADATA_TABLE, hudi_options, read_rows, run_compaction, write
from tests.same_rows import assert_same_rows

# Each write makes base files of its own.
NEW_FILES = {**NO_METADATA_TABLE, "hoodie.parquet.small.file.limit": "0"}


def rows(spark: SparkSession, start: int, end: int, *columns: str, version: int = 0) -> DataFrame:
    """Keys [start, end) with `columns`, which are expressions over the number ``id``."""
    key = ("cast(id AS string) AS id", f"cast({version} AS bigint) AS ts")
    return spark.range(start, end, 1, 1).selectExpr(*key, *columns)


def indexed(path: Path, columns: Sequence[str]) -> IndexedTable:
    """The table, all its base files indexed by `columns`."""
    table = open_table(path)
    table.create_index("shape", list(columns))
    table.build(strategy="all").raise_for_failures()
    return table


def assert_sparks_answers(
    spark: SparkSession, table: IndexedTable, predicates: Sequence[str]
) -> None:
    """Rows, counts and existence for each predicate, by index and without."""
    reader = SparkHudiReader(spark, table.uri)
    names = reader.read([field.name for field in read_rows(spark, table.uri).schema]).column_names
    for where in (None, *predicates):
        expected = reader.read(names, where)
        for scan in (table.scan(where), table.scan(where, use_index="never")):
            assert_same_rows(scan.to_arrow(), expected)
            assert scan.count() == expected.num_rows, where
            assert scan.exists() == bool(expected.num_rows), where


def test_columns_added_widened_and_in_another_order(spark: SparkSession, tmp_path: Path) -> None:
    options = hudi_options("t", **NEW_FILES)
    before = rows(spark, 0, 20, "cast(id * 3 AS int) AS i", "cast(id AS int) AS d", "'old' AS s")
    write(before, tmp_path, options, "bulk_insert")
    old = open_table(tmp_path)
    old.create_index("before", ["i", "d", "s"])
    old.build(strategy="all").raise_for_failures()
    after = rows(
        spark,
        20,
        40,
        "if(id < 0, null, concat('new', id)) AS n",
        "'new' AS s",
        "cast(id + 0.5 AS double) AS d",
        "if(id % 2 = 0, 3000000000, id) AS i",
    )
    write(after, tmp_path, options, "bulk_insert")
    predicates = [
        "i = 3000000000 OR i < 30",
        "d > 18.5 AND d < 22",
        "NOT (n = 'new21')",
        "n <=> NULL AND s IN ('old', 'new') AND d >= 7",
    ]
    assert_sparks_answers(spark, old, predicates)  # entries from before the change
    assert_sparks_answers(spark, indexed(tmp_path, ["i", "d", "s", "n"]), predicates)


def test_a_scan_means_the_schema_of_the_moment_it_runs(spark: SparkSession, tmp_path: Path) -> None:
    options = hudi_options("t", **NEW_FILES)
    write(rows(spark, 0, 20, "cast(id AS int) AS i"), tmp_path, options, "bulk_insert")
    table = indexed(tmp_path, ["i"])
    equal, above = table.scan("i = 3000000000"), table.scan("i > 3000000000")
    assert (equal.count(), above.count()) == (0, 0)  # no int is as large
    wide = rows(spark, 20, 22, "if(id = 20, 3000000000, 2500000000) AS i")
    write(wide, tmp_path, options, "bulk_insert")
    table.build(strategy="all").raise_for_failures()
    assert (equal.count(), above.count()) == (1, 0)
    assert equal.to_arrow().column("i").to_pylist() == [3_000_000_000]
    assert read_rows(spark, tmp_path).where("i = 3000000000").count() == 1
    assert table.scan("i >= 2500000000", columns=["i"]).count() == 2


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_float_widened_to_double_is_sparks_to_read(
    spark: SparkSession, tmp_path: Path, table_type: str
) -> None:
    options = hudi_options("t", table_type, **NEW_FILES)
    number = "if(id < 0, null, cast(id * 0.1 AS {})) AS f"
    write(rows(spark, 0, 10, number.format("float")), tmp_path, options, "bulk_insert")
    if table_type == "COPY_ON_WRITE":
        write(rows(spark, 10, 20, number.format("double")), tmp_path, options, "bulk_insert")
    else:
        changed = rows(spark, 0, 2, number.format("double"), version=1)
        write(changed, tmp_path, options, "upsert")
    table = open_table(tmp_path)
    with pytest.raises(TableFeatureUnsupported, match="holds column f as float"):
        table.scan("f = 0.3").to_arrow()
    assert table.scan("id = '3'", columns=["id"]).count() == 1
    # Spark widens by way of the printed number: 0.3 and not 0.30000001192092896.
    by_spark = open_table(tmp_path, spark=spark).scan("f = 0.3D", columns=["id", "f"])
    assert by_spark.to_arrow().to_pylist() == [{"id": "3", "f": 0.3}]


def test_dates_in_the_legacy_calendar_are_sparks_to_read(
    spark: SparkSession, tmp_path: Path
) -> None:
    modes = [f"spark.sql.parquet.{kind}RebaseModeInWrite" for kind in ("datetime", "int96")]
    before = {mode: spark.conf.get(mode) for mode in modes}
    for mode in modes:
        spark.conf.set(mode, "LEGACY")
    try:
        old = rows(
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
    # Both calendars agree on what its statistics say of this column.
    assert table.scan("seen = TIMESTAMP'1970-01-01 00:00:02'", columns=["id"]).count() == 1
    table.create_index("by_time", ["seen"])
    with pytest.raises(BuildFailed, match="column born in the legacy calendar"):
        table.build(strategy="all").raise_for_failures()
    by_spark = open_table(tmp_path, spark=spark).scan("born = DATE'1000-01-03'", columns=["id"])
    assert by_spark.to_arrow().to_pylist() == [{"id": "2"}]


@pytest.mark.parametrize("hive_style", ["true", "false"])
def test_null_in_a_partition_column(spark: SparkSession, tmp_path: Path, hive_style: str) -> None:
    options = hudi_options(
        "t",
        partition_column="day,city",
        **NO_METADATA_TABLE,
        **{"hoodie.datasource.write.hive_style_partitioning": hive_style},
    )
    some = rows(
        spark,
        0,
        24,
        "if(id % 3 = 0, null, concat('d', id % 3)) AS day",
        "if(id % 4 = 0, null, concat('c ', id % 2)) AS city",
    )
    write(some, tmp_path, options, "bulk_insert")
    table = indexed(tmp_path, ["day", "city"])
    assert_sparks_answers(
        spark, table, ["day IS NULL", "city = 'c 1'", "day = 'd1' OR city IS NULL"]
    )


def test_column_names_that_hudi_rs_cannot_read(spark: SparkSession, tmp_path: Path) -> None:
    some = rows(spark, 0, 10, "id AS `größe`")
    # It is not asked for the slices of copy-on-write tables…
    cow, mor = tmp_path / "cow", tmp_path / "mor"
    write(some, cow, hudi_options("cow", **NO_METADATA_TABLE), "bulk_insert")
    assert_sparks_answers(spark, indexed(cow, ["größe"]), ["`größe` > 7", "id = '3'"])
    # …but for those of others.
    write(some, mor, hudi_options("mor", "MERGE_ON_READ", **NO_METADATA_TABLE), "bulk_insert")
    with pytest.raises(TableFeatureUnsupported, match="größe"):
        open_table(mor).scan("id = '3'").count()
    assert open_table(mor, spark=spark).scan("`größe` > 7").count() == 2


def test_types_that_no_index_holds_are_read_all_the_same(
    spark: SparkSession, tmp_path: Path
) -> None:
    columns = (
        "array(array(id), array(id + 1)) AS numbers",
        "named_struct('x', id, 'deep', named_struct('y', cast(id AS double))) AS nested",
        "map(concat('k', id), id) AS pairs",
        "array(named_struct('days', array(date'2020-01-01'))) AS days",
        "concat('name', id % 10) AS name",
    )
    options = hudi_options("t", "MERGE_ON_READ", partition_column="part", **NO_METADATA_TABLE)
    part = "concat('p', id % 2) AS part"
    write(rows(spark, 0, 60, *columns, part), tmp_path, options, "bulk_insert")
    table = open_table(tmp_path)
    for column, type in {
        "numbers": "list<element: list<",
        "nested": "struct<x: int64",
        "nested.deep": "struct<y: double",
        "pairs": "map<string, int64",
        "days": "list<element: struct<days: list<",
    }.items():
        with pytest.raises(ColumnNotIndexable, match=f"Column {column}: .*{type}"):
            table.create_index("refused", [column])
    table = indexed(tmp_path, ["name", "nested.deep.y"])
    predicates = [
        "name = 'name3'",
        "name IN ('name2', 'name9')",
        "nested.deep.y > 7 AND nested.x < 9",
        "pairs IS NOT NULL AND name = 'name1'",
    ]
    assert_sparks_answers(spark, table, predicates)
    changed = rows(spark, 2, 8, *columns, part, version=1).where("part = 'p0'")
    write(changed, tmp_path, options, "upsert")
    assert_sparks_answers(spark, table, predicates)


def test_partitioned_by_a_field_of_a_struct_is_sparks_to_read(
    spark: SparkSession, tmp_path: Path
) -> None:
    options = hudi_options("t", partition_column="place.city", **NO_METADATA_TABLE)
    place = "named_struct('city', concat('c', id % 3), 'zip', id) AS place"
    write(rows(spark, 0, 12, place), tmp_path, options, "bulk_insert")
    with pytest.raises(TableFeatureUnsupported, match=r"partitioned by place\.city"):
        open_table(tmp_path).create_index("by_zip", ["place.zip"])
    with pytest.raises(TableFeatureUnsupported, match=r"partitioned by place\.city"):
        open_table(tmp_path).scan("place.zip = 3").count()
    assert open_table(tmp_path, spark=spark).scan("place.zip = 3").count() == 1


def test_arrays_in_the_older_layout_of_two_levels(spark: SparkSession, tmp_path: Path) -> None:
    layout = "parquet.avro.write-old-list-structure"
    hadoop = spark._jsc.hadoopConfiguration()
    hadoop.set(layout, "true")
    try:
        some = rows(spark, 0, 20, "if(id % 3 = 0, null, array(concat('t', id % 5))) AS tags")
        write(some, tmp_path, hudi_options("t", **NO_METADATA_TABLE), "upsert")
    finally:
        hadoop.set(layout, "false")
    (base_file,) = tmp_path.glob("*.parquet")
    assert pq.read_schema(base_file).field("tags").type.value_field.name == "array"
    predicates = ["array_contains(tags, 't1')", "NOT array_contains(tags, 't1')", "tags IS NULL"]
    assert_sparks_answers(spark, indexed(tmp_path, ["tags"]), predicates)


def test_text_that_is_no_utf8(spark: SparkSession, tmp_path: Path) -> None:
    broken = "element_at(array(X'61FF', X'EDA080', X'6162', X'', null, X'FF61'), {})"
    pick = broken.format("cast(id % 6 AS int) + 1")
    some = rows(spark, 0, 60, f"cast({pick} AS string) AS s")
    write(some, tmp_path, hudi_options("t", **NO_METADATA_TABLE), "bulk_insert")
    table = indexed(tmp_path, ["s"])
    reader = SparkHudiReader(spark, tmp_path)
    for where in (
        "s = 'ab'",
        "s <> 'ab'",
        "s > 'a'",
        "s IN ('', 'ab')",
        "NOT (s <=> '')",
        "s LIKE 'a%'",
        "s LIKE '%a'",
        "s LIKE '%a%'",
        "s IS NULL",
    ):
        expected = sorted(reader.read(["id"], where).column("id").to_pylist())
        for use_index in ("auto", "never"):
            scan = table.scan(where, columns=["id"], use_index=use_index)
            assert sorted(scan.to_arrow().column("id").to_pylist()) == expected, where
            assert scan.count() == len(expected), where
    checked = table.verify(repair=True)
    assert (checked.entries > 0, checked.problems) == (True, ())
    assert len(table.builds()) == 1, "nothing was rebuilt"
    # Java decodes before it matches: one character here, three there.
    with pytest.raises(TableFeatureUnsupported, match="Column `s` holds text that is no UTF-8"):
        table.scan("s LIKE 'a_'", columns=["id"]).to_arrow()
    by_spark = open_table(tmp_path, spark=spark).scan("s LIKE 'a_'", columns=["id"])
    assert by_spark.count() == reader.count("s LIKE 'a_'") == 20


WALL = "if(id % 4 = 0, null, cast(timestamp_micros(id * 1000001 - 5000000) AS timestamp_ntz))"


@pytest.mark.parametrize("version", ["6", "9"])
def test_timestamps_without_time_zone(spark: SparkSession, tmp_path: Path, version: str) -> None:
    """hudi-rs knows no such type; base files are read without it."""
    columns = (f"{WALL} AS wall", f"named_struct('at', {WALL}) AS s")
    options = hudi_options("t", **NO_METADATA_TABLE, **{"hoodie.write.table.version": version})
    write(rows(spark, 0, 30, *columns), tmp_path, options, "bulk_insert")
    table = indexed(tmp_path, ["wall", "id", "s.at"])
    predicates = (
        "wall > TIMESTAMP_NTZ'1970-01-01 00:00:05'",
        "wall = TIMESTAMP_NTZ'1969-12-31 23:59:56.000001'",
        "wall IS NULL AND id > '2'",
        "s.at <= TIMESTAMP_NTZ'1970-01-01 00:00:00'",
        "id = '7'",
    )
    assert_sparks_answers(spark, table, predicates)
    assert all(table.scan(each).explain().plan.count(Access.INDEX) == 1 for each in predicates)


@pytest.mark.parametrize("version", ["6", "9"])
def test_log_files_with_timestamps_without_time_zone_are_sparks(
    spark: SparkSession, tmp_path: Path, version: str
) -> None:
    options = hudi_options(
        "t",
        "MERGE_ON_READ",
        partition_column="part",
        **NO_METADATA_TABLE,
        **{"hoodie.write.table.version": version},
    )
    of_two = (f"{WALL} AS wall", "concat('p', id % 2) AS part")
    write(rows(spark, 0, 30, *of_two), tmp_path, options, "bulk_insert")
    write(rows(spark, 0, 1, *of_two, version=2), tmp_path, options)
    with pytest.raises(TableFeatureUnsupported, match="wall holds a timestamp without time"):
        open_table(tmp_path).scan("id IS NOT NULL").to_arrow()
    by_spark = open_table(tmp_path, spark=spark).scan("ts = 2")
    assert by_spark.count() == SparkHudiReader(spark, tmp_path).count("ts = 2") == 1
    if version == "9":  # the slice without log files
        assert open_table(tmp_path).scan("part = 'p1'").count() == 15


def test_merged_compacted_and_merged_again(spark: SparkSession, tmp_path: Path) -> None:
    options = hudi_options(
        "t",
        "MERGE_ON_READ",
        partition_column="part",
        **NO_METADATA_TABLE,
        **{"hoodie.write.table.version": "6"},
    )

    def some(start: int, end: int, of: int) -> DataFrame:
        part = "concat('p', id % 2) AS part"
        name = f"if(id % 7 = 0, null, concat('x', id % {of})) AS name"
        return rows(spark, start, end, part, name, version=10 - of)

    write(some(0, 60, 7), tmp_path, options, "upsert")
    write(some(10, 20, 5), tmp_path, options, "upsert")
    run_compaction(spark, tmp_path)
    table = indexed(tmp_path, ["name"])
    write(some(15, 70, 4), tmp_path, options, "upsert")
    write(some(0, 5, 3).where("part = 'p0'"), tmp_path, options, "delete")
    predicates = ["name IS NULL", "name > 'x2'"]
    assert_sparks_answers(spark, table, predicates)
    run_compaction(spark, tmp_path)
    table.build(strategy="all").raise_for_failures()
    write(some(30, 40, 2).where("part = 'p0'"), tmp_path, options, "upsert")
    plan = table.scan("name = 'x1'").explain().plan
    assert plan is not None
    assert {each.file_slice.partition: each.access for each in plan.slices} == {
        "p0": Access.MERGE,
        "p1": Access.INDEX,
    }
    assert_sparks_answers(spark, table, predicates)


def test_a_partition_value_that_looks_like_hive_style_is_sparks(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "table"
    options = hudi_options("t", partition_column="part", **NEW_FILES)
    write(rows(spark, 0, 12, "concat('p=', id % 3) AS part"), path, options, "bulk_insert")
    with pytest.raises(TableFeatureUnsupported, match="p=0"):
        open_table(path).scan("id = '1'").to_arrow()
    # Spark shows 1 where the files hold p=1.
    found = open_table(path, spark=spark).scan(columns=["id", "part"]).to_arrow()
    by_spark = read_rows(spark, path).select("id", "part").collect()
    assert sorted(found.column("id").to_pylist()) == sorted(row["id"] for row in by_spark)
    assert {row["part"] for row in by_spark} == set(found.column("part").to_pylist())
    assert "p=1" not in found.column("part").to_pylist()
