"""Settings of a session that change what a query means, or how Spark plans it."""

# ruff: noqa: S608 - the queries are the test's own

from concurrent.futures import ThreadPoolExecutor

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import functions as F

from hudi_index_service.sql import last_queries
from tests.spark_rule.conftest import by_index, rows_of


def test_time_zone_changed_between_queries(agreed, settings_of_both):
    query = "SELECT id, at, hour(at) FROM rule_cow WHERE at BETWEEN '2026-01-01 05:00:00' AND "
    query += "'2026-01-01 09:00:00' OR day = to_date('2026-01-09 23:30:00')"
    found = set()
    for zone in ("UTC", "Asia/Tokyo", "America/New_York"):
        settings_of_both("spark.sql.session.timeZone", zone)
        [use] = agreed(query)
        assert use.by_index
        found.add(use.where)
    assert len(found) == 3


def test_ansi_changed_between_queries(agreed, settings_of_both):
    query = "SELECT id, amount + age FROM rule_cow WHERE amount = '30' OR age = 7.0"
    for ansi in ("false", "true"):
        settings_of_both("spark.sql.ansi.enabled", ansi)
        assert agreed(query)


@pytest.mark.parametrize(
    ("query", "error"),
    [
        ("SELECT id FROM rule_cow WHERE 10 / amount > 1 AND id = '0'", "DIVIDE_BY_ZERO"),
        ("SELECT age + 2147483647 FROM rule_cow WHERE id = '3'", "ARITHMETIC_OVERFLOW"),
    ],
)
def test_errors_of_expressions_are_sparks(spark, enabled, tables, settings_of_both, query, error):
    """Rows are filtered and projected in the driver; if that fails, Spark's scan decides whether
    the query does, too. Nothing of that is the index's failure."""
    settings_of_both("spark.sql.ansi.enabled", "true")
    for session in (spark, enabled):
        with pytest.raises(Py4JJavaError, match=rf"Job aborted.*\[{error}\]"):
            session.sql(query).collect()
    [use] = last_queries(enabled)[-1]
    assert use.reason.startswith(f"an expression of the query fails: [{error}]")
    assert "\n" not in use.reason


@pytest.mark.parametrize("adaptive", ["true", "false"])
@pytest.mark.parametrize("broadcast", ["10485760", "-1"])
def test_adaptive_execution_and_joins_of_each_kind(agreed, settings_of_both, adaptive, broadcast):
    settings_of_both("spark.sql.adaptive.enabled", adaptive)
    settings_of_both("spark.sql.autoBroadcastJoinThreshold", broadcast)
    query = (
        "SELECT a.dt, count(*), max(b.msg) FROM rule_cow a JOIN rule_partitioned b ON a.id = b.id "
        "WHERE a.amount < 30 AND b.amount > 3 AND b.dt IN (SELECT dt FROM rule_merged WHERE id = "
        "'3') GROUP BY a.dt"
    )
    assert any(by_index(agreed(query)))


def test_dynamic_partition_pruning(enabled, agreed, settings_of_both):
    settings_of_both("spark.sql.optimizer.dynamicPartitionPruning.reuseBroadcastOnly", "false")
    query = (
        "SELECT {hint} p.id, p.dt FROM rule_partitioned p JOIN rule_cow c ON p.dt = c.dt "
        "WHERE c.id = '3' AND p.amount < 60"
    )
    assert by_index(agreed(query.format(hint=""))) == [True, True]
    hinted = query.format(hint="/*+ NO_INDEX(p) */")
    assert by_index(agreed(hinted)) == [False, True]
    plan = enabled.sql(hinted)._jdf.queryExecution().executedPlan().toString()
    assert "dynamicpruning" in plan, "by the rows that the index finds"


OPTIMIZER = "org.apache.spark.sql.catalyst.optimizer."
EXCLUDED = ("ColumnPruning", "PushDownPredicates", "CollapseProject", "ConstantFolding")


@pytest.mark.parametrize(
    "settings",
    [
        {"sql.optimizer.excludedRules": ",".join(OPTIMIZER + each for each in EXCLUDED)},
        {"sql.optimizer.excludedRules": "hudiindex.spark.catalyst.IndexRule"},
        {"sql.codegen.wholeStage": "false", "sql.codegen.factoryMode": "NO_CODEGEN"},
    ],
)
def test_settings_of_the_planner(agreed, settings_of_both, settings):
    for name, value in settings.items():
        settings_of_both(f"spark.{name}", value)
    uses = agreed("SELECT * FROM rule_cow WHERE id = '3' AND amount < 5 + 7 ORDER BY id")
    if "IndexRule" not in str(settings):
        assert by_index(uses) == [True]


def test_case_sensitivity(agreed, settings_of_both):
    settings_of_both("spark.sql.caseSensitive", "true")
    assert by_index(agreed("SELECT id FROM rule_cow WHERE msg = 'Buying car 2'")) == [True]

    def shadowed(session):
        frame = session.table("rule_cow").withColumn("MSG", F.concat(F.lit("other "), "id"))
        return frame.where("MSG = 'other 3' AND msg = 'Buying car 3' AND id < '4'")

    assert by_index(agreed(shadowed)) == [True]


def test_renamed_and_duplicate_columns(agreed):
    def renamed(session):
        frame = session.table("rule_cow").withColumnRenamed("id", "k").where("k = '3'")
        return frame.select("k", F.col("k").alias("id"), "msg", F.col("msg"))

    assert by_index(agreed(renamed)) == [True]

    def joined(session):
        few = session.table("rule_cow").where("amount < 9")
        return few.join(few, few.id == few.id)

    assert by_index(agreed(joined)) == [True, True]


def test_nulls(agreed):
    for where in (
        "msg IS NULL AND id < '2'",
        "msg <=> NULL AND amount < 60",
        "NOT (msg = 'Buying car 1' OR age > 3) AND amount < 90",
        "age NOT IN (1, 2, 3) AND amount < 60",
        "age NOT IN (1, NULL) AND amount < 60",
        "(age IS NULL OR age < 4) AND amount < 90",
        "coalesce(msg, 'none') = 'none' AND amount < 99",
    ):
        agreed(f"SELECT * FROM rule_cow WHERE {where}")


def test_four_threads(spark, enabled, tables):
    """Each thread sees its own queries."""

    def ask(number):
        query = f"SELECT id, msg FROM rule_merged WHERE amount BETWEEN {number} AND {number + 9}"
        found = rows_of(enabled.sql(query))
        return query, found, last_queries(enabled)

    with ThreadPoolExecutor(4) as threads:
        for query, found, queries in threads.map(ask, range(0, 120, 10)):
            assert found == rows_of(spark.sql(query))
            [use] = queries[-1]
            assert use.by_index
            assert use.rows == len(found)
            assert query.rpartition(" ")[2] in use.where


def test_views_of_another_session_and_table_cache(spark, enabled, tables):
    enabled.table("rule_cow").where("amount < 30").createOrReplaceGlobalTempView("few")
    new = enabled.newSession()
    query = "SELECT id FROM global_temp.few WHERE msg = 'Buying car 2'"
    expected = rows_of(
        spark.sql("SELECT id FROM rule_cow WHERE amount < 30 AND msg = 'Buying car 2'")
    )
    assert rows_of(new.sql(query)) == expected
    enabled.sql("CACHE TABLE few_cached AS SELECT * FROM rule_cow WHERE amount < 30")
    assert rows_of(enabled.sql("SELECT id FROM few_cached WHERE msg = 'Buying car 2'")) == expected
    enabled.sql("UNCACHE TABLE few_cached")
    enabled.catalog.dropGlobalTempView("few")


def test_permanent_views(spark, agreed):
    few = "SELECT id, msg, amount FROM rule_cow WHERE amount < 30"
    spark.sql(f"CREATE VIEW few_of_rule_cow AS {few}")
    try:
        query = "SELECT id FROM few_of_rule_cow WHERE msg = 'Buying car 2'"
        assert by_index(agreed(query)) == [True]
    finally:
        spark.sql("DROP VIEW few_of_rule_cow")


def test_sessions_with_settings_of_their_own(spark, enabled, tables):
    """The same query means something else in each of them."""

    def session(of, zone, index):
        new = of.newSession()
        new.conf.set("spark.sql.session.timeZone", zone)
        new.conf.set("spark.hudi.index.enabled", index)
        return new

    zones = ("UTC", "Asia/Tokyo", "America/New_York")
    mine = [session(enabled, zone, "true") for zone in zones]
    plain = [session(spark, zone, "false") for zone in zones]
    query = "SELECT id, hour(at) FROM rule_cow WHERE at < '2026-01-01 09:00:00'"
    expected = [rows_of(each.sql(query)) for each in plain]
    assert len(set(map(len, expected))) == 3
    for _ in range(2):
        assert [rows_of(each.sql(query)) for each in mine] == expected
        assert by_index(last_queries(enabled)[-1]) == [True]


def test_pandas_by_arrow(spark, enabled, settings_of_both, tables):
    """Spark then runs the query in another thread than the one that planned it here."""
    settings_of_both("spark.sql.execution.arrow.pyspark.enabled", "true")
    found, plain = (session.table("rule_cow").where("amount < 30") for session in (enabled, spark))
    assert "HudiIndexScan" in found._jdf.queryExecution().toString()
    assert repr(found.toPandas().to_dict("records")) == repr(plain.toPandas().to_dict("records"))
    [use] = last_queries(enabled)[-1]
    assert (use.by_index, use.rows) == (True, 10)


def test_queries_that_spark_plans_on_a_thread_of_its_own(enabled, tables):
    """Each thread sees those that it has begun, in whichever session."""
    sessions = [enabled.newSession() for _ in range(2)]
    for each in sessions:
        each.conf.set("spark.sql.execution.arrow.pyspark.enabled", "true")
        each.conf.set("hoodie.enable.data.skipping", "false")

    def ask(number):
        found = []
        for place, session in enumerate(sessions):
            query = f"SELECT id FROM rule_cow WHERE amount < {number + 30 * place}"
            found.append(len(session.sql(query).toPandas()))
        return found, [use.rows for [use] in last_queries(sessions[0])[-2:]]

    with ThreadPoolExecutor(2) as threads:
        for found, known in threads.map(ask, (30, 90, 150)):
            assert known == found


def test_queries_that_another_thread_runs(enabled, tables):
    """They belong to the thread that began them, and to that which runs them."""
    frame = enabled.sql("SELECT id FROM rule_cow WHERE amount < 21")

    def run():
        assert len(frame.collect()) == 7
        return [use.rows for use in last_queries(enabled)[-1]]

    with ThreadPoolExecutor(1) as threads:
        assert threads.submit(run).result() == [7]
    assert [use.rows for use in last_queries(enabled)[-1]] == [7]
