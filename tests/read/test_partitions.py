"""Partitions are left out by their path, and their columns read from it, as Spark does."""

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from hudi_index_service import IndexedTable, open_table
from hudi_index_service.optimizer.partitions import PartitionValues
from hudi_index_service.optimizer.plan import Access
from hudi_index_service.read.query import bind_query
from hudi_index_service.table.partition_path import PartitionPaths
from hudi_index_service.table.protocol import FileSlice, Snapshot
from hudi_index_service.table.spark import SparkHudiReader
from tests.hudi_tables import NO_METADATA_TABLE, hudi_options, numbered_rows, write
from tests.same_rows import assert_same_rows

HIVE_STYLE = {"hoodie.datasource.write.hive_style_partitioning": "true"}
URL_ENCODED = {"hoodie.datasource.write.partitionpath.urlencode": "true"}
# A record stays in its partition, whatever a later version of it says.
STAYS = {
    **NO_METADATA_TABLE,
    "hoodie.index.type": "GLOBAL_SIMPLE",
    "hoodie.simple.index.update.partition.path": "false",
}


def assert_sparks_answers(spark: SparkSession, table: IndexedTable, *predicates: str) -> None:
    """Every cell and count, by index and without."""
    reader = SparkHudiReader(spark, table.uri)
    for where in (None, *predicates):
        expected = reader.read(table.schema().names, where)
        for use_index in ("never", "auto"):
            scan = table.scan(where, use_index=use_index)  # type: ignore[arg-type]
            assert_same_rows(scan.to_arrow(), expected)
            assert scan.count() == expected.num_rows, where
            assert scan.exists() == bool(expected.num_rows), where


def pruned(table: IndexedTable, where: str) -> set[str]:
    """The partitions that a query leaves out."""
    plan = table.scan(where).explain().plan
    assert plan is not None
    skipped = [each for each in plan.slices if each.rule == "partition_pruning"]
    assert all(each.access is Access.SKIP for each in skipped)
    return {each.file_slice.partition for each in skipped}


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_record_that_stays_in_its_partition_has_the_value_of_the_path(
    spark: SparkSession, tmp_path: Path, table_type: str
) -> None:
    options = hudi_options("t", table_type, partition_column="dt", **STAYS)
    write(numbered_rows(spark, 0, 20), tmp_path, options, "bulk_insert")
    moved = numbered_rows(spark, 0, 1, version=1).selectExpr(
        "id", "msg", "amount", "ts", "'2026-01-02' AS dt"
    )
    write(moved, tmp_path, options)
    table = open_table(tmp_path)
    table.create_index("by_dt", ["dt", "amount"])
    table.build(strategy="all").raise_for_failures()
    assert_sparks_answers(
        spark,
        table,
        "id = '0'",
        "dt = '2026-01-01'",
        "dt = '2026-01-02'",
        "dt = '2026-01-01' AND amount = 1",
        "NOT (dt = '2026-01-01') OR amount = 1",
        "dt <> '2026-01-02' AND amount < 10",
    )
    assert pruned(table, "dt = '2026-01-02' AND amount = 1") == {"2026-01-01"}


def test_values_of_several_columns_hive_style_and_encoded(
    spark: SparkSession, tmp_path: Path
) -> None:
    options = hudi_options(
        "t", partition_column="name,number,day", **NO_METADATA_TABLE, **HIVE_STYLE, **URL_ENCODED
    )
    some = numbered_rows(spark, 0, 24).selectExpr(
        "id",
        "amount",
        "ts",
        "element_at(array('a b/c=d%2F', 'Zürich #?&', 'plain', '007'), "
        "cast(id % 4 AS int) + 1) AS name",
        "cast(id % 3 - 1 AS int) AS number",
        "date_add(date'2026-01-01', cast(id % 2 AS int)) AS day",
    )
    write(some, tmp_path, options, "bulk_insert")
    table = open_table(tmp_path)
    table.create_index("by_amount", ["amount"])
    assert_sparks_answers(
        spark,
        table,
        "name = 'a b/c=d%2F'",
        "name LIKE 'Z%' AND number = -1",
        "number IN (0, 7) AND amount > 10",
        "day > DATE'2026-01-01'",
        "name = '7' OR number > 0",
        "name = '007' AND day <= DATE'2026-01-01'",
    )
    left = {each for each in pruned(table, "number = 1 AND name = 'plain'") if "number=1" in each}
    assert left
    assert not any("name=plain" in each for each in left)


def test_null_and_empty_values_are_never_left_out(spark: SparkSession, tmp_path: Path) -> None:
    """And Spark decodes what looks encoded in a path, whether the table encodes it or not."""
    options = hudi_options("t", partition_column="part", **NO_METADATA_TABLE)
    some = numbered_rows(spark, 0, 20).selectExpr(
        "id",
        "ts",
        "amount",
        "element_at(array('a', '', null, '%41b', '%+1'), cast(id % 5 AS int) + 1) AS part",
    )
    write(some, tmp_path, options, "bulk_insert")
    table = open_table(tmp_path)
    for where in ("part = ''", "part IS NULL", "part = 'a'", "part = 'Ab'", "part = '\\u0001'"):
        assert table.scan(where).count() == 4
    reader = SparkHudiReader(spark, tmp_path)
    for where in ("part > 'A'", "part LIKE '%41%'", "part IN ('Ab', '%41b', '\\u0001')"):
        expected = reader.read(table.schema().names, where)
        assert_same_rows(table.scan(where).to_arrow(), expected)
    plain = {"a", "%41b", "%+1"}
    assert pruned(table, "part = ''") == plain
    assert pruned(table, "part IS NULL") == plain
    assert pruned(table, "part = 'a'") == plain - {"a"}
    assert pruned(table, "part = 'a' OR amount = 3") == set()
    assert pruned(table, "amount = 3") == set()


@pytest.mark.parametrize(
    ("properties", "path", "values"),
    [
        ({}, "7/a", {"i": 7, "s": "a"}),
        ({}, "07/a", {"s": "a"}),  # no int is spelled so
        ({}, "7", {}),
        ({}, "7/a/b", {}),  # a value with a slash
        ({}, "7/__HIVE_DEFAULT_PARTITION__", {"i": 7}),
        # Spark decodes them always, byte by byte.
        ({}, "7/a%2Fb", {"i": 7, "s": "a/b"}),
        ({}, "%37/%c3%A9%", {"i": 7, "s": "\u00c3\u00a9%"}),
        ({}, "7/%+a%-1%zz%2", {"i": 7, "s": "\n%-1%zz%2"}),
        (URL_ENCODED, "7/a%2Fb", {"i": 7, "s": "a/b"}),
        (HIVE_STYLE, "i=7/s=a", {"i": 7, "s": "a"}),
        (HIVE_STYLE, "i=7/t=a", {}),
        (HIVE_STYLE, "i=7/s=", {"i": 7}),
        ({"hoodie.table.keygenerator.type": "TIMESTAMP"}, "7/a", {}),
        ({"hoodie.table.keygenerator.type": "CUSTOM"}, "7/a", {}),
        ({"hoodie.table.keygenerator.type": None}, "7/a", {}),
        ({"hoodie.table.keygenerator.type": "SIMPLE_AVRO"}, "7/a", {"i": 7, "s": "a"}),
        (
            {
                "hoodie.table.keygenerator.type": None,
                "hoodie.table.keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator",
            },
            "7/a",
            {"i": 7, "s": "a"},
        ),
        (
            {
                "hoodie.table.keygenerator.type": None,
                "hoodie.table.keygenerator.class": "org.apache.hudi.keygen.CustomKeyGenerator",
            },
            "7/a",
            {},
        ),
        ({"hoodie.table.partition.fields": "d,x"}, "1.5/a", {}),  # a double has many spellings
    ],
)
def test_what_a_path_tells(
    properties: dict[str, str | None], path: str, values: dict[str, object]
) -> None:
    schema = pa.schema([("i", pa.int64()), ("s", pa.string()), ("d", pa.float64())])
    table = {
        "hoodie.table.partition.fields": "i,s",
        "hoodie.table.keygenerator.type": "COMPLEX",
        **properties,
    }
    known = {key: value for key, value in table.items() if value is not None}
    told = PartitionPaths.of(known).values(path, schema)
    assert {name: value.as_py() for name, value in told.items()} == values


NULL = "9/__HIVE_DEFAULT_PARTITION__"  # or '': its path does not tell `s`


@pytest.mark.parametrize(
    ("where", "left_out"),
    [
        ("i = 7", {"8/a", NULL}),
        ("i = 7 AND d > 1", {"8/a", NULL}),
        ("i = 7 OR d > 1", set()),
        ("i = 7 OR s = 'b'", {"8/a"}),
        ("i > 7 AND s <> 'a'", {"7/a", "7/b", "8/a"}),
        ("NOT (s IN ('a', 'b'))", {"7/a", "7/b", "8/a"}),
        ("i IS NULL", {"7/a", "7/b", "8/a", NULL}),
        ("s IS NULL", {"7/a", "7/b", "8/a"}),
        ("d > 1", set()),
        (None, set()),
    ],
)
def test_partitions_ruled_out(where: str | None, left_out: set[str]) -> None:
    schema = pa.schema([("i", pa.int64()), ("s", pa.string()), ("d", pa.float64())])
    slices = tuple(FileSlice(each, "f", None) for each in ("7/a", "7/b", "8/a", NULL, "x"))
    snapshot = Snapshot("1", slices, schema)
    asked = bind_query(where, None, schema, time_zone="UTC").normal_form
    told = PartitionValues.of(PartitionPaths(("i", "s")), snapshot)
    assert told.ruled_out(asked) == left_out
    assert PartitionValues.of(PartitionPaths(), snapshot).ruled_out(asked) == set()
