"""EXPLAIN shows the node; deciding reads no row; `last_queries` tells how relations were read."""

import pytest

from hudi_index_service.read.execution import Execution
from hudi_index_service.sql import last_queries
from tests.spark_rule.conftest import KINDS, rows_of, without_ids


@pytest.fixture
def reads(monkeypatch):
    """The readings of rows in this process."""
    found = []
    table = Execution.table

    def counted(self, limit=None):
        found.append(self)
        return table(self, limit)

    monkeypatch.setattr(Execution, "table", counted)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_explain_shows_the_index_and_reads_nothing(enabled, tables, capsys, reads, kind):
    frame = enabled.table(kind).where("id = '3'").select("msg")
    frame.explain()
    frame.explain("cost")
    frame.explain("formatted")
    shown = capsys.readouterr().out
    node = "HudiIndexScan index i, by driver: the index finds "
    assert node in shown
    assert "rowCount=1" in shown
    assert reads == []
    [use] = last_queries(enabled)[-1]
    assert (use.by_index, use.rows, use.expected) == (True, None, 1)
    assert len(frame.collect()) == 1
    assert len(reads) == 1
    [use] = last_queries(enabled)[-1]
    assert (use.rows, use.columns, use.where) == (1, ("id", "msg"), "`id` = '3'")
    assert use.instant
    frame.collect()
    assert len(reads) == 1


def test_explain_statement_and_schema_read_nothing(enabled, tables, reads):
    query = "SELECT count(*) FROM rule_cow WHERE amount < 30"
    [row] = enabled.sql(f"EXPLAIN {query}").collect()
    assert "HudiIndexScan" in row[0]
    enabled.sql(query).schema  # noqa: B018 - whether it reads is the question
    assert reads == []


def test_why_not_is_told_by_last_queries(spark, enabled, tables):
    """EXPLAIN shows of what is left to Spark what it shows without the rule, since that runs."""
    query = "SELECT id FROM rule_partitioned WHERE upper(msg) = 'BUYING CAR 3'"
    mine, plain = (session.sql(query)._jdf.queryExecution() for session in (enabled, spark))
    assert without_ids(mine.simpleString()) == without_ids(plain.simpleString())
    [use] = last_queries(enabled)[-1]
    assert (use.by_index, use.reason) == (False, "no index answers a condition on it")


@pytest.mark.fast
def test_a_known_decision_is_not_made_again(enabled, tables, monkeypatch):
    from hudi_index_service.sql.rule import by_index as module

    decided = []
    candidates = module.candidates

    def counted(*arguments):
        decided.append(arguments)
        return candidates(*arguments)

    monkeypatch.setattr(module, "candidates", counted)
    query = "SELECT msg FROM rule_cow WHERE amount = 4242"
    for _ in range(3):
        assert enabled.sql(query).collect() == []
    assert len(decided) == 1
    enabled.sql(query.replace("4242", "4243")).collect()
    assert len(decided) == 2


def test_subqueries_belong_to_their_query(enabled, tables):
    enabled.sql(
        "SELECT id FROM rule_cow WHERE amount > (SELECT max(amount) FROM rule_merged WHERE id < "
        "'12') AND id = '99'"
    ).collect()
    enabled.sql("SELECT 1").collect()
    assert sorted(use.table.rpartition("/")[2] for use in last_queries(enabled)[-1]) == [
        "rule_cow",
        "rule_merged",
    ]
    assert len(last_queries(enabled)) <= 16


def test_statistics_let_spark_broadcast(enabled, settings_of_both, tables):
    settings_of_both("spark.sql.adaptive.enabled", "false")
    settings_of_both("spark.sql.autoBroadcastJoinThreshold", "2000")
    few = enabled.table("rule_cow").where("id = '3'").select("dt")
    plan = few.join(enabled.table("rule_partitioned"), "dt")._jdf.queryExecution()
    assert "BroadcastHashJoin" in plan.executedPlan().toString()


@pytest.mark.usefixtures("read_by_tasks", "tables")
def test_many_rows_are_read_by_tasks_and_never_broadcast(enabled, spark, settings_of_both):
    query = (
        "SELECT a.id, b.msg FROM rule_merged a JOIN rule_cow b ON a.id = b.id WHERE a.amount < 300"
    )
    # Half of the table: 100 rows of more than 20 bytes each.
    settings_of_both("spark.sql.autoBroadcastJoinThreshold", "2000")
    frame = enabled.sql(query)
    plan = frame._jdf.queryExecution().executedPlan().toString()
    found = rows_of(frame)
    uses = [(use.by_index, use.in_tasks) for use in last_queries(enabled)[-1]]
    assert uses == [(True, True), (False, False)]
    assert "SortMergeJoin" in plan
    assert "BroadcastHashJoin" not in plan
    assert found == rows_of(spark.sql(query))
    assert len(found) > 90
