"""Counts and tests of existence come from the index alone where it answers conditions exactly."""

# ruff: noqa: S608 - the queries are the test's own

from collections.abc import Iterator
from functools import wraps

import pytest
from pyspark.sql import functions as F

from hudi_index_service.read.execution import Execution
from hudi_index_service.read.slices import counting
from hudi_index_service.sql import enable, last_queries
from hudi_index_service.sql.rule import weighing
from hudi_index_service.sql.rule.reader import RelationReader
from tests.hudi_tables import NO_METADATA_TABLE, hudi_options, numbered_rows, write
from tests.indexed import indexed
from tests.spark_rule.conftest import rows, rows_of

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
        assert found.count() == plain.count()
        assert last_queries(enabled)[-1][0].reason == COUNTED
        assert found.limit(1).count() == plain.limit(1).count()
        assert last_queries(enabled)[-1][0].reason == COUNTED
        assert found.isEmpty() == plain.isEmpty()
        assert last_queries(enabled)[-1][0].reason == COUNTED
        assert found.select().collect() == plain.select().collect()
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
    context = enabled.sparkContext
    context.setJobGroup("counting", "counts")
    try:
        for query in (
            "SELECT count(*) FROM rule_cow WHERE id < '3'",
            "SELECT msg, count(*) FROM rule_cow WHERE id < '3' GROUP BY msg HAVING count(*) > 2",
            "SELECT 1 FROM rule_cow WHERE id < '3' LIMIT 1",
        ):
            assert enabled.sql(query).collect()
        assert context.statusTracker().getJobIdsForGroup("counting") == []
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)
        context.setLocalProperty("spark.job.description", None)


@pytest.mark.parametrize(
    ("query", "counted"),
    [
        (
            "SELECT id FROM {t} WHERE id < '2' AND age = (SELECT count(*) FROM {t} "
            "WHERE msg = 'Buying car 3')",
            1,
        ),
        (
            "SELECT count(*) FROM {t} WHERE id < '3' UNION ALL SELECT count(msg) FROM {t} "
            "UNION ALL SELECT count(*) FROM {t} WHERE id < '3'",
            3,
        ),
        (
            "SELECT a.msg, a.n, b.amount FROM (SELECT msg, count(*) AS n FROM {t} GROUP BY msg) a "
            "JOIN {t} b ON a.msg = b.msg WHERE b.id < '11'",
            1,
        ),
        (
            "SELECT id, (SELECT count(*) FROM {t} b WHERE b.msg = a.msg AND amount < 90) AS n "
            "FROM {t} a WHERE id < '12'",
            0,  # the rows are found before Spark makes a join of it
        ),
        (
            "SELECT id FROM {t} a WHERE id < '15' AND (SELECT count(*) FROM {t} b "
            "WHERE b.id = concat(a.id, '0')) = 0",
            1,
        ),
        (
            "SELECT id, n FROM {t} a, LATERAL (SELECT count(*) AS n FROM {t} b "
            "WHERE b.msg = a.msg AND id < '15') WHERE id < '12'",
            1,
        ),
        (
            "SELECT id, n FROM {t}, LATERAL (SELECT count(*) AS n FROM {t} WHERE id < '15') "
            "WHERE id < '12'",
            1,
        ),
        (
            "WITH c AS (SELECT msg, count(*) AS n, rand() AS x FROM {t} GROUP BY msg) "
            "SELECT a.msg, b.n FROM c a JOIN c b ON a.msg = b.msg AND a.x = b.x",
            1,
        ),
        (
            "SELECT DISTINCT msg FROM {t} WHERE id < '3' INTERSECT "
            "SELECT msg FROM {t} WHERE id > '2' GROUP BY msg HAVING count(*) > 5",
            1,
        ),
        (
            "SELECT id, (SELECT max(n) FROM (SELECT msg, count(*) AS n FROM {t} GROUP BY msg) b "
            "WHERE b.msg = a.msg) AS n FROM {t} a WHERE id < '12'",
            1,
        ),
        (
            "SELECT (SELECT count(*) FROM {t} WHERE id < '2') + (SELECT count(msg) FROM {t}) AS n, "
            "(SELECT count(*) FROM {t} WHERE id < '2') AS m",
            3,
        ),
        (
            "SELECT count(*) + (SELECT count(*) FROM {t} WHERE id < '2') AS n FROM {t} "
            "WHERE msg < 'Buying car 4'",
            2,
        ),
        (
            "SELECT id FROM {t} WHERE id < '12' AND msg IN (SELECT msg FROM {t} GROUP BY msg "
            "HAVING count(*) > 26)",
            1,
        ),
        (
            "SELECT id FROM {t} WHERE id < '12' AND EXISTS (SELECT 1 FROM {t} WHERE id = '150')",
            1,
        ),
    ],
)
@pytest.mark.parametrize(
    ("adaptive", "kind"), [("true", "rule_partitioned"), ("false", "rule_cow")]
)
def test_counts_within_queries(agreed, enabled, query, counted, adaptive, kind):
    enabled.conf.set("spark.sql.adaptive.enabled", adaptive)
    try:
        uses = agreed(query.format(t=kind))
        assert [each.reason for each in uses].count(COUNTED) == counted
    finally:
        enabled.conf.unset("spark.sql.adaptive.enabled")


def test_dynamic_pruning_above_counts(agreed, spark, enabled):
    for session in (spark, enabled):
        session.sql("SELECT '2026-01-01' AS dt, 1 AS x").createOrReplaceTempView("days")
        session.conf.set("spark.sql.optimizer.dynamicPartitionPruning.reuseBroadcastOnly", "false")
    try:
        uses = agreed(
            "SELECT a.dt, n FROM (SELECT dt, count(*) AS n FROM rule_partitioned GROUP BY dt) a "
            "JOIN (SELECT dt FROM rule_cow WHERE id IN ('3', '5')) b ON a.dt = b.dt"
        )
        assert COUNTED in [each.reason for each in uses]
    finally:
        for session in (spark, enabled):
            session.conf.unset("spark.sql.optimizer.dynamicPartitionPruning.reuseBroadcastOnly")
            session.catalog.dropTempView("days")


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


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        (
            "SELECT input_file_name() FROM rule_cow WHERE id = '3' LIMIT 1",
            "the query asks for the names of files",
        ),
        (
            "SELECT rand(3) FROM rule_cow WHERE id = '3' LIMIT 1",
            "the query has random numbers with a seed",
        ),
        (
            "SELECT count(*), rand(3) AS x FROM rule_cow WHERE id < '3'",
            "the query has random numbers with a seed",
        ),
        (
            "SELECT count(*) FROM rule_cow TABLESAMPLE (50 PERCENT) REPEATABLE (3) WHERE id < '3'",
            "Sample stands above it in the plan",
        ),
        ("SELECT count(ts) FROM rule_cow", "the query has no condition on it alone"),
    ],
)
def test_counts_that_only_spark_has(agreed, query, reason):
    [use] = agreed(query)
    assert (use.by_index, use.reason) == (False, reason)


FALLEN_BACK = [
    "SELECT count(*) + 1 AS n, count(msg) FROM rule_cow WHERE id < '3'",
    "SELECT upper(msg), count(*) FROM rule_cow WHERE id < '3' GROUP BY msg HAVING count(*) > 2",
    "SELECT a.msg, n, b.id FROM (SELECT msg, count(*) AS n FROM rule_cow GROUP BY msg) a "
    "JOIN rule_cow b ON a.msg = b.msg",
    "SELECT 'x' AS x FROM rule_cow WHERE id < '3' LIMIT 3",
    "SELECT EXISTS (SELECT 1 FROM rule_cow WHERE id < '3') AS e",
]


@pytest.mark.parametrize("query", FALLEN_BACK)
def test_spark_counts_if_the_index_fails(agreed, monkeypatch, query):
    def fail(self, *_):
        raise OSError("gone")

    monkeypatch.setattr(RelationReader, "rows", fail)
    assert "gone" in [each.reason for each in agreed(query)]


@pytest.mark.parametrize("query", FALLEN_BACK)
def test_spark_counts_if_the_index_is_turned_off(spark, enabled, tables, query):
    planned = enabled.sql(query)
    planned._jdf.queryExecution().executedPlan()
    enabled.conf.set("spark.hudi.index.enabled", "false")
    assert rows_of(planned) == rows_of(spark.sql(query))
    assert not any(each.by_index for each in last_queries(enabled)[-1])


def test_frame_planned_before_a_write(spark, enabled, tmp_path):
    path = tmp_path / "written"
    options = hudi_options("written", **NO_METADATA_TABLE)
    write(rows(spark, 0, 20), path, options, "insert")
    indexed(path, ["id", "msg"]).close()
    frames = []
    for session in (enabled, spark):
        frame = session.read.format("hudi").load(str(path)).where("id < '3'")
        frames.append(frame.groupBy("msg").count())
        frames[-1]._jdf.queryExecution().executedPlan()
    assert last_queries(enabled)[-1][0].reason == COUNTED
    write(rows(spark, 20, 30), path, options)
    found, plain = frames
    assert rows_of(found) == rows_of(plain)


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


def write_half_indexed(worded, path) -> None:
    """Two partitions of rows with a word; the second has no entry."""
    options = hudi_options(path.name, partition_column="dt", **NO_METADATA_TABLE)
    write(worded.where("dt = '2026-01-01'"), path, options, "insert")
    indexed(path, ["word", "id"]).close()
    write(worded.where("dt = '2026-01-02'"), path, options, "insert")


@pytest.fixture(scope="module")
def sparse(spark, enabled_once, tmp_path_factory) -> Iterator[None]:
    """A table whose word is NULL in every third row and empty in others; the second of its two
    partitions has no entry. And one that is empty."""
    path = tmp_path_factory.mktemp("counts") / "sparse"
    number = F.col("amount") / 3
    word = F.when(number % 3 != 0, F.when(number % 2 == 0, "").otherwise("wörd"))
    worded = numbered_rows(spark, 0, 60).withColumn("word", word)
    write_half_indexed(worded, path)
    empty = path.with_name("emptied")
    options = hudi_options("emptied", **NO_METADATA_TABLE)
    write(worded, empty, options, "insert")
    indexed(empty, ["word", "id"]).close()
    write(worded.where("false"), empty, options, "insert_overwrite_table")
    for each in (path, empty):
        spark.sql(f"CREATE TABLE {each.name} USING hudi LOCATION '{each}'")
    yield
    for each in (path, empty):
        spark.sql(f"DROP TABLE {each.name}")


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


def test_null_partition_values(spark, agreed, tmp_path):
    path = tmp_path / "parted"
    parted = rows(spark, 0, 20).withColumn("dt", F.when(F.col("amount") % 2 == 0, F.col("dt")))
    options = hudi_options("parted", partition_column="dt", **NO_METADATA_TABLE)
    write(parted, path, options, "insert")
    indexed(path, ["id", "dt"]).close()
    for column in ("dt", "id"):
        agreed(
            lambda session, column=column: (
                session.read.format("hudi")
                .load(str(path))
                .where("id < '3'")
                .groupBy(column)
                .agg(F.count("*"), F.count("dt"))
            )
        )


def test_column_named_like_a_count(agreed):
    [use] = agreed(
        "SELECT `count 0`, count(*), count(`count 0`) FROM (SELECT msg AS `count 0` FROM rule_cow) "
        "GROUP BY `count 0`"
    )
    assert use.reason == COUNTED


def test_time_travel(agreed, tables):
    then = f"rule_merged TIMESTAMP AS OF '{tables.first_instant}'"
    [use] = agreed(f"SELECT dt, count(*) FROM {then} WHERE id < '3' GROUP BY dt")
    assert (use.reason, use.instant) == (COUNTED, tables.first_instant)


def test_unindexed_tables_are_left_to_spark(spark, agreed, tmp_path):
    path = tmp_path / "plain"
    write(rows(spark, 0, 9), path, hudi_options("plain", **NO_METADATA_TABLE), "insert")
    [use] = agreed(lambda session: session.read.format("hudi").load(str(path)).groupBy().count())
    assert not use.by_index


@pytest.fixture(scope="module")
def not_utf8(spark, enabled_once, tmp_path_factory) -> Iterator[None]:
    """A table with texts that are not UTF-8; its second partition has no entry."""
    path = tmp_path_factory.mktemp("counts") / "not_utf8"
    word = F.expr("CASE WHEN amount % 2 = 0 THEN CAST(X'ff61' AS STRING) "
                  "WHEN amount % 5 = 0 THEN CAST(X'fe61' AS STRING) ELSE 'plain' END")  # fmt: skip
    worded = numbered_rows(spark, 0, 60).withColumn("word", word)
    write_half_indexed(worded, path)
    spark.sql(f"CREATE TABLE not_utf8 USING hudi LOCATION '{path}'")
    yield
    spark.sql("DROP TABLE not_utf8")


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


def test_damaged_entry_is_not_counted(spark, agreed, tmp_path):
    path = tmp_path / "damaged"
    write(numbered_rows(spark, 0, 40), path, hudi_options("d", **NO_METADATA_TABLE), "insert")
    indexed(path, ["id", "msg"]).close()
    for data in (path / ".hoodie" / ".index" / "lucene").rglob("*.pack"):
        data.write_bytes(bytes(data.stat().st_size))
    spark.sql(f"CREATE TABLE damaged USING hudi LOCATION '{path}'")
    [use] = agreed("SELECT msg, count(*) FROM damaged WHERE id < '3' GROUP BY msg")
    assert use.by_index
    [use] = agreed("SELECT count(*) FROM damaged WHERE id < '3'")
    assert use.read.rows_checked == 40
    spark.sql("DROP TABLE damaged")
