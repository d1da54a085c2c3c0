"""Structs of which Spark needs only some fields."""

from collections.abc import Callable

import pytest
from pyspark.sql import SparkSession

from hudi_index_service.sql.rule.uses import RelationUse
from tests.hudi_tables import NO_METADATA_TABLE, hudi_options, write
from tests.spark_rule.conftest import MakeTable, by_index

Agreed = Callable[[str], tuple[RelationUse, ...]]

ROWS = """
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
KINDS = {"structs": "COPY_ON_WRITE", "merged_structs": "MERGE_ON_READ"}


@pytest.fixture(scope="module")
def _written(spark: SparkSession, make_table: MakeTable) -> None:
    """Two tables of 80 rows; in the second, one of the two base files has log files."""
    for name, kind in KINDS.items():
        rows, columns = spark.sql(ROWS.format(first=0, last=80)), ["id", "st.x", "st.deep.p"]
        path = make_table(name, rows, columns, kind, partition_column="part")
        if kind == "MERGE_ON_READ":
            changed = spark.sql(ROWS.format(first=40, last=60)).where("part = 'p0'")
            options = hudi_options(name, kind, partition_column="part", **NO_METADATA_TABLE)
            write(changed, path, options)


QUERIES = [
    "SELECT id FROM {t} WHERE st.x = 'x7'",
    "SELECT st.x FROM {t} WHERE ST.X IN ('x7', 'x8', 'x44')",
    "SELECT st.y, st.deep.q FROM {t} WHERE st.x LIKE 'x1%' OR st.x = 'x50'",
    "SELECT st.deep FROM {t} WHERE st.deep.p = 'p3'",
    "SELECT st FROM {t} WHERE st.x = 'x7'",
    # NULL structs, NULL fields, and fields of a NULL struct.
    "SELECT id, st.y, st IS NULL AS none FROM {t} WHERE id IN ('4', '5', '9', '40', '41')",
    "SELECT id, st.deep.q, st.deep IS NULL AS none FROM {t} WHERE id IN ('4', '5', '9', '40')",
    # In arrays and maps.
    "SELECT items.b FROM {t} WHERE id IN ('6', '7', '44', '42')",
    "SELECT items[0].a, props['k'].w FROM {t} WHERE id IN ('6', '7', '44')",
    "SELECT a.id, b.st.y FROM {t} a JOIN {t} b ON a.st.y = b.st.y AND a.ts + 1 = b.ts "
    "WHERE a.st.x = 'x7' AND b.st.x = 'x8'",
    "SELECT st.y FROM {t} WHERE st.x = 'absent'",
]


@pytest.mark.usefixtures("_written")
@pytest.mark.parametrize("table", KINDS)
@pytest.mark.parametrize("query", QUERIES)
def test_struct_fields_are_read_through_the_index(agreed: Agreed, query: str, table: str) -> None:
    assert all(by_index(agreed(query.format(t=table))))


@pytest.mark.usefixtures("_written", "read_by_tasks")
@pytest.mark.parametrize("query", [QUERIES[2], QUERIES[6], QUERIES[7]])
def test_struct_fields_are_read_by_tasks(agreed: Agreed, query: str) -> None:
    uses = agreed(query.format(t="merged_structs"))
    assert all(use.by_index and use.in_tasks for use in uses)
