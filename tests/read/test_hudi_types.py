"""Columns of the types VECTOR, BLOB and VARIANT, which Hudi has since 1.2: other columns are
indexed, and values are Spark's, or left to Spark."""

import re
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from hudi_index_service import open_table
from hudi_index_service.errors import (
    ColumnNotIndexable,
    NeedsSpark,
    StorageFailed,
    TableFeatureUnsupported,
)
from hudi_index_service.hudi.spark import collected
from tests.hudi_tables import NO_METADATA_TABLE, hudi_options, read_rows, write
from tests.indexed import indexed
from tests.same_rows import assert_same_rows

REFERENCE = T.StructType(
    [
        T.StructField("external_path", T.StringType()),
        T.StructField("offset", T.LongType()),
        T.StructField("length", T.LongType()),
        T.StructField("managed", T.BooleanType()),
    ]
)
BLOB = T.StructType(
    [
        T.StructField("type", T.StringType()),
        T.StructField("data", T.BinaryType()),
        T.StructField("reference", REFERENCE),
    ]
)
VARIANT = T.StructType(
    [
        T.StructField("metadata", T.BinaryType(), nullable=False),
        T.StructField("value", T.BinaryType(), nullable=False),
    ]
)
PLAIN = [
    T.StructField("id", T.StringType()),
    T.StructField("name", T.StringType()),
    T.StructField("ts", T.LongType()),
]


def special(name: str, kind: T.DataType, hudi_type: str) -> T.StructField:
    """A field as a Hudi writer wants it."""
    return T.StructField(name, kind, nullable=True, metadata={"hudi_type": hudi_type})


def vector(name: str, element: T.DataType, hudi_type: str) -> T.StructField:
    return special(name, T.ArrayType(element, containsNull=False), hudi_type)


COLUMNS = [
    vector("floats", T.FloatType(), "VECTOR(3)"),
    vector("doubles", T.DoubleType(), "VECTOR(2, DOUBLE)"),
    vector("bytes", T.ByteType(), "VECTOR(4, INT8)"),
    special("picture", BLOB, "BLOB"),
]


def rows(spark: SparkSession, start: int, stop: int, version: int = 0) -> DataFrame:
    """Rows with all of the types; each fifth has none of their values."""

    def values(n: int) -> list[object]:
        if n % 5 == 0:
            return [None] * len(COLUMNS)
        stored = (
            ("INLINE", bytearray(f"data {n} {version}".encode()), None)
            if n % 2
            else ("OUT_OF_LINE", None, (f"/pictures/{n}", n, None, False))
        )
        floats = [float(n), -0.0, float("nan") if n % 3 else float("inf")]
        return [floats, [n / 3, float(version)], [n % 128, -128, 127, -1], stored]

    return spark.createDataFrame(
        [(str(n), f"name{n % 10}", version, *values(n)) for n in range(start, stop)],
        T.StructType([*PLAIN, *COLUMNS]),
    )


by_name = partial(indexed, columns=["id", "name"], using="btree", if_not_exists=True)


@pytest.fixture(scope="module")
def copy_on_write(spark, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("types") / "table"
    options = hudi_options("types", **NO_METADATA_TABLE)
    write(rows(spark, 0, 200).coalesce(1), path, options, "insert")
    return path


@pytest.fixture(scope="module")
def merge_on_read(spark, tmp_path_factory) -> Path:
    """A table of vectors with log files."""
    path = tmp_path_factory.mktemp("types") / "merged"
    write_merged(path, rows(spark, 0, 200).drop("picture"), rows(spark, 50, 60, 1).drop("picture"))
    return path


def write_merged(path: Path, first: DataFrame, second: DataFrame) -> None:
    options = hudi_options("types", "MERGE_ON_READ", **NO_METADATA_TABLE)
    write(first.coalesce(1), path, options, "insert")
    write(second, path, options)
    assert list(path.glob(".*.log.*"))


WHERE = [
    "name = 'name3'",
    "id IN ('1', '50', '52')",
    "floats IS NULL AND name = 'name5'",
    "array_contains(doubles, 17.0D) OR array_contains(bytes, 52Y)",
    None,
]


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("kind", ["copy_on_write", "merge_on_read"])
def test_values_are_sparks(spark, request, kind, where):
    path = request.getfixturevalue(kind)
    plain = read_rows(spark, path)
    expected = collected(plain if where is None else plain.where(where))
    with by_name(path) as table:
        scan = table.scan(where)
        found = scan.to_arrow()
        assert_same_rows(found, expected)
        assert_same_rows(collected(scan.to_spark(spark)), expected)
    assert found.schema.equals(expected.schema)


def test_blobs_in_log_files_are_left_to_spark(spark, tmp_path):
    write_merged(tmp_path, rows(spark, 0, 50), rows(spark, 10, 20, 1))
    where, names = "name = 'name3'", ["id", "ts"]
    with by_name(tmp_path) as table:
        with pytest.raises(NeedsSpark, match=r"has log files\. .* column picture holds a BLOB"):
            table.scan(where, columns=names).to_arrow()
        base_files = table.scan(where, query_type="read_optimized").to_arrow()
    plain = read_rows(spark, tmp_path, **{"hoodie.datasource.query.type": "read_optimized"})
    assert_same_rows(base_files, collected(plain.where(where)))
    with by_name(tmp_path, spark=spark) as table:
        found = table.scan(where).to_arrow()
    assert_same_rows(found, collected(read_rows(spark, tmp_path).where(where)))


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        ("floats", "VECTOR(3)"),
        ("doubles", "VECTOR(2, DOUBLE)"),
        ("bytes", "VECTOR(4, INT8)"),
        ("picture", "BLOB"),
        ("PICTURE.reference.external_path", "BLOB"),
    ],
)
@pytest.mark.parametrize("using", ["lucene", "btree"])
def test_columns_of_these_types_are_not_indexed(copy_on_write, column, kind, using):
    refusal = pytest.raises(ColumnNotIndexable, match=re.escape(kind))
    with open_table(copy_on_write) as table, refusal as refused:
        table.create_index("by_type", ["name", column], using=using)
    assert column.lower() in refused.value.message


def test_several_columns_of_a_type(spark, tmp_path):
    """Later ones refer to the type by its name in Avro."""
    within = T.StructType([special("blob", BLOB, "BLOB"), T.StructField("n", T.LongType())])
    fields = [
        *PLAIN,
        vector("first", T.FloatType(), "VECTOR(2)"),
        vector("second", T.FloatType(), "VECTOR(2)"),
        special("one", BLOB, "BLOB"),
        special("another", BLOB, "BLOB"),
        T.StructField("within", within),
        T.StructField("blobs", T.ArrayType(within)),
    ]
    data = [
        (str(n), f"name{n}", 0, [n + 0.5, 1.0], [0.0, -n / 3], blob, blob, (blob, n), [(blob, n)])
        for n, blob in [(1, ("INLINE", b"1", None)), (2, None), (3, ("INLINE", b"", None))]
    ]
    options = hudi_options("several", **NO_METADATA_TABLE)
    write(spark.createDataFrame(data, T.StructType(fields)), tmp_path, options, "insert")
    with by_name(tmp_path) as table:
        found = table.scan("name IN ('name1', 'name2', 'name3')").to_arrow()
        for column in ("second", "another", "within.blob", "within.blob.data"):
            with pytest.raises(ColumnNotIndexable, match=r"VECTOR\(2\)|BLOB"):
                table.create_index("by_type", [column])
    assert_same_rows(found, collected(read_rows(spark, tmp_path)))


def test_a_variant_is_left_to_spark(spark, tmp_path):
    """Spark 3.5 writes one as its two parts, but cannot read the table at all; the other columns
    are read here."""
    fields = [*PLAIN, special("v", VARIANT, "VARIANT")]
    data = [(str(n), f"name{n % 3}", 0, (bytearray(b"\x01"), bytearray([n]))) for n in range(30)]
    frame = spark.createDataFrame(data, T.StructType(fields))
    write_merged(tmp_path, frame, frame.where("id < '2'"))
    with by_name(tmp_path) as table:
        found = table.scan("name = 'name2'", columns=["id", "name", "ts"]).to_arrow()
        assert_same_rows(found, collected(frame.where("name = 'name2'").drop("v")))
        assert table.scan("name = 'name2'").count() == 10
        for scan in (
            table.scan("name = 'name2'"),
            table.scan("name = 'name2' AND v IS NULL", columns=["id"]),
            table.scan("name = 'name2'", columns=["id", "v"]),
        ):
            with pytest.raises(TableFeatureUnsupported, match=r"Column v .* VARIANT") as refused:
                scan.to_arrow()
            assert "leave the column out" in refused.value.remedy
        for column in ("v", "v.value"):
            with pytest.raises(ColumnNotIndexable, match="VARIANT"):
                table.create_index("by_variant", [column])
    by_spark = pytest.raises(StorageFailed, match="Spark cannot read")
    with by_name(tmp_path, spark=spark) as table, by_spark:
        table.scan("name = 'name2'").to_arrow()
