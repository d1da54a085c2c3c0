"""Conditions on the value of a scalar sub-query: the index is asked when the query runs, and the
value is known."""

# ruff: noqa: S608 - the queries are the test's own

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from hudi_index_service.sql import last_queries
from tests.hudi_tables import NO_METADATA_TABLE, hudi_options, write
from tests.spark_rule import needs
from tests.spark_rule.conftest import rows

FEW = "by the value of a sub-query"

VALUES = [
    ("amount", "= (SELECT max(amount) - 3 FROM {t})"),
    ("amount", "> (SELECT max(amount) - 9 FROM {t})"),
    ("amount", "<= (SELECT min(amount) + 6 FROM {t}) AND msg IS NOT NULL"),
    ("amount", "<=> (SELECT CAST(avg(amount) AS BIGINT) FROM {t})"),
    ("id", "= (SELECT concat('1', max(id)) FROM {t} WHERE id < '10')"),
    ("age", "= (SELECT max(age) FROM {t}) - 1"),
    ("price", "> (SELECT CAST(max(price) - 1 AS DECIMAL(10, 2)) FROM {t})"),
    ("day", "= date_add((SELECT max(day) FROM {t}), -2)"),
    ("at", "> (SELECT coalesce(max(at), timestamp'1900-01-01') - interval 3 hours FROM {t})"),
    ("score", "> (SELECT max(score) FROM {t} WHERE NOT isnan(score)) - 1D"),
    ("place.city", "= (SELECT min(place.city) FROM {t}) AND ts = 0"),
]
"""A column, and its comparison with values that few rows have."""


def plan_of(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().toString())


@pytest.mark.parametrize(
    ("kind", "adaptive", "column", "compared"),
    [
        *(("rule_merged", "true", *each) for each in VALUES),
        *(("rule_partitioned", "false", *each) for each in VALUES[::2]),
        *(("rule_cow", "false", *each) for each in VALUES[1::2]),
    ],
)
def test_rows_are_found_by_the_value_of_a_sub_query(
    agreed, settings_of_both, costs, kind, adaptive, column, compared
):
    costs(spark_scan_ms=1e12)
    settings_of_both("spark.sql.adaptive.enabled", adaptive)
    uses = agreed(f"SELECT id, msg FROM {kind} WHERE {column} {compared.format(t=kind)}")
    [use] = [each for each in uses if FEW in each.reason]
    assert use.by_index
    assert use.rows is not None


@pytest.mark.parametrize(
    "where",
    [
        "(SELECT max(amount) FROM {t}) - 9 < amount",
        "amount BETWEEN (SELECT max(amount) - 9 FROM {t}) AND (SELECT max(amount) - 3 FROM {t})",
        "amount = (SELECT max(amount) FROM {t} WHERE id = 'none')",  # NULL equals nothing
        "amount > (SELECT max(amount) FROM {t})",
        "amount > (SELECT max(amount) - 9 FROM {t} WHERE amount > (SELECT min(amount) FROM {t}))",
    ],
)
def test_forms_of_comparisons(agreed, costs, where):
    costs(spark_scan_ms=1e12)
    uses = agreed("SELECT * FROM {t} WHERE ".format(t="rule_cow") + where.format(t="rule_cow"))
    assert any(each.by_index and FEW in each.reason for each in uses), uses


@pytest.mark.parametrize(
    "where",
    [
        "msg = 'Buying car 3' AND amount < (SELECT min(amount) + 90 FROM {t})",
        "id = '7' OR amount = (SELECT max(amount) FROM {t})",
        "id = '7' AND amount > (SELECT min(ts) FROM {t})",
        "NOT (amount > (SELECT min(amount) + 6 FROM {t}) OR id = '1')",
        "CAST(id AS INT) > (SELECT max(age) + 140 FROM {t})",
        "amount IN ((SELECT max(amount) FROM {t}), 3)",
        "rand() * 0 + amount > (SELECT max(amount) - 9 FROM {t})",
        "tags[0] = (SELECT max(tags[0]) FROM {t})",
        "amount > (SELECT 1 / 0 FROM {t} LIMIT 1)",
    ],
)
def test_other_conditions_with_sub_queries_stay_right(agreed, costs, where):
    costs(spark_scan_ms=1e12)
    for kind in ("rule_cow", "rule_merged"):
        agreed(f"SELECT id, amount FROM {kind} WHERE {where.format(t=kind)}")


def test_a_value_of_little_use_leaves_the_rows_to_spark(agreed):
    uses = agreed("SELECT * FROM rule_cow WHERE amount >= (SELECT min(amount) FROM rule_cow)")
    assert not any(each.by_index for each in uses)
    assert any("the index" in each.reason for each in uses)


RECENT = "SELECT * FROM rule_cow WHERE amount > (SELECT max(amount) - 9 FROM rule_cow)"


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT count(*), max(id) FROM ({RECENT})",
        f"SELECT a.id, b.id FROM ({RECENT}) a JOIN rule_merged b ON a.amount = b.amount",
        f"SELECT a.id, b.id FROM ({RECENT}) a JOIN ({RECENT}) b ON a.amount = b.amount + 3",
        f"SELECT a.id FROM ({RECENT}) a UNION ALL SELECT id FROM ({RECENT}) WHERE id > '0'",
        # The relations' requests are equal as long as the values are not known.
        "SELECT id FROM rule_cow WHERE amount = (SELECT max(amount) FROM rule_cow) UNION ALL "
        "SELECT id FROM rule_cow WHERE amount = (SELECT min(amount) FROM rule_cow)",
    ],
)
def test_rows_are_counted_and_joined(agreed, costs, query):
    costs(spark_scan_ms=1e12)
    agreed(query)


def test_counts_and_best_rows_come_before_a_value_is_compared(agreed, costs):
    costs(spark_scan_ms=1e12)
    value = "(SELECT min(amount) FROM rule_cow WHERE id < '3')"
    uses = agreed(
        f"SELECT msg, count(*) AS n FROM rule_cow GROUP BY msg HAVING count(*) > 3 + {value}"
    )
    assert any("counts" in each.reason for each in uses)
    agreed(
        f"SELECT * FROM (SELECT id, amount FROM rule_cow WHERE id > '150' ORDER BY amount LIMIT 5) "
        f"WHERE amount > 450 + {value}"
    )


def test_partitions_can_still_be_left_out_by_a_join(agreed, spark, enabled):
    for session in (spark, enabled):
        session.sql("SELECT '2026-01-01' AS dt, 1 AS x").createOrReplaceTempView("some_days")
    query = (
        "SELECT t.id FROM rule_partitioned t JOIN some_days d ON t.dt = d.dt AND d.x < 2 "
        "WHERE t.amount > (SELECT max(amount) - 9 FROM rule_cow)"
    )
    agreed(query)
    assert "undecided" not in plan_of(enabled.sql(query))


def test_explain_says_what_is_awaited(enabled, tables):
    awaited = "undecided: the value is not known yet that `amount` is compared with"
    assert awaited in plan_of(enabled.sql(RECENT))


@needs.HIVE
def test_an_increment_since_the_latest_row_of_the_target(
    spark: SparkSession, enabled: SparkSession, tables, costs, tmp_path: Path
) -> None:
    """What dbt's incremental models do."""
    costs(spark_scan_ms=1e12)
    options = hudi_options("target_cow", **NO_METADATA_TABLE)
    write(rows(spark, 0, 150), tmp_path, options, "insert")
    enabled.sql(f"CREATE TABLE target USING hudi LOCATION '{tmp_path}'")

    enabled.sql(
        "INSERT INTO target SELECT * FROM rule_cow "
        "WHERE amount > (SELECT coalesce(max(amount), 0) FROM target)"
    )

    found = enabled.sql("SELECT id FROM target ORDER BY amount").collect()
    assert [each.id for each in found] == [str(each) for each in range(200)]
    uses = [use for query in last_queries(enabled) for use in query]
    assert any(use.by_index and use.rows == 50 for use in uses if use.table.endswith("rule_cow"))
    enabled.sql("DROP TABLE target")
