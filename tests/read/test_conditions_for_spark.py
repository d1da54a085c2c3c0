"""Predicates that are parsed here are the same as Spark's columns as they are as text."""

import pytest
from pyspark.sql import Column, DataFrame
from pyspark.sql.pandas.types import to_arrow_schema

from hudi_index_service.read.query import Binding
from hudi_index_service.read.spark.conditions import condition


@pytest.fixture(scope="module")
def rows(spark) -> DataFrame:
    return spark.sql(
        """
        VALUES
          (1, 7Y, 3000000000L, 0.5F, 0.1D, 1.50BD, DATE'2024-02-29', X'6162', true,
           concat('$', '{x}'), array(1)),
          (2, -8Y, 5L, float('NaN'), -0.0D, -20.00BD, DATE'0001-01-01', X'', false,
           'a%b', array()),
          (3, 0Y, -1L, float('inf'), 1e300D, 0BD, DATE'9999-12-31', X'ff', NULL,
           'B\\'\\\\', NULL),
          (4, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, array(NULL, 2))
        AS t(n, tiny, big, single, double, price, day, raw, flag, text, numbers)
        """
    ).selectExpr("*", "named_struct('a.b', n, 'c', text) AS s", "timestamp(day) AS at")


def as_columns(rows: DataFrame, where: str) -> Column | None:
    """The condition that the parsed text becomes."""
    query = Binding(where, None, "UTC").to(to_arrow_schema(rows.schema))
    assert query.predicate is not None
    return condition(query.predicate)


@pytest.mark.parametrize(
    "where",
    [
        *("n = 2", "n <> 2", "n < 2", "n <= 2", "n > 2", "n >= 2", "tiny <=> NULL", "tiny = -8"),
        *("big IN (5, 3000000000)", "big IN (5, NULL)", "NOT (big IN (5, NULL))", "n IN (1)"),
        *("single = 0.5", "single <> 0.1", "single > 1e30", "double = 0.0"),
        *("double >= 1e300", "price = 1.5", "price IN (-20, 0)", "price <= -20.00"),
        *("day = DATE'0001-01-01'", "day > DATE'2024-02-29'", "day IN (DATE'9999-12-31')"),
        *("raw = X'6162'", "raw > X'61'", "flag", "NOT flag", "flag = false", "flag IS NULL"),
        *("text = 'B\\'\\\\\\\\'", "text LIKE 'a!%_' ESCAPE '!'", "text RLIKE '^a'"),
        *("text IS NOT NULL AND (n = 1 OR n = 3)", "array_contains(numbers, 1)"),
        *("s.`a.b` = 2", "s.c = 'a%b'", "TRUE", "n = NULL"),
    ],
)
def test_columns_mean_what_the_text_means(rows, where):
    found = rows.where(as_columns(rows, where)).select("n").collect()
    assert found == rows.where(where).select("n").collect()


def test_spark_replaces_nothing(rows):
    for where in ("text = '${x}'", "text LIKE '${x}'", "text IN ('${x}', 'y')", "text < '${x}a'"):
        assert [row.n for row in rows.where(as_columns(rows, where)).collect()] == [1], where


def test_times_are_left_to_sparks_parser(rows):
    assert as_columns(rows, "n = 1 OR at > TIMESTAMP'2024-01-01 00:00:00'") is None
