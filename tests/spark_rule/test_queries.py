"""Plain queries return the same rows with the rule as without, and use the index."""

# ruff: noqa: S608 - the queries are the test's own

import pytest
from pyspark.sql import functions as F

from tests.spark_rule.conftest import KINDS, by_index, each_of, rows_of

BY_USE = {
    (True,): [
        "SELECT * FROM {t} WHERE id = '3'",
        "SELECT msg FROM {t} WHERE ID IN ('3', '4', '150') AND `Amount` > 9",
        "SELECT id FROM {t} WHERE msg LIKE 'Buying car 3%' AND upper(msg) <> 'X'",
        "SELECT ID, Msg AS msg, ID FROM {t} WHERE id = '5'",
        "SELECT id FROM {t} WHERE id = 'absent'",
        "SELECT count(*), max(ts) FROM {t} WHERE amount BETWEEN 30 AND 90",
        "SELECT place.zip, tags FROM {t} WHERE place.city = 'city 3'",
        "SELECT id, score, at, day FROM {t} WHERE score > 24.5",
        "SELECT id FROM {t} WHERE day = DATE'2026-01-05' OR at < TIMESTAMP'2026-01-01 05:00:00'",
        "SELECT id FROM {t} WHERE price <=> 2.25 OR age IS NULL",
        "SELECT id FROM {t} WHERE array_contains(tags, '3') AND id < '11'",
        "SELECT id FROM {t} WHERE NOT flag AND msg = 'Buying car 1'",
        "SELECT word FROM {t} LATERAL VIEW explode(split(msg, ' ')) AS word WHERE id = '5'",
        "SELECT id FROM {t} WHERE id > '5' ORDER BY amount DESC, id LIMIT 3",
        "SELECT id FROM {t} WHERE id = '5' MINUS SELECT id FROM {t} WHERE id = '6'",
        "SELECT DISTINCT msg FROM {t} WHERE amount < 30 AND rand() < 2",
        "WITH r AS (SELECT id, rand() AS x FROM {t} WHERE amount < 60) "
        "SELECT count(*) FROM r a JOIN r b ON a.id = b.id AND a.x = b.x",
    ],
    (False,): [
        "SELECT id FROM {t} WHERE upper(msg) = 'BUYING CAR 3'",
        "SELECT ts, count(*) FROM {t} GROUP BY ts",
    ],
    (True, True): [
        "SELECT a.id, b.amount FROM {t} a JOIN {t} b ON a.amount = b.amount "
        "WHERE a.id IN ('3', '4') AND b.msg <> 'Buying car 1'",
        "SELECT a.id, b.id FROM {t} a LEFT JOIN {t} b ON a.id = b.id AND b.amount < 15 "
        "WHERE a.msg = 'Buying car 1'",
        "SELECT id FROM {t} WHERE dt > '2026-01-01' AND id IN "
        "(SELECT id FROM {t} WHERE amount < 12)",
        "SELECT id FROM {t} a WHERE NOT EXISTS (SELECT 1 FROM {t} b WHERE b.id = a.id "
        "AND b.msg = 'Buying car 2') AND a.amount < 60",
        "SELECT id FROM {t} WHERE amount = (SELECT max(amount) FROM {t} WHERE id < '12') "
        "AND id > '1'",
        "SELECT /*+ BROADCAST(b) */ a.dt, count(DISTINCT b.msg) FROM {t} a JOIN {t} b "
        "ON a.dt = b.dt AND b.amount < 9 WHERE a.id < '11' GROUP BY ROLLUP (a.dt)",
    ],
    (False, True): [
        "SELECT a.id, b.id FROM {t} a FULL JOIN (SELECT * FROM {t} WHERE id = '7') b "
        "ON a.id = b.id AND a.id = '7'",
    ],
    (True, True, True): [
        "WITH few AS (SELECT id, amount, dt FROM {t} WHERE amount < 20) "
        "SELECT id, sum(amount) OVER (PARTITION BY dt ORDER BY id) FROM few "
        "UNION ALL SELECT id, -1 FROM {t} WHERE id = '9' "
        "UNION SELECT id, amount FROM few WHERE id > '2'",
    ],
}
_QUERIES = each_of(BY_USE)


@pytest.mark.parametrize(
    ("kind", "query", "used"),
    [
        *(("rule_merged", *each) for each in _QUERIES),
        *(("rule_cow", *each) for each in _QUERIES[::3]),
        *(("rule_partitioned", *each) for each in _QUERIES[1::3]),
    ],
)
def test_sql_returns_the_same_rows(agreed, kind, query, used):
    assert sorted(by_index(agreed(query.format(t=kind)))) == sorted(used)


@pytest.mark.fast
def test_dataframes_views_and_joins_use_the_index(agreed):
    def found(session):
        return session.table("rule_cow").where((F.col("id") == "3") | (F.col("amount") < 6))

    [use] = agreed(found)
    assert (use.by_index, use.rows, use.in_tasks, use.indexes) == (True, 3, False, ("i",))

    def joined(session):
        session.table("rule_cow").createOrReplaceTempView("every_row")
        left = session.sql("SELECT id AS k, * FROM every_row WHERE amount < 30")
        return left.join(session.table("rule_merged").alias("m"), F.col("k") == F.col("m.id"))

    assert by_index(agreed(joined)) == [True, True]


def test_queries_with_parameters(agreed):
    query = "SELECT id FROM rule_cow WHERE id = :id OR amount < :most"
    named = agreed(lambda session: session.sql(query, args={"id": "7", "most": 9}))
    query = "SELECT id FROM rule_cow WHERE id = ?"
    assert by_index(named + agreed(lambda session: session.sql(query, args=["7"]))) == [True, True]


SUB_QUERIES = {
    (False, True, True, True): [
        # One nested in another, and beside it one without anything to look up.
        "SELECT id FROM {t} WHERE msg = 'Buying car 3' AND id > (SELECT min(id) FROM {t} "
        "WHERE id < '3' AND amount > (SELECT min(amount) FROM {t} WHERE id > '7')) "
        "AND amount < (SELECT max(amount) FROM {t})",
    ],
    (True, True, True): [
        # The optimizer merges the two into one query.
        "SELECT id, (SELECT max(amount) FROM {t} WHERE id = '3') AS a, "
        "(SELECT min(ts) FROM {t} WHERE id = '3') AS b FROM {t} WHERE id < '11'",
        # It becomes a side of a join, after Spark has optimized it by itself.
        "SELECT a.id FROM {t} a JOIN {t} c ON a.id = c.id AND c.msg = 'Buying car 3' WHERE "
        "a.amount > (SELECT 0.2 * avg(b.amount) FROM {t} b WHERE b.id = c.id AND b.id < '5')",
    ],
    (True,): [
        "SELECT (SELECT msg FROM {t} WHERE id = '3') AS m, (SELECT 7) AS n",
    ],
    (True, True): [
        "SELECT id, CASE WHEN id IN (SELECT id FROM {t} WHERE amount < 9) THEN 1 END AS n "
        "FROM {t} WHERE id < '11'",
        "SELECT dt, count(*) FROM {t} WHERE id < '11' GROUP BY dt "
        "HAVING count(*) > (SELECT max(ts) FROM {t} WHERE id = '1')",
        "SELECT a.id, (SELECT max(b.amount) FROM {t} b WHERE b.id = a.id AND b.amount < 9) "
        "FROM {t} a WHERE a.id < '11'",
    ],
}


@pytest.mark.parametrize(
    ("query", "used"),
    each_of(SUB_QUERIES),
)
def test_sub_queries_are_read_through_the_index(agreed, query, used):
    assert sorted(by_index(agreed(query.format(t="rule_merged")))) == sorted(used)


def test_path_reads_time_travel_and_read_optimized(agreed, tables):
    path = str(tables.folder / "rule_merged")
    for options in (
        {},
        {"as.of.instant": tables.first_instant},
        {"hoodie.datasource.query.type": "read_optimized"},
    ):

        def read(session, options=options):
            return session.read.format("hudi").options(**options).load(path).where("id = '2'")

        assert by_index(agreed(read)) == [True]
    then = f"rule_merged TIMESTAMP AS OF '{tables.first_instant}'"
    query = f"SELECT a.amount, b.amount FROM rule_merged a JOIN {then} b ON a.id = b.id "
    assert by_index(agreed(query + "WHERE a.id = '2'")) == [True, True]
    [use] = agreed(f"SELECT dt, count(*) FROM {then} WHERE id < '3' GROUP BY dt")
    assert (use.reason, use.instant) == ("the index counts its rows", tables.first_instant)


@pytest.mark.parametrize("kind", KINDS)
def test_many_rows_are_read_by_tasks(agreed, read_by_tasks, kind):
    for query in (
        "SELECT * FROM {t} WHERE amount < 300",
        "SELECT place, tags, id FROM {t} WHERE msg > 'Buying car 2' AND age < 40",
        "SELECT sum(amount) FROM {t} WHERE id > '5'",
        "SELECT a.id, b.day FROM {t} a JOIN {t} b ON a.id = b.id "
        "WHERE a.amount < 30 AND b.amount > 3",
    ):
        uses = agreed(query.format(t=kind))
        assert all(each.in_tasks for each in uses), uses


@pytest.mark.usefixtures("read_by_tasks")
def test_tasks_have_nothing_to_read_when_all_slices_are_skipped(agreed):
    """No row of the table can match: there is nothing left for a task to read."""
    [use] = agreed("SELECT id, max(msg) FROM rule_cow WHERE amount < -1 GROUP BY id")
    assert (use.by_index, use.in_tasks, use.expected) == (True, True, 0)
    agreed(
        "SELECT a.id, b.msg FROM rule_cow a LEFT JOIN rule_cow b ON a.id = b.id AND b.amount < -1"
    )


def test_only_needed_columns_are_read(agreed):
    [use] = agreed("SELECT upper(msg) AS m FROM rule_merged WHERE amount * 2 > 3 AND id < '2'")
    assert use.columns == ("id", "msg", "amount")
    assert use.where == "`id` < '2'"


def test_equal_relations_are_read_once(enabled, agreed, read_by_tasks):
    query = (
        "SELECT dt, n FROM (SELECT dt, sum(ts) AS n FROM rule_cow WHERE amount < 60 GROUP BY dt) "
    )
    agreed(f"{query} UNION ALL {query}")
    frame = enabled.sql(f"{query} UNION ALL {query}")
    frame.collect()
    assert "ReusedExchange" in frame._jdf.queryExecution().executedPlan().toString()


@pytest.mark.fast
def test_frames_that_run_again_return_the_same(enabled, tables):
    frame = enabled.table("rule_cow").where("amount < 30")
    first = rows_of(frame)
    assert rows_of(frame) == first
    assert frame.count() == len(first)
    assert [row.id for row in frame.toLocalIterator()] == [row.id for row in frame.collect()]
    assert sorted(frame.toPandas()["id"]) == sorted(row.id for row in frame.collect())
    assert sorted(row.id for row in frame.rdd.collect()) == sorted(frame.toPandas()["id"])
