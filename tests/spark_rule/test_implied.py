"""Conditions on functions of a column use the index by what they imply of the column itself."""

# ruff: noqa: S608 - the queries are the test's own

import pytest
from pyspark.sql import Observation
from pyspark.sql import functions as F

from hudi_index_service.sql import last_queries
from tests.spark_rule.conftest import by_index

# Around the ends of years, and in New York around its changes of the clock.
_EDGES = """
VALUES
  ('a', DATE'2023-12-31', TIMESTAMP'2023-12-31 23:59:59.999999Z', 1.24BD, 1, 7, true),
  ('b', DATE'2024-01-01', TIMESTAMP'2024-01-01 00:00:00Z', 1.25BD, 1, 8, false),
  ('c', DATE'2024-03-10', TIMESTAMP'2024-01-01 04:59:59.999999Z', 1.26BD, 2, 7, NULL),
  ('d', DATE'2024-03-11', TIMESTAMP'2024-01-01 05:00:00Z', -1.25BD, NULL, 7, true),
  ('e', DATE'2024-11-03', TIMESTAMP'2024-11-03 05:30:00Z', -99999999.99BD, 3, NULL, true),
  ('f', DATE'2024-11-04', TIMESTAMP'2024-11-03 06:30:00Z', 99999999.99BD, NULL, NULL, NULL),
  ('g', DATE'2024-12-31', TIMESTAMP'2024-12-31 23:59:59.999999Z', 0BD, 4, 9, false),
  ('h', DATE'2025-01-01', TIMESTAMP'2025-01-01 04:59:59.999999Z', NULL, 5, 9, true),
  ('i', DATE'0001-01-01', TIMESTAMP'0001-01-03 00:00:00Z', 3BD, 6, 9, true),
  ('j', DATE'9999-12-31', TIMESTAMP'9999-12-30 00:00:00Z', 3BD, -6, 9, true),
  ('k', NULL, NULL, NULL, NULL, NULL, NULL)
AS edges(id, d, at, price, a, b, flag)
"""


@pytest.fixture(scope="module", autouse=True)
def edges(spark, make_table) -> None:
    """A table of edge values, among two hundred rows that few conditions choose."""
    types = {"price": "decimal(10,2)", "a": "bigint", "b": "int"}
    others = spark.range(200).selectExpr(
        "'z' || id AS id",
        "DATE'2010-01-01' AS d",
        "TIMESTAMP'2010-06-01 00:00:00Z' AS at",
        "50.00BD AS price",
        "id + 1000 AS a",
        "1000 AS b",
        "CAST(NULL AS boolean) AS flag",
    )
    rows = spark.sql(f"SELECT * FROM {_EDGES}").unionByName(others)
    rows = rows.withColumns({name: F.col(name).cast(kind) for name, kind in types.items()})
    rows = rows.withColumn("ts", F.lit(0))
    make_table("edges", rows.coalesce(1), ["id", "d", "at", "price", "a", "b", "flag"])


def _found(agreed, *conditions):
    """Whether the index is used for each of the conditions, all in one query."""
    selects = (
        f"SELECT {place} AS place, id FROM edges WHERE {condition}"
        for place, condition in enumerate(conditions)
    )
    uses = agreed(" UNION ALL ".join(selects))
    return {condition: use.by_index for condition, use in zip(conditions, uses, strict=True)}


@pytest.mark.parametrize("name", ["UTC", "America/New_York"])
def test_dates_and_timestamps(agreed, settings_of_both, name):
    settings_of_both("spark.sql.session.timeZone", name)
    found = _found(
        agreed,
        "CAST(d AS TIMESTAMP) >= TIMESTAMP'2024-03-10 00:00:00'",
        "d > TIMESTAMP'2024-11-03 00:00:00' AND d <= TIMESTAMP'2024-12-31 00:00:00'",
        "d = TIMESTAMP'2024-11-03 00:00:00' OR TIMESTAMP'2024-01-01 03:00:00' = d",
        "d < TIMESTAMP'2009-01-01 00:00:00' OR d = TIMESTAMP'2024-11-03 04:00:00Z'",
        "d IN (TIMESTAMP'2024-11-04 00:00:00', TIMESTAMP'2024-11-05 01:00:00', NULL)",
        "d >= TIMESTAMP_NTZ'2024-11-03 00:00:01'",
        "d BETWEEN '2024-01-01 00:00:00' AND '2024-03-10 23:59:59'",
        "YEAR(d) = 2024 OR YEAR(d) > 9998 OR YEAR(d) < 2",
        "YEAR(d) IN (2023, 2025, NULL)",
        "YEAR(d) = 300000000",
        "YEAR(at) = 2024",
        "EXTRACT(YEAR FROM at) >= 2025 OR YEAR(at) <= 1",
        "CAST(at AS DATE) = DATE'2023-12-31'",
    )
    assert all(found.values()), found


IMPLIED = {
    "a replaced NULL": [
        "coalesce(a, 0) = 1",
        "ifnull(a, 4) = 4",
        "nvl(b, 9) IN (9, 10)",
        "coalesce(a, b) = 7",
        "coalesce(a, b, 3) <= 3",
        "coalesce(flag, false)",
        "NOT coalesce(flag, true) OR coalesce(a > 5 AND a < 8, false)",
    ],
    "truth": [
        "(a = 1) IS TRUE",
        "(a = 1 OR price = 1.26) IS TRUE",
        "(a < 1000) IS NOT NULL AND (a > 5) IS FALSE",
        "(coalesce(a, 1) = 1) IS TRUE AND id < 'z'",
    ],
    "numbers of another type": [
        "price = 1.250",
        "price > 1.2400001 AND price <= 1.255",
        "price = 1.255 OR price = 1.260",
        "price IN (1.250, 1.2600, 1.2601)",
        "price <= -99999999.990 OR price > 99999999.9899",
        "price = 100000000.000 OR price = 3.000",
        "price < -1e0",
        "price = CAST(1.25 AS DOUBLE)",
        "price > CAST('NaN' AS DOUBLE) OR price = CAST(3 AS DOUBLE)",
        "a = 1.0BD OR a = 2.5BD",
        "a < CAST(2 AS DOUBLE)",
    ],
    "tuples": [
        "(a, b) IN ((1L, 7), (3L, 9))",
        "named_struct('a', a, 'b', b) = named_struct('a', 1L, 'b', 8)",
        "(a, b) IN ((1L, 8), (CAST(NULL AS BIGINT), 7), (3L, CAST(NULL AS INT)))",
        "(a, b) IN ((CAST(NULL AS BIGINT), CAST(NULL AS INT)))",
        "(a, id) IN (" + ", ".join(f"({n}L, 'a')" for n in range(20)) + ")",
    ],
}


@pytest.mark.parametrize("kind", IMPLIED)
def test_conditions_of_the_column_are_implied(agreed, kind):
    found = _found(agreed, *IMPLIED[kind])
    assert all(found.values()), found


def test_nothing_is_implied_below_not(agreed):
    found = _found(agreed, "(a = 1) IS NOT FALSE", "NOT (coalesce(a, 0) = 1 AND YEAR(d) = 2024)")
    assert not any(found.values()), found


def test_more_values_than_an_index_is_asked_for(agreed):
    values = ", ".join(map(str, range(-20_002, 4, 2)))
    assert by_index(agreed(f"SELECT id FROM edges WHERE a IN ({values})")) == [True]


def test_counts_are_of_just_the_rows(agreed):
    counts = (
        f"SELECT count(*) FROM edges WHERE {condition}"
        for condition in ("YEAR(at) = 2024", "(a, b) IN ((1L, 7), (2L, 8))", "coalesce(a, 4) = 4")
    )
    assert by_index(agreed(" UNION ALL ".join(counts))) == [True] * 3


@pytest.mark.parametrize(
    "handed_on",
    [
        lambda few: few.mapInPandas(lambda parts: parts, few.schema),
        lambda few: few.mapInArrow(lambda parts: parts, few.schema),
        lambda few: few.groupBy("b").applyInPandas(lambda group: group, few.schema),
        lambda few: few.observe(Observation("seen"), F.count(F.lit(1)).alias("n")),
    ],
    ids=["mapInPandas", "mapInArrow", "applyInPandas", "observe"],
)
def test_rows_are_handed_on(agreed, handed_on):
    few = "SELECT {} FROM edges WHERE a = 1"
    assert by_index(agreed(lambda each: handed_on(each.sql(few.format("id, b"))))) == [True]
    assert by_index(agreed(few.format("TRANSFORM (id) USING 'cat' AS k"))) == [True]


def test_rows_are_made_json(spark, enabled):
    def texts(session):
        return sorted(session.table("edges").where("a = 1").select("id", "b").toJSON().collect())

    assert texts(enabled) == texts(spark) == ['{"id":"a","b":7}', '{"id":"b","b":8}']
    assert by_index(last_queries(enabled)[-1]) == [True]


def test_metrics_are_those_of_all_rows(spark, enabled):
    """Neither a condition above an observed table nor a join of it takes rows from the metrics."""

    def seen(session):
        observation = Observation("seen")
        all_rows = session.table("edges").observe(observation, F.count(F.lit(1)).alias("n"))
        keys = session.table("edges").where("a = 1").select("id")
        all_rows.join(keys, "id").where("b = 7").collect()
        return observation.get

    assert seen(enabled) == seen(spark) == {"n": 211}
