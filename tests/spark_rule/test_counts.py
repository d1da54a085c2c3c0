"""Counts and tests of existence come from the index alone where it answers conditions exactly."""

from collections.abc import Callable
from functools import wraps

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from hudi_index_service.read.execution import Execution
from hudi_index_service.read.slices import counting
from hudi_index_service.sql import enable, last_queries
from hudi_index_service.sql.rule import weighing
from tests.hudi_tables import NO_METADATA_TABLE, hudi_options, numbered_rows, write
from tests.read.spark_jobs import jobs_so_far
from tests.spark_rule.conftest import each_of, rows, rows_of

COUNTED = "the index counts its rows"


@pytest.fixture
def runs(monkeypatch) -> list[Execution]:
    """Everything that the service reads or counts in this process."""
    found = []
    for name in ("table", "count", "value_counts", "exists"):
        method = getattr(Execution, name)

        @wraps(method)
        def recorded(self, *arguments, method=method):
            found.append(self)
            return method(self, *arguments)

        monkeypatch.setattr(Execution, name, recorded)
    return found


def pages_read(runs):
    """Data pages and bytes of base files that were read."""
    statistics = [each.statistics for each in runs]
    return sum(each.pages for each in statistics), sum(each.bytes_read for each in statistics)


COUNTS = [
    "SELECT count(*) FROM {t} WHERE id = '3'",
    "SELECT count(1) FROM {t} WHERE ID IN ('1', '2') OR amount BETWEEN 30 AND 60",
    "SELECT count(*) + 1 AS x, count(msg) AS y, count(*) AS Z FROM {t} WHERE NOT id < '3'",
    "SELECT count(*) FROM {t}",
    "SELECT count(age), count(score), count(place.city), count(msg, day), count(id) FROM {t}",
    "SELECT count(k) FROM (SELECT msg AS k, id AS msg FROM {t}) WHERE k < 'Buying car 3'",
    "SELECT count(*) FROM {t} WHERE score > 20 AND at IS NOT NULL AND place.city <> 'city 3'",
    "SELECT count(price) FROM {t} WHERE score = DOUBLE('NaN') OR age <=> NULL",
    "SELECT count(*), 'x' AS x, rand() < 2 AS y FROM {t} WHERE id = 'absent'",
    "SELECT msg, count(*) AS n FROM {t} GROUP BY msg",
    "SELECT upper(msg), count(*) AS n, count(age) FROM {t} WHERE amount < 300 GROUP BY msg "
    "HAVING count(*) > 3 ORDER BY n DESC, 1 LIMIT 3",
    "SELECT k, count(k) FROM (SELECT msg AS k, id AS msg FROM {t}) WHERE msg < '3' GROUP BY k",
    "SELECT count(*) AS n FROM {t} WHERE id > '3' GROUP BY msg",
    "SELECT DISTINCT msg FROM {t} WHERE id < '3'",
    "SELECT msg, count(*) FROM {t} WHERE id = 'absent' GROUP BY msg",
    "SELECT dt, count(msg) FROM {t} WHERE id < '3' GROUP BY dt",
    "SELECT msg, count(*), rank() OVER (ORDER BY count(*), msg) AS r FROM {t} GROUP BY msg",
    "SELECT 1 FROM {t} WHERE id < '3' LIMIT 1",
    "SELECT 'x' AS x FROM {t} WHERE id < '3' LIMIT 3",
    "SELECT 1 FROM {t} WHERE id = 'absent' LIMIT 3",
    "SELECT count(*) FROM (SELECT * FROM {t} WHERE id < '3' LIMIT 2)",
    "SELECT EXISTS (SELECT * FROM {t} WHERE id = '3') AS e",
    "SELECT EXISTS (SELECT * FROM {t} WHERE id = 'absent') AS e",
    "SELECT count(*) FROM (SELECT msg, count(*) AS n FROM {t} GROUP BY msg) WHERE n > 20",
    "SELECT count(*) FROM (SELECT msg, count(*) AS n FROM {t} GROUP BY msg)",
]


@pytest.mark.parametrize(
    ("kind", "query"),
    [
        *(("rule_cow", query) for query in COUNTS),
        *(("rule_partitioned", query) for query in COUNTS[1::3]),
        *(("rule_merged", query) for query in COUNTS[::3]),
    ],
)
def test_index_alone_counts(agreed, runs, kind, query):
    [use] = agreed(query.format(t=kind))
    assert use.reason == COUNTED
    assert (use.by_index, use.in_tasks) == (True, False)
    assert use.indexes == (() if "absent" in query and kind != "rule_merged" else ("i",))
    assert runs
    assert pages_read(runs) == (0, 0)
    assert (use.read.pages, use.read.bytes_read) == (0, 0)


@pytest.mark.fast
def test_counts_of_dataframes_and_existence(agreed, runs):
    def frame(session, condition):
        return session.table("rule_cow").where(condition)

    for condition in ("id < '3'", "id = 'absent'"):
        [use] = agreed(lambda s, c=condition: frame(s, c).groupBy("msg").count())
        assert (use.reason, use.columns) == (COUNTED, ("msg",))
        assert use.where == f"(`id` IS NOT NULL) AND (`id` {condition[3:]})"
        [use] = agreed(lambda s, c=condition: frame(s, c).select(F.lit(1)).limit(1))
        assert (use.reason, use.columns) == (COUNTED, ())
    assert pages_read(runs) == (0, 0)


def test_actions_that_need_a_number(enabled, spark, tables, runs):
    for condition in ("id < '3'", "id = 'absent'"):
        found, plain = (each.table("rule_cow").where(condition) for each in (enabled, spark))
        for act in (
            DataFrame.count,
            lambda frame: frame.limit(1).count(),
            DataFrame.isEmpty,
            lambda frame: frame.select().collect(),
        ):
            assert act(found) == act(plain)
            assert last_queries(enabled)[-1][0].reason == COUNTED
    assert pages_read(runs) == (0, 0)


def test_many_rows_without_columns_are_sparks(enabled, spark, tables, monkeypatch):
    found, plain = (each.table("rule_cow").where("id < '3'") for each in (enabled, spark))
    monkeypatch.setattr(Execution, "count", lambda self: 10_001)
    assert found.select().collect() == plain.select().collect()
    [use] = last_queries(enabled)[-1]
    assert (use.by_index, use.reason) == (
        False,
        "the index only counts its rows, and they are many",
    )


def test_cached_counts(enabled, spark, tables):
    query = "SELECT msg, count(*) AS n FROM rule_cow WHERE id < '3' GROUP BY msg"
    cached = enabled.sql(query).cache()
    try:
        for _ in range(2):
            assert rows_of(cached) == rows_of(spark.sql(query))
        assert last_queries(enabled)[-1][0].reason == COUNTED
    finally:
        cached.unpersist()


def test_counts_run_no_job(enabled, tables):
    before = jobs_so_far(enabled)
    for query in (
        "SELECT count(*) FROM rule_cow WHERE id < '3'",
        "SELECT msg, count(*) FROM rule_cow WHERE id < '3' GROUP BY msg HAVING count(*) > 2",
        "SELECT 1 FROM rule_cow WHERE id < '3' LIMIT 1",
    ):
        assert enabled.sql(query).collect()
    assert jobs_so_far(enabled) == before


WITHIN = {
    1: [
        "SELECT id FROM {t} WHERE id < '2' AND age = (SELECT count(*) FROM {t} "
        "WHERE msg = 'Buying car 3')",
        "SELECT a.msg, a.n, b.amount FROM (SELECT msg, count(*) AS n FROM {t} GROUP BY msg) a "
        "JOIN {t} b ON a.msg = b.msg WHERE b.id < '11'",
        "SELECT id FROM {t} a WHERE id < '15' AND (SELECT count(*) FROM {t} b "
        "WHERE b.id = concat(a.id, '0')) = 0",
        "SELECT id, n FROM {t} a, LATERAL (SELECT count(*) AS n FROM {t} b "
        "WHERE b.msg = a.msg AND id < '15') WHERE id < '12'",
        "SELECT id, n FROM {t}, LATERAL (SELECT count(*) AS n FROM {t} WHERE id < '15') "
        "WHERE id < '12'",
        "WITH c AS (SELECT msg, count(*) AS n, rand() AS x FROM {t} GROUP BY msg) "
        "SELECT a.msg, b.n FROM c a JOIN c b ON a.msg = b.msg AND a.x = b.x",
        "SELECT DISTINCT msg FROM {t} WHERE id < '3' INTERSECT "
        "SELECT msg FROM {t} WHERE id > '2' GROUP BY msg HAVING count(*) > 5",
        "SELECT id, (SELECT max(n) FROM (SELECT msg, count(*) AS n FROM {t} GROUP BY msg) b "
        "WHERE b.msg = a.msg) AS n FROM {t} a WHERE id < '12'",
        "SELECT id FROM {t} WHERE id < '12' AND msg IN (SELECT msg FROM {t} GROUP BY msg "
        "HAVING count(*) > 26)",
        "SELECT id FROM {t} WHERE id < '12' AND EXISTS (SELECT 1 FROM {t} WHERE id = '150')",
    ],
    3: [
        "SELECT count(*) FROM {t} WHERE id < '3' UNION ALL SELECT count(msg) FROM {t} "
        "UNION ALL SELECT count(*) FROM {t} WHERE id < '3'",
        "SELECT (SELECT count(*) FROM {t} WHERE id < '2') + (SELECT count(msg) FROM {t}) AS n, "
        "(SELECT count(*) FROM {t} WHERE id < '2') AS m",
    ],
    0: [
        # the rows are found before Spark makes a join of it
        "SELECT id, (SELECT count(*) FROM {t} b WHERE b.msg = a.msg AND amount < 90) AS n "
        "FROM {t} a WHERE id < '12'",
    ],
    2: [
        "SELECT count(*) + (SELECT count(*) FROM {t} WHERE id < '2') AS n FROM {t} "
        "WHERE msg < 'Buying car 4'",
    ],
}


@pytest.mark.parametrize(
    ("query", "counted"),
    each_of(WITHIN),
)
@pytest.mark.parametrize(
    ("adaptive", "kind"), [("true", "rule_partitioned"), ("false", "rule_cow")]
)
def test_counts_within_queries(agreed, settings_of_both, query, counted, adaptive, kind):
    settings_of_both("spark.sql.adaptive.enabled", adaptive)
    uses = agreed(query.format(t=kind))
    assert [each.reason for each in uses].count(COUNTED) == counted


def test_dynamic_pruning_above_counts(agreed, settings_of_both):
    settings_of_both("spark.sql.optimizer.dynamicPartitionPruning.reuseBroadcastOnly", "false")
    uses = agreed(
        "SELECT a.dt, n FROM (SELECT dt, count(*) AS n FROM rule_partitioned GROUP BY dt) a "
        "JOIN (SELECT dt FROM rule_cow WHERE id IN ('3', '5')) b ON a.dt = b.dt"
    )
    assert COUNTED in [each.reason for each in uses]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(*) FROM rule_cow WHERE upper(id) = '3' AND id < '5'",
        "SELECT count(*) FROM rule_cow WHERE id < '3' AND (msg = 'x' OR upper(msg) > 'B')",
        "SELECT count(*) FROM rule_cow WHERE id < '3' AND ts = 0",
        "SELECT count(*) FROM rule_cow WHERE id < '3' AND place.zip = 3",
        "SELECT count(*) FROM rule_cow WHERE id < '3' AND amount > (SELECT min(amount) "
        "FROM rule_cow WHERE id < '11')",
        "SELECT count(*), max(amount) FROM rule_cow WHERE id < '3'",
        "SELECT count(DISTINCT msg) FROM rule_cow WHERE id < '3'",
        "SELECT count(*) FILTER (WHERE msg = 'Buying car 3') FROM rule_cow WHERE id < '3'",
        "SELECT count(ts), count(place) FROM rule_cow WHERE id < '3'",
        "SELECT count(upper(msg)) FROM rule_cow WHERE id < '3'",
        "SELECT ts, count(*) FROM rule_cow WHERE id < '3' GROUP BY ts",
        "SELECT amount, count(*) FROM rule_cow WHERE id < '3' GROUP BY amount",
        "SELECT upper(msg), count(*) FROM rule_cow WHERE id < '3' GROUP BY upper(msg)",
        "SELECT place.city, count(*) FROM rule_cow WHERE id < '3' GROUP BY place.city",
        "SELECT msg, dt, count(*) FROM rule_cow WHERE id < '3' GROUP BY msg, dt",
        "SELECT dt, count(*) FROM rule_cow WHERE id < '3' GROUP BY ROLLUP (dt)",
        "SELECT count(*) FROM (SELECT id FROM rule_cow WHERE id < '3' ORDER BY id LIMIT 2)",
        "SELECT id FROM rule_cow WHERE id < '3' ORDER BY id LIMIT 1",
        "SELECT count(*) FROM (SELECT explode(tags) FROM rule_cow WHERE id < '3')",
    ],
)
def test_queries_that_need_more_than_a_count_read_rows(agreed, query):
    assert {each.reason.partition(" finds ")[0] for each in agreed(query)} == {"the index"}


FALLEN_BACK = [
    "SELECT count(*) + 1 AS n, count(msg) FROM rule_cow WHERE id < '3'",
    "SELECT upper(msg), count(*) FROM rule_cow WHERE id < '3' GROUP BY msg HAVING count(*) > 2",
    "SELECT a.msg, n, b.id FROM (SELECT msg, count(*) AS n FROM rule_cow GROUP BY msg) a "
    "JOIN rule_cow b ON a.msg = b.msg",
    "SELECT 'x' AS x FROM rule_cow WHERE id < '3' LIMIT 3",
    "SELECT EXISTS (SELECT 1 FROM rule_cow WHERE id < '3') AS e",
]


@pytest.mark.parametrize("query", FALLEN_BACK)
def test_spark_counts_if_the_index_fails(agreed, unreadable, query):
    assert "gone" in [each.reason for each in agreed(query)]


@pytest.mark.parametrize("query", ["SELECT msg FROM rule_cow WHERE id = '3'", *FALLEN_BACK])
def test_spark_reads_and_counts_once_the_index_is_turned_off(spark, enabled, tables, query):
    planned = enabled.sql(query)
    planned._jdf.queryExecution().executedPlan()
    assert last_queries(enabled)[-1][0].by_index
    enabled.conf.set("spark.hudi.index.enabled", "false")
    assert rows_of(planned) == rows_of(spark.sql(query))
    reasons = {each.reason for each in last_queries(enabled)[-1]}
    assert reasons == {"spark.hudi.index.enabled has been set to false"}


def test_explain_shows_both_ways_and_counts_nothing(enabled, tables, capsys, runs):
    frame = enabled.sql("SELECT msg, count(*) AS n FROM rule_cow WHERE id < '3' GROUP BY msg")
    for mode in ("simple", "extended", "cost", "formatted", "codegen"):
        frame.explain(mode)
    shown = capsys.readouterr().out
    assert f"HudiIndexScan index i, by driver: {COUNTED}" in shown
    assert "OtherwiseSpark" in shown
    assert "Aggregate [msg" in shown
    assert "rowCount=8" in shown  # 7 values and NULL
    assert runs == []
    [use] = last_queries(enabled)[-1]
    assert (use.rows, use.expected) == (None, 8)
    assert len(frame.collect()) == 8
    [use] = last_queries(enabled)[-1]
    assert use.rows == 8


@pytest.fixture(scope="module")
def half_indexed(make_table) -> Callable[[str, DataFrame], None]:
    """Makes a table of two partitions of rows with a word, the second of which has no entry."""

    def make(name: str, worded: DataFrame) -> None:
        first, second = (worded.where(f"dt = '2026-01-0{day}'") for day in (1, 2))
        path = make_table(name, first, ["word", "id"], partition_column="dt")
        options = hudi_options(name, partition_column="dt", **NO_METADATA_TABLE)
        write(second, path, options, "insert")

    return make


@pytest.fixture(scope="module")
def sparse(spark, make_table, half_indexed) -> None:
    """A table whose word is NULL in every third row and empty in others; the second of its two
    partitions has no entry. And one that is empty."""
    number = F.col("amount") / 3
    word = F.when(number % 3 != 0, F.when(number % 2 == 0, "").otherwise("wörd"))
    worded = numbered_rows(spark, 0, 60).withColumn("word", word)
    half_indexed("sparse", worded)
    empty = make_table("emptied", worded, ["word", "id"])
    options = hudi_options("emptied", **NO_METADATA_TABLE)
    write(worded.where("false"), empty, options, "insert_overwrite_table")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT word, count(*), count(word) FROM {t} GROUP BY word",
        "SELECT word, count(*) FROM {t} WHERE id < '3' GROUP BY word",
        "SELECT DISTINCT word FROM {t} WHERE dt = '2026-01-01'",
        "SELECT count(*), count(word) FROM {t}",
        "SELECT count(*) FROM {t} WHERE word IS NULL",
        "SELECT count(*) FROM {t} WHERE word <=> NULL AND id > '2'",
        "SELECT dt, count(*) FROM {t} WHERE id < '3' GROUP BY dt",
        "SELECT 1 FROM {t} WHERE word = '' LIMIT 12",
    ],
)
def test_null_values_slices_without_an_entry_and_empty_tables(agreed, sparse, query):
    [use] = agreed(query.format(t="sparse"))
    assert use.reason.startswith(COUNTED)
    agreed(query.format(t="emptied"))


def test_null_partition_values(spark, agreed, make_table):
    parted = rows(spark, 0, 20).withColumn("dt", F.when(F.col("amount") % 2 == 0, F.col("dt")))
    make_table("parted", parted, ["id", "dt"], partition_column="dt")
    agreed("SELECT dt, count(*), count(dt) FROM parted WHERE id < '3' GROUP BY dt")
    agreed("SELECT id, count(*), count(dt) FROM parted WHERE id < '3' GROUP BY id")


def test_column_named_like_a_count(agreed):
    [use] = agreed(
        "SELECT `count 0`, count(*), count(`count 0`) FROM (SELECT msg AS `count 0` FROM rule_cow) "
        "GROUP BY `count 0`"
    )
    assert use.reason == COUNTED


@pytest.fixture(scope="module")
def not_utf8(spark, half_indexed) -> None:
    """A table with texts that are not UTF-8; its second partition has no entry."""
    word = F.expr("CASE WHEN amount % 2 = 0 THEN CAST(X'ff61' AS STRING) "
                  "WHEN amount % 5 = 0 THEN CAST(X'fe61' AS STRING) ELSE 'plain' END")  # fmt: skip
    half_indexed("not_utf8", numbered_rows(spark, 0, 60).withColumn("word", word))


@pytest.mark.parametrize(
    "query",
    [
        "SELECT hex(word), count(*) FROM not_utf8 GROUP BY word",
        "SELECT hex(word), count(*) FROM not_utf8 WHERE dt = '2026-01-01' GROUP BY word",
        "SELECT hex(word) FROM not_utf8 WHERE id < '3'",
        "SELECT hex(word), id FROM not_utf8 WHERE word > 'plain'",
    ],
)
def test_texts_that_are_not_utf8_are_their_bytes(agreed, not_utf8, query):
    [use] = agreed(query)
    assert "in Python" not in use.reason, use.reason


def test_group_by_a_column_of_many_values_reads_rows(agreed, enabled, monkeypatch):
    monkeypatch.setattr(counting, "COUNTED_VALUES", 6)
    query = "SELECT msg, count(*) FROM rule_cow WHERE id < '3' GROUP BY msg"
    [use] = agreed(query)
    assert use.reason == "the index finds 123 rows"
    # The manifest only has an estimate. The decision before is forgotten.
    enable(enabled)
    monkeypatch.setattr(weighing, "may_have_few_values", lambda plan, column: True)
    [use] = agreed(query)
    assert use.reason == COUNTED
    assert use.read.rows_checked >= use.read.rows_returned == 123


def test_damaged_entry_is_not_counted(spark, agreed, make_table):
    path = make_table("damaged", numbered_rows(spark, 0, 40), ["id", "msg"])
    for data in (path / ".hoodie" / ".index" / "lucene").rglob("*.pack"):
        data.write_bytes(bytes(data.stat().st_size))
    [use] = agreed("SELECT msg, count(*) FROM damaged WHERE id < '3' GROUP BY msg")
    assert use.by_index
    [use] = agreed("SELECT count(*) FROM damaged WHERE id < '3'")
    assert use.read.rows_checked == 40
