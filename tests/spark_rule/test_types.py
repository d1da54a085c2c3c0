"""Columns of all types: plain queries give Spark's answers."""

# ruff: noqa: S608 - the queries are the test's own

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from hudi_index_service import open_table
from hudi_index_service.hudi.spark import collected
from hudi_index_service.sql.rule.columns import as_spark_sees
from hudi_index_service.sql.rule.uses import RelationUse
from tests.edited_tables import ROWS, commit_again, put_with_columns
from tests.golden.table import Golden
from tests.hudi_tables import NO_METADATA_TABLE, hudi_options, write
from tests.indexed import indexed
from tests.spark_rule import needs
from tests.spark_rule.conftest import MakeTable, Query, by_index

Agreed = Callable[[str | Query], tuple[RelationUse, ...]]

_VALUES = """
    SELECT * FROM VALUES
    (1Y, 2S, 3, 4L, 1.5f, double('NaN'), 1.25BD, 'ж 😀', X'00ff', DATE'1500-02-03',
     TIMESTAMP'1500-02-03 04:05:06.000007Z', true,
     named_struct('a', 1, 'b', array('x', NULL)), map('k', 1)),
    (-1Y, NULL, -3, NULL, -0.0f, double('-Infinity'), -0.01BD, '', X'', DATE'9999-12-31',
     TIMESTAMP'9999-12-31 23:59:59.999999Z', false, named_struct('a', NULL, 'b', NULL), NULL)
    AS t(tiny, small, n, big, f, d, price, msg, bytes, day, at, flag, s, m)
"""


@pytest.mark.fast
def test_every_type_of_spark_is_known(spark):
    rows = collected(frame := spark.sql(_VALUES))
    types = [each.dataType.jsonValue() for each in frame.schema]
    assert as_spark_sees(rows.schema, types) == rows.schema


@pytest.mark.fast
@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ("1", "1L"),
        ("TIMESTAMP'2024-01-01 00:00:00'", "TIMESTAMP_NTZ'2024-01-01'"),
        ("named_struct('a', 1)", "named_struct('a', 1L)"),
        ("named_struct('a', 1)", "named_struct('a', 1, 'b', 2)"),
        ("named_struct('a', 1)", "1"),
        ("1", "named_struct('a', 1)"),
        ("array(1)", "array(1L)"),
        ("map('a', 1)", "array(1)"),
        ("1.5BD", "1.25BD"),
    ],
)
def test_other_types_are_refused(spark, found, expected):
    rows = collected(spark.range(1).selectExpr(f"{found} AS x"))
    (kind,) = spark.range(1).selectExpr(f"{expected} AS x").schema
    assert as_spark_sees(rows.schema, [kind.dataType.jsonValue()]) is None


# Structs of which Spark needs only some fields.
STRUCTS = """
    SELECT string(id) AS id, id AS ts, concat('p', id % 2) AS part,
        if(id % 5 = 0, NULL, named_struct(
            'x', if(id % 3 = 0, NULL, concat('x', id)),
            'Y', int(id % 4),
            'deep', if(id % 4 = 0, NULL, named_struct('p', concat('p', id % 9), 'q', id))
        )) AS st,
        if(id % 7 = 0, NULL, array(named_struct('a', string(id), 'b', id), NULL)) AS items,
        map('k', named_struct('v', id, 'w', string(id))) AS props
    FROM range({first}, {last})
"""


@pytest.fixture(scope="module")
def structs(spark: SparkSession, make_table: MakeTable) -> None:
    """A table of 80 rows; one of its two base files has log files."""
    rows, columns = spark.sql(STRUCTS.format(first=0, last=80)), ["id", "st.x", "st.deep.p"]
    kind, parted = "MERGE_ON_READ", {"partition_column": "part"}
    path = make_table("structs", rows, columns, kind, **parted)
    changed = spark.sql(STRUCTS.format(first=40, last=60)).where("part = 'p0'")
    write(changed, path, hudi_options("structs", kind, **parted, **NO_METADATA_TABLE))


OF_STRUCTS = [
    "SELECT id FROM structs WHERE st.x = 'x7'",
    "SELECT st.x FROM structs WHERE ST.X IN ('x7', 'x8', 'x44')",
    "SELECT st.y, st.deep.q FROM structs WHERE st.x LIKE 'x1%' OR st.x = 'x50'",
    "SELECT st.deep FROM structs WHERE st.deep.p = 'p3'",
    "SELECT st FROM structs WHERE st.x = 'x7'",
    # NULL structs, NULL fields, and fields of a NULL struct.
    "SELECT id, st.y, st IS NULL AS none FROM structs WHERE id IN ('4', '5', '9', '40', '41')",
    "SELECT id, st.deep.q, st.deep IS NULL AS none FROM structs WHERE id IN ('4', '5', '9', '40')",
    # In arrays and maps.
    "SELECT items.b FROM structs WHERE id IN ('6', '7', '44', '42')",
    "SELECT items[0].a, props['k'].w FROM structs WHERE id IN ('6', '7', '44')",
    "SELECT a.id, b.st.y FROM structs a JOIN structs b ON a.st.y = b.st.y AND a.ts + 1 = b.ts "
    "WHERE a.st.x = 'x7' AND b.st.x = 'x8'",
    "SELECT st.y FROM structs WHERE st.x = 'absent'",
]


@pytest.mark.usefixtures("structs")
@pytest.mark.parametrize("query", OF_STRUCTS)
def test_struct_fields_are_read_through_the_index(agreed: Agreed, query: str) -> None:
    assert all(by_index(agreed(query)))


@pytest.mark.usefixtures("structs", "read_by_tasks")
@pytest.mark.parametrize("query", [OF_STRUCTS[2], OF_STRUCTS[6], OF_STRUCTS[7]])
def test_struct_fields_are_read_by_tasks(agreed: Agreed, query: str) -> None:
    assert all(use.by_index and use.in_tasks for use in agreed(query))


@pytest.fixture(scope="module", params=["cow", "mor"])
def vectors(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[str]:
    """An indexed table, with log files if it is merged on read."""
    name, path = f"typed_{request.param}", tmp_path_factory.mktemp("typed") / request.param
    columns = "id STRING, name STRING, floats VECTOR(2), doubles VECTOR(2, DOUBLE), "
    columns += "picture BLOB, ts BIGINT"
    spark.sql(
        f"CREATE TABLE {name} ({columns}) USING hudi LOCATION '{path}' "
        f"TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts', type = '{request.param}', "
        "hoodie.metadata.enable = 'false')"
    )
    spark.sql(
        f"INSERT INTO {name} SELECT cast(id AS string), concat('name', id % 10), "
        "array(cast(id AS float), 1f), array(id / 3, double('nan')), named_struct('type', 'INLINE',"
        "'data', cast(cast(id AS string) AS binary), 'reference', NULL), 0L FROM range(100)"
    )
    spark.sql(f"UPDATE {name} SET ts = 1, floats = array(-1f, 0f) WHERE id IN ('3', '4')")
    indexed(path, ["id", "name"]).close()
    yield name
    spark.sql(f"DROP TABLE {name}")


@needs.HUDI_1_2
@pytest.mark.parametrize("columns", ["*", "id, floats, doubles[0]", "count(floats), max(ts)"])
def test_values_are_sparks(
    agreed: Agreed, costs: Callable[..., None], vectors: str, columns: str
) -> None:
    costs(spark_scan_ms=1e12)
    uses = agreed(f"SELECT {columns} FROM {vectors} WHERE name = 'name3'")
    has_logs = vectors.endswith("_mor")
    assert by_index(uses) == [not has_logs]
    if has_logs:
        assert "column picture holds a BLOB" in uses[0].reason


# Base files with columns in other types than the table's.
MS = 1_720_569_600_123  # 2024-07-10
MICROS, MILLIS = (
    {"type": "long", "logicalType": f"timestamp-{unit}"} for unit in ("micros", "millis")
)


@pytest.fixture(scope="module")
def retyped(golden: Golden, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with milliseconds that the file says are microseconds, and the last commit not;
    numbers that became text, and a float that became double. Indexed as far as possible, and
    before the last commit."""
    path = tmp_path_factory.mktemp("types") / "table"
    columns = {
        "at": (pa.array(range(MS, MS + ROWS), pa.timestamp("us", "UTC")), MICROS),
        "number": (pa.array(range(-5, ROWS - 5), pa.int64()), "string"),
        "price": (pa.array([each / 10 for each in range(ROWS)], pa.float32()), "double"),
    }
    put_with_columns(golden, path, columns)
    with open_table(path) as table:
        table.create_index("some", ["at", "number", "price", "id"], using="btree")
        assert list(table.build(strategy="all").built[0].skipped) == ["price"]
    commit_again(path, {"at": MILLIS})
    return path


@pytest.mark.parametrize("columns", [["*"], ["id"], ["count(*)"], ["id", "at", "number", "price"]])
@pytest.mark.parametrize(
    "where",
    [
        "at > '2024-01-01'",
        "at < '1971-01-01'",
        "at > '2024-07-10 00:00:00.150'",
        "number = '7'",
        "number LIKE '-%' AND id = '2'",
        "price = 0.1D",
        "id = '7' AND price > 0.1D",
    ],
)
def test_queries_agree(
    agreed: Agreed, costs: Callable[..., None], retyped: Path, columns: list[str], where: str
) -> None:
    costs(spark_scan_ms=1e12)
    agreed(
        lambda session: (
            session.read.format("hudi").load(str(retyped)).where(where).selectExpr(*columns)
        )
    )
