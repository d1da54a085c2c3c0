"""The keys that one side of a join has are looked up on its other side, when the query runs."""

# ruff: noqa: S608 - the queries are the test's own

import pytest
from pyspark.sql import SparkSession

from hudi_index_service.sql import last_queries
from tests.spark_rule.conftest import MakeTable, by_index, each_of, rows_of

FEW = "(SELECT * FROM rule_cow WHERE id IN ('3', '4'))"


def looked_up(uses, table="rule_merged"):
    """How a table was read by keys."""
    [use] = [each for each in uses if each.table.endswith(table)]
    return use


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a.id, b.* FROM {few} a JOIN {t} b ON a.amount = b.amount",
        "SELECT a.id, b.id FROM {t} b JOIN {few} a ON a.age = b.age AND a.amount = b.amount",
        "SELECT a.id, b.id FROM {few} a LEFT JOIN {t} b ON a.amount = b.amount",
        "SELECT a.id, b.id FROM {t} b RIGHT JOIN {few} a ON a.amount = b.amount",
        "SELECT id FROM {t} WHERE amount IN (SELECT amount FROM {few})",
        "SELECT id FROM {few} a WHERE EXISTS (SELECT 1 FROM {t} b WHERE b.amount = a.amount)",
        "SELECT id FROM {few} a WHERE NOT EXISTS "
        "(SELECT 1 FROM {t} b WHERE a.amount = b.amount AND a.msg <> b.msg)",
        "SELECT id, a.msg FROM {few} a WHERE a.msg = 'x' OR amount IN (SELECT amount FROM {t})",
        "SELECT id, a.msg = 'x' OR amount IN (SELECT amount FROM {t}) AS f FROM {few} a",
        "SELECT id FROM {few} a LEFT SEMI JOIN {t} b ON a.amount = b.amount",
        "SELECT id FROM {few} a LEFT ANTI JOIN {t} b ON a.amount = b.amount AND b.ts > 7",
        "SELECT a.id, b.n FROM {few} a JOIN "
        "(SELECT amount, count(*) AS n, max(id) FROM {t} GROUP BY amount) b "
        "ON a.amount = b.amount",
        "SELECT a.k, b.id FROM (SELECT amount AS k FROM {few} ORDER BY id LIMIT 1) a "
        "JOIN (SELECT amount AS l, id FROM {t}) b ON k = l",
        "SELECT id FROM {t} b WHERE EXISTS (SELECT 1 FROM {few} a WHERE b.amount = a.amount)",
        "SELECT a.id, b.id FROM {few} a JOIN {t} b ON a.amount <=> b.amount",
        # Spark makes joins by <=> of these.
        "SELECT a.id, n FROM {few} a, LATERAL "
        "(SELECT count(*) AS n FROM {t} b WHERE b.amount = a.amount)",
        "SELECT a.id, m FROM {few} a LEFT JOIN LATERAL "
        "(SELECT max(msg) AS m FROM {t} b WHERE b.amount = a.amount)",
    ],
)
def test_other_side_of_a_join_is_looked_up_by_keys(agreed, query):
    uses = agreed(query.format(t="rule_merged", few=FEW))
    assert by_index(uses) == [True, True]
    # In the merged table, one base file has an entry.
    assert looked_up(uses).rows <= 2
    assert "of a join" in looked_up(uses).reason
    assert " IN (" in looked_up(uses).where


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a.id, b.id FROM {t} b LEFT JOIN {few} a ON a.amount = b.amount",
        "SELECT a.id, b.id FROM {few} a RIGHT JOIN {t} b ON a.amount = b.amount",
        "SELECT a.id, b.id FROM {few} a FULL JOIN {t} b ON a.amount = b.amount",
        "SELECT id FROM {t} b WHERE NOT EXISTS (SELECT 1 FROM {few} a WHERE a.amount = b.amount)",
        "SELECT id FROM {few} WHERE amount NOT IN (SELECT amount FROM {t})",
        "SELECT id FROM {t} WHERE amount NOT IN (SELECT amount FROM {few})",
        "SELECT id FROM {few} WHERE NOT (msg = 'x' OR amount IN (SELECT amount FROM {t}))",
        "SELECT id FROM {t} WHERE id = '77' OR amount IN (SELECT amount FROM {few})",
        "SELECT a.id, b.id FROM {few} a JOIN {t} b ON a.amount = b.amount OR b.id = '7'",
        "SELECT a.id, b.id FROM {few} a JOIN {t} b ON a.amount = b.amount + 1",
        # A row of the other side depends on the rows beside it.
        "SELECT a.id, b.n FROM {few} a JOIN "
        "(SELECT amount, row_number() OVER (ORDER BY amount) AS n FROM {t}) b "
        "ON a.amount = b.amount",
        "SELECT a.id, b.id FROM {few} a JOIN "
        "(SELECT * FROM {t} ORDER BY amount LIMIT 5) b ON a.amount = b.amount",
        "SELECT a.id, b.n FROM {few} a JOIN "
        "(SELECT max(amount) AS amount, count(*) AS n FROM {t} GROUP BY ts) b "
        "ON a.amount = b.amount",
        "SELECT a.id, b.id FROM {few} a JOIN {t} TABLESAMPLE (50 PERCENT) REPEATABLE (3) b "
        "ON a.amount = b.amount",
        # The union contains values of both sides.
        "SELECT a.id, b.id FROM (SELECT amount, id FROM {few} UNION ALL "
        "SELECT amount, id FROM rule_merged) a JOIN {t} b ON a.amount = b.amount",
    ],
)
def test_joins_in_which_a_look_up_would_miss_rows(agreed, query):
    for use in agreed(query.format(few=FEW, t="rule_partitioned")):
        assert use.by_index == use.table.endswith("cow")


def test_keys_are_passed_from_join_to_join(agreed):
    """The rows of the first join have the keys of the second."""
    uses = agreed(
        "SELECT a.id, b.id, c.msg FROM rule_merged c JOIN rule_partitioned b ON b.id = c.id "
        "JOIN rule_cow a ON a.amount = b.amount WHERE a.id IN ('3', '4')"
    )
    assert by_index(uses) == [True, True, True]
    assert looked_up(uses).rows <= 2


def test_keys_of_a_relation_that_tasks_would_read(agreed, costs):
    costs(spark_scan_ms=1e12, handing_ms=0.1, handed_row_ms=100, tasks_ms=800, task_slice_ms=0.1)
    query = "SELECT a.id, b.id FROM {few} a JOIN {t} b ON a.amount = b.amount WHERE b.id > '1'"
    uses = agreed(query.format(few=FEW, t="rule_partitioned"))
    assert [(each.by_index, each.in_tasks) for each in uses] == [(True, False), (True, False)]
    query = "SELECT a.id, b.id FROM {few} a JOIN {t} b ON a.amount < b.amount WHERE b.id > '7'"
    uses = agreed(query.format(few=FEW, t="rule_partitioned"))
    assert [(each.by_index, each.in_tasks) for each in uses] == [(True, False), (True, True)]


def test_cte_that_spark_evaluates_once(agreed):
    """Its random numbers are the same in both places; another CTE may take keys in one of two."""
    cte = "WITH r AS (SELECT id, amount{} FROM rule_partitioned) "
    joined = f"FROM {FEW} a JOIN r b ON a.amount = b.amount JOIN r c ON "
    uses = agreed(cte.format(", rand() AS x") + f"SELECT a.id, b.id {joined} b.x = c.x")
    assert not [use for use in uses if use.by_index and use.table.endswith("partitioned")]
    agreed(cte.format("") + f"SELECT a.id, c.id {joined} b.id <> c.id")


KEYED = {
    (True,): [
        "SELECT k.id, t.msg FROM (VALUES ('3'), ('4'), (NULL), ('absent')) AS k(id) "
        "JOIN {t} t ON k.id = t.id",
        # Python has no dates before the year 1, which stand beside the keys.
        "SELECT k.id, k.day IS NULL AS n, t.msg FROM (VALUES ('3', DATE'-0005-01-01'), "
        "('4', NULL)) AS k(id, day) JOIN {t} t ON k.id = t.id",
    ],
    (False,): [
        "SELECT 1 FROM (VALUES (TIMESTAMP'2026-01-01 00:00:00')) AS k(at) "
        "JOIN (SELECT timestamp(dt) AS at FROM rule_cow) t ON k.at = t.at",
        # JSON cannot hold texts that are not UTF-8.
        "SELECT t.id FROM (VALUES (cast(X'C328' AS string)), ('3')) AS k(id) "
        "JOIN {t} t ON k.id = t.id",
    ],
    (True, True): [
        # Without any key there are no rows.
        "SELECT a.id, b.id FROM (SELECT * FROM rule_cow WHERE id = 'absent') a "
        "LEFT JOIN {t} b ON a.amount = b.amount",
        "SELECT count(*) FROM (SELECT * FROM rule_cow WHERE id = 'absent') a "
        "JOIN {t} b ON a.amount = b.amount",
    ],
}


@pytest.mark.parametrize(
    ("query", "used"),
    each_of(KEYED),
)
def test_where_keys_come_from(agreed, query, used):
    uses = agreed(query.format(few=FEW, t="rule_partitioned"))
    assert tuple(by_index(uses)) == used
    assert {use.rows for use in uses if "VALUES ('3'), ('4')" in query} <= {2}


@pytest.mark.parametrize(
    "few",
    [
        "SELECT id, msg FROM rule_cow WHERE id IN ('0', '11', '12')",
        "SELECT id, msg FROM rule_cow WHERE id = '0'",
        "SELECT id, msg FROM rule_cow WHERE id = 'absent'",
        # No row of the inner side has NULL, and the join has.
        "SELECT a.id, b.msg FROM rule_partitioned a LEFT JOIN "
        "(SELECT * FROM rule_cow WHERE id IN ('11', '12')) b ON a.id = b.id "
        "WHERE a.id IN ('12', '13')",
    ],
)
def test_rows_with_null_are_joined_by_null_safe_equality(agreed, few):
    query = f"SELECT a.id, b.id, b.msg FROM ({few}) a JOIN rule_merged b ON a.msg <=> b.msg"
    assert all(by_index(agreed(query)))


@pytest.fixture(scope="module")
def typed(spark: SparkSession, make_table: MakeTable) -> None:
    values = spark.sql(
        "SELECT string(id) AS id, int(id) AS n, double(id % 5) AS d, "
        "cast(id % 7 AS decimal(12, 2)) AS price, date_add(DATE'1500-02-03', int(id % 11)) AS day, "
        "timestamp_micros(id % 13 - 6000000000000000) AS at, "
        "cast(timestamp_micros(id % 9) AS timestamp_ntz) AS wall, "
        "cast(concat('b', id % 6) AS binary) AS raw, "
        "if(id % 3 = 0, NULL, concat('ж \\' ', id % 17, '\\\\')) AS name FROM range(60)"
    )
    columns = ["id", "n", "d", "price", "day", "at", "wall", "raw", "name"]
    make_table("rule_typed", values, columns, ordering_column=None)


@pytest.mark.parametrize(
    ("column", "by_keys"),
    [
        *(("n", True), ("price", True), ("day", True), ("at", True), ("name", True)),
        *(("raw", True), ("d", False), ("wall", False)),
    ],
)
@pytest.mark.usefixtures("typed")
def test_key_types(agreed, column, by_keys):
    uses = agreed(
        f"SELECT a.id, a.{column}, b.id FROM rule_typed a JOIN rule_typed b "
        f"ON a.{column} = b.{column} WHERE a.id IN ('1', '3')"
    )
    assert by_index(uses) == [True, by_keys]


def test_keys_filter_sparks_scan_once_the_index_is_turned_off(spark, enabled, tables, costs):
    """Spark may have planned to broadcast the few rows that were expected."""
    costs(spark_scan_ms=1e12)
    query = (
        "SELECT a.id, b.id FROM (SELECT * FROM rule_cow WHERE amount < 60) a "
        "JOIN rule_partitioned b ON a.id = b.id"
    )
    frame = enabled.sql(query)
    assert "of a join" in frame._jdf.queryExecution().optimizedPlan().toString()
    enabled.conf.set("spark.hudi.index.enabled", "false")
    assert rows_of(frame) == rows_of(spark.sql(query))
    uses = last_queries(enabled)[-1]
    assert [each.reason for each in uses] == ["spark.hudi.index.enabled has been set to false"] * 2


def test_a_cached_frame_gives_keys(spark, enabled, tables):
    query = "SELECT a.id, b.id FROM rule_few a JOIN rule_partitioned b ON a.amount = b.amount"
    for session in (enabled, spark):
        session.sql(f"SELECT * FROM {FEW} AS f").createOrReplaceTempView("rule_few")
    cached = enabled.table("rule_few").cache()
    try:
        assert rows_of(enabled.sql(query)) == rows_of(spark.sql(query))
    finally:
        cached.unpersist()


def test_explain_shows_the_keys_and_reads_none(enabled, tables):
    query = f"SELECT a.id, b.id FROM {FEW} a JOIN rule_partitioned b ON a.amount = b.amount"
    text = enabled.sql(query)._jdf.queryExecution().toString()
    assert text.count("HudiIndexScan") == 3  # one gives keys
    assert "by 2 keys of a join" in text
    assert [each.rows for each in last_queries(enabled)[-1]] == [None, None]
