"""Few rows that the driver reads by index are one partition: Spark adds no exchange above them."""

# ruff: noqa: S608 - the queries are the test's own

import pytest

from tests.read.spark_jobs import last_stage, tasks_since
from tests.spark_rule.conftest import rows, without_ids

FEW = "SELECT id, msg, age FROM {t} WHERE msg = 'Buying car 3'"
"""About a seventh of 200 rows."""


@pytest.fixture
def by_index(costs):
    costs(spark_scan_ms=1e12)


def _executed(frame):
    """The plan that ran, as text."""
    frame.collect()
    return without_ids(frame._jdf.queryExecution().executedPlan().toString())


QUERIES = {
    "sort": "SELECT * FROM ({few}) ORDER BY age, id",
    "groups": "SELECT age, count(*) FROM ({few}) GROUP BY age",
    "window": "SELECT id, row_number() OVER (PARTITION BY age ORDER BY id) FROM ({few})",
    "distinct": "SELECT DISTINCT age % 5 FROM ({few})",
    "join": "SELECT /*+ MERGE(b) */ a.id, b.age FROM ({few}) a JOIN ({few}) b ON a.id = b.id",
}


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_few_rows_need_no_exchange(agreed, enabled, tables, by_index, query):
    for kind in ("rule_cow", "rule_merged"):
        asked = query.format(few=FEW.format(t=kind))
        assert all(each.by_index for each in agreed(asked))
        assert "Exchange" not in _executed(enabled.sql(asked))


def test_few_rows_are_one_partition(agreed, spark, enabled, tables, by_index):
    frame = enabled.sql(FEW.format(t="rule_cow"))
    assert frame.rdd.getNumPartitions() == 1
    assert frame.rdd.count() == spark.sql(FEW.format(t="rule_cow")).count()
    nothing = "SELECT id FROM rule_cow WHERE msg = 'Buying car 30'"
    assert enabled.sql(nothing).rdd.getNumPartitions() == 1
    agreed(f"SELECT count(*), max(id) FROM ({nothing})")
    agreed(f"SELECT EXISTS ({nothing}) AS e, (SELECT count(*) FROM ({nothing} AND id > '3')) AS n")
    agreed(f"SELECT a.id FROM ({nothing}) a FULL JOIN ({FEW.format(t='rule_cow')}) b USING (id)")
    agreed(f"SELECT age FROM ({FEW.format(t='rule_cow')}) UNION ALL SELECT id FROM rule_merged")


def test_a_thread_without_an_active_session(enabled, tables, by_index):
    frame = enabled.sql(FEW.format(t="rule_cow"))
    frame._jdf.queryExecution().executedPlan()
    enabled._jvm.org.apache.spark.sql.SparkSession.clearActiveSession()
    try:
        assert frame._jdf.queryExecution().toRdd().getNumPartitions() == 1
    finally:
        enabled._jvm.org.apache.spark.sql.SparkSession.setActiveSession(enabled._jsparkSession)


def test_few_rows_are_broadcast_without_a_job(agreed, enabled, tables, by_index):
    query = (
        f"SELECT /*+ BROADCAST(a) */ a.id, r.id FROM ({FEW.format(t='rule_cow')}) a "
        "JOIN range(0, 300, 1, 1) r ON a.age = r.id"
    )
    agreed(query)
    before = last_stage(enabled)
    assert "BroadcastExchange" in _executed(enabled.sql(query))
    assert len(tasks_since(enabled, before)) == 1  # the join's stage


@pytest.mark.parametrize(
    ("adaptive", "kind"), [("true", "rule_merged"), ("false", "rule_partitioned")]
)
@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_spark_reads_them_after_all_and_the_partition_is_still_one(
    agreed, enabled, by_index, settings_of_both, unreadable, query, adaptive, kind
):
    settings_of_both("spark.sql.adaptive.enabled", adaptive)
    agreed(query.format(few=FEW.format(t=kind)))
    assert enabled.sql(FEW.format(t="rule_partitioned")).rdd.getNumPartitions() == 1


def test_more_rows_are_several_partitions(spark, enabled, make_table, by_index):
    make_table("many_rows", rows(spark, 0, 2400), ["id", "age"])
    assert enabled.sql("SELECT * FROM many_rows WHERE id > '1'").rdd.getNumPartitions() > 1
    assert enabled.sql("SELECT * FROM many_rows WHERE age = 3").rdd.getNumPartitions() == 1
