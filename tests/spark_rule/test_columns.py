"""Rows read by the driver are handed to Spark in the types that Spark sees."""

import pytest

from hudi_index_service.hudi.spark import collected
from hudi_index_service.sql.rule.columns import as_spark_sees

pytestmark = pytest.mark.fast

_VALUES = """
    SELECT * FROM VALUES
    (1Y, 2S, 3, 4L, 1.5f, double('NaN'), 1.25BD, 'ж 😀', X'00ff', DATE'1500-02-03',
     TIMESTAMP'1500-02-03 04:05:06.000007Z', true,
     named_struct('a', 1, 'b', array('x', NULL)), map('k', 1)),
    (-1Y, NULL, -3, NULL, -0.0f, double('-Infinity'), -0.01BD, '', X'', DATE'9999-12-31',
     TIMESTAMP'9999-12-31 23:59:59.999999Z', false, named_struct('a', NULL, 'b', NULL), NULL)
    AS t(tiny, small, n, big, f, d, price, msg, bytes, day, at, flag, s, m)
"""


def test_every_type_of_spark_is_known(spark):
    rows = collected(frame := spark.sql(_VALUES))
    types = [each.dataType.jsonValue() for each in frame.schema]
    assert as_spark_sees(rows.schema, types) == rows.schema


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
