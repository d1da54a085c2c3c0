"""The hint NO_INDEX leaves relations to Spark, whose plan is then the one without the rule."""

# ruff: noqa: S608 - the queries are the test's own

import pytest

from hudi_index_service.sql import last_queries
from tests.spark_rule.conftest import by_index, each_of, rows_of, without_ids

_REASON = "the query's hint NO_INDEX leaves it to Spark"


HINTED = {
    (False,): [
        "SELECT /*+ NO_INDEX(rule_cow) */ msg FROM rule_cow WHERE id = '3'",
        "SELECT /*+ no_index(`RULE_COW`) */ msg FROM rule_cow WHERE id = '3'",
        "SELECT /*+ NO_INDEX(default.rule_cow) */ msg FROM rule_cow WHERE id = '3'",
        "SELECT /*+ NO_INDEX */ msg FROM rule_cow WHERE id = '3'",
        "SELECT /*+ NO_INDEX */ count(*) FROM rule_cow WHERE id = '3'",
        "SELECT /*+ NO_INDEX(t) */ * FROM rule_partitioned t WHERE dt > '2026' AND id = '3'",
        "SELECT /*+ NO_INDEX(t) */ place.zip FROM rule_merged t WHERE place.city = 'city 3'",
        "SELECT /*+ NO_INDEX(t) */ msg FROM (SELECT * FROM rule_cow) t WHERE id = '3'",
        # A name that a column has, too.
        "SELECT /*+ NO_INDEX(id) */ msg FROM rule_cow id WHERE id = '3'",
        "WITH few AS (SELECT * FROM rule_cow WHERE amount < 30), fewer AS (SELECT * FROM few "
        "WHERE id < '3') SELECT /*+ NO_INDEX */ * FROM fewer",
        "WITH few AS (SELECT id, rand() AS x FROM rule_cow WHERE amount < 30) "
        "SELECT /*+ NO_INDEX(a) */ count(*) FROM few a JOIN few b ON a.x = b.x",
    ],
    (True, False): [
        "SELECT /*+ NO_INDEX(b) */ b.id FROM (SELECT * FROM rule_cow WHERE id = '3') a "
        "JOIN rule_merged b ON a.id = b.id",
        "SELECT id FROM rule_cow WHERE amount < 30 AND id IN "
        "(SELECT /*+ NO_INDEX */ id FROM rule_merged WHERE amount < 60)",
        "SELECT id FROM rule_cow a WHERE amount < 30 AND EXISTS (SELECT /*+ NO_INDEX(b) */ 1 "
        "FROM rule_merged b WHERE a.id = b.id AND b.amount < 60)",
    ],
    (True,): [
        # Like Spark's own hints: an alias hides the name, and names further in are not found.
        "SELECT /*+ NO_INDEX(rule_cow) */ msg FROM rule_cow t WHERE id = '3'",
        "SELECT /*+ NO_INDEX(rule_cow) */ msg FROM (SELECT * FROM rule_cow) t WHERE id = '3'",
        "SELECT /*+ NO_INDEX(other), NO_INDEX(1) */ msg FROM rule_cow WHERE id = '3'",
    ],
    (False, True): [
        "SELECT /*+ NO_INDEX(a), BROADCAST(b) */ a.id, b.msg FROM rule_cow a JOIN rule_cow b "
        "ON a.id = b.id WHERE a.amount < 30 AND b.amount < 60",
        "SELECT id FROM rule_cow WHERE id = '3' UNION ALL "
        "SELECT /*+ NO_INDEX */ id FROM rule_cow WHERE id = '3'",
    ],
    (False, False): [
        "SELECT /*+ NO_INDEX(a, b) */ a.id, b.msg FROM rule_cow a JOIN rule_merged b "
        "ON a.id = b.id WHERE a.amount < 30 AND b.amount < 60",
        "SELECT /*+ NO_INDEX */ id FROM rule_cow WHERE amount < 30 AND id IN "
        "(SELECT id FROM rule_merged WHERE amount < 60)",
    ],
}


@pytest.mark.parametrize(
    ("query", "used"),
    each_of(HINTED),
)
def test_hints_in_sql(agreed, query, used):
    uses = agreed(query)
    assert sorted(by_index(uses)) == sorted(used)
    assert {use.reason for use in uses if not use.by_index} <= {_REASON}


@pytest.mark.fast
def test_hints_of_dataframes(agreed, tables):
    def of_a_path(session):
        frame = session.read.format("hudi").load(str(tables.folder / "rule_merged"))
        return frame.hint("NO_INDEX").where("id = '3'")

    def below_conditions(session):
        few = session.table("rule_cow").where("amount < 30")
        return few.join(few.alias("b").hint("no_index", "b"), "id").where(few.id < "3")

    [use] = agreed(of_a_path)
    assert use.reason == _REASON
    assert sorted(by_index(agreed(below_conditions))) == [False, True]


def test_hints_and_views(agreed, spark):
    def of_a_view(session):
        session.table("rule_cow").where("amount < 30").createOrReplaceTempView("few")
        return session.sql("SELECT /*+ NO_INDEX(few) */ id FROM few WHERE id = '3'")

    def in_a_view(session):
        session.sql(
            "CREATE OR REPLACE TEMP VIEW few AS SELECT /*+ NO_INDEX */ * FROM rule_cow WHERE "
            "amount < 30"
        )
        return session.sql("SELECT id FROM few WHERE id = '3'")

    assert by_index(agreed(of_a_view)) == [False]
    assert by_index(agreed(in_a_view)) == [False]
    spark.catalog.dropTempView("few")


def test_a_hint_counts_for_its_query_only(agreed):
    query = "SELECT {hint} msg FROM rule_cow WHERE id = '3'"
    assert by_index(agreed(query.format(hint="/*+ NO_INDEX */"))) == [False]
    assert by_index(agreed(query.format(hint=""))) == [True]


@pytest.mark.parametrize("table", ["rule_cow", "rule_partitioned", "rule_merged"])
def test_what_runs_is_sparks_own_plan(spark, enabled, tables, table):
    query = f"SELECT /*+ NO_INDEX */ msg FROM {table} WHERE id = '3' AND dt > '2026-01-01'"
    hinted, plain = (_plan(session.sql(query)) for session in (enabled, spark))
    assert hinted == plain


def _plan(frame):
    return without_ids(frame._jdf.queryExecution().executedPlan().toString())


def test_what_is_cached_is_still_read_from_the_cache(enabled, tables):
    few = enabled.table("rule_cow").where("amount < 30").cache()
    try:
        query = "SELECT /*+ NO_INDEX(rule_cow) */ * FROM rule_cow WHERE amount < 30"
        assert "InMemoryTableScan" in _plan(enabled.sql(query))
    finally:
        few.unpersist()


def test_inserted_rows(spark, enabled, tables, tmp_path):
    query = "SELECT /*+ NO_INDEX */ id, msg FROM rule_cow WHERE amount < 30"
    enabled.sql(f"CREATE TABLE hinted USING parquet LOCATION '{tmp_path / 'few'}' AS {query}")
    assert not any(by_index(last_queries(enabled)[-1]))
    assert rows_of(spark.table("hinted")) == rows_of(spark.sql(query))
    spark.sql("DROP TABLE hinted")
