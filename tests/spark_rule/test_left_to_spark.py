"""Queries whose answers depend on Spark's own reader, or are no queries on a snapshot, are left to
it."""

# ruff: noqa: S608 - the queries are the test's own

from functools import reduce
from operator import or_

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from hudi_index_service import open_table
from hudi_index_service.sql import last_queries
from tests.hudi_tables import NO_METADATA_TABLE, hudi_options, write
from tests.indexed import indexed
from tests.spark_rule.conftest import by_index, each_of, rows, rows_of

LEFT = {
    "the query asks for the names of files": [
        "SELECT input_file_name() FROM rule_cow WHERE id = '3' LIMIT 1",
    ],
    "Sample stands above it in the plan": [
        "SELECT id FROM rule_cow TABLESAMPLE (50 PERCENT) REPEATABLE (3) WHERE id < '3'",
        "SELECT count(*) FROM rule_cow TABLESAMPLE (50 PERCENT) REPEATABLE (3) WHERE id < '3'",
    ],
    "the query has random numbers with a seed": [
        "SELECT id, rand(3) AS x FROM rule_cow WHERE id < '3'",
        "SELECT id FROM rule_cow WHERE id < '3' AND randn(3) < 0.5",
        "SELECT count(*), rand(3) AS x FROM rule_cow WHERE id < '3'",
    ],
    "the query numbers rows or tasks": [
        "SELECT id, monotonically_increasing_id() AS n FROM rule_cow WHERE id < '3'",
        "SELECT spark_partition_id() AS n, max(id) FROM rule_cow WHERE id < '3' GROUP BY 1",
    ],
    "a negated pattern matches most of the rows": [
        "SELECT id FROM rule_cow WHERE msg NOT LIKE '%car 3'",
    ],
    "the query has no condition on it alone": [
        "SELECT id FROM rule_cow",
        "SELECT count(ts) FROM rule_cow",
    ],
    None: [
        "SELECT id FROM rule_cow WHERE ts = 0",
    ],
}


@pytest.mark.parametrize(
    ("query", "reason"),
    each_of(LEFT),
)
def test_queries_that_depend_on_sparks_reader(agreed, query, reason):
    [use] = agreed(query)
    assert not use.by_index
    assert reason is None or use.reason == reason


def test_a_negated_pattern_beside_a_condition_that_finds_few_rows(agreed):
    query = "SELECT id FROM rule_cow WHERE msg NOT LIKE '%car 3' AND id < '3'"
    assert by_index(agreed(query)) == [True]


def test_other_relations_beside_one_left_to_spark_use_the_index(agreed):
    query = (
        "WITH seeded AS (SELECT amount, rand(3) AS x FROM rule_partitioned) "
        "SELECT a.id, b.x FROM rule_cow a JOIN seeded b ON a.amount = b.amount WHERE a.id = '3'"
    )
    uses = agreed(query)
    assert sorted(by_index(uses)) == [False, True]
    [left] = [use for use in uses if not use.by_index]
    assert left.table.endswith("rule_partitioned")
    assert "random numbers" in left.reason
    few = "rule_partitioned WHERE id IN ('3', '4')"
    query = f"SELECT id, rand(3) AS x FROM rule_cow WHERE amount = (SELECT max(amount) FROM {few})"
    assert sorted(by_index(agreed(query))) == [False, True]


def test_incremental_queries_and_table_changes(agreed, tables):
    path = str(tables.folder / "rule_merged")

    def changed(session):
        frame = session.read.format("hudi").option("hoodie.datasource.query.type", "incremental")
        frame = frame.option("hoodie.datasource.read.begin.instanttime", tables.first_instant)
        return frame.load(path).where("id = '2'")

    [use] = agreed(changed)
    assert (use.by_index, use.reason) == (False, "not a snapshot query")
    since = f"hudi_table_changes('rule_merged', 'latest_state', '{tables.first_instant}')"
    assert by_index(agreed(f"SELECT id FROM {since} WHERE id = '2'")) == [False]


def test_change_data_capture(spark, enabled, tmp_path):
    path = tmp_path / "changing"
    options = hudi_options("changing", **NO_METADATA_TABLE)
    options |= {"hoodie.table.cdc.enabled": "true"}
    write(rows(spark, 0, 9), path, options, "insert")
    write(rows(spark, 2, 4, 1), path, options)
    indexed(path, ["id"]).close()
    frame = enabled.read.format("hudi").option("hoodie.datasource.query.type", "incremental")
    frame = frame.option("hoodie.datasource.query.incremental.format", "cdc")
    frame = frame.option("hoodie.datasource.read.begin.instanttime", "000").load(str(path))
    counted = frame.where("ts_ms > ''").groupBy("op").count().orderBy("op")
    assert [tuple(row) for row in counted.collect()] == [("i", 9), ("u", 2)]
    assert not any(by_index(last_queries(enabled)[-1]))


def test_unknown_read_options(agreed, tables):
    def read(session):
        reader = session.read.format("hudi").option("hoodie.datasource.merge.type", "skip_merge")
        return reader.load(str(tables.folder / "rule_merged")).where("id = '2'")

    [use] = agreed(read)
    assert use.reason == "the service does not know the option hoodie.datasource.merge.type"


def test_tables_without_an_index(spark, agreed, tmp_path):
    path = tmp_path / "plain"
    write(rows(spark, 0, 9), path, hudi_options("plain", **NO_METADATA_TABLE), "insert")
    for ask in (DataFrame.where, lambda frame, where: frame.where(where).groupBy().count()):
        [use] = agreed(
            lambda session, ask=ask: ask(session.read.format("hudi").load(str(path)), "id = '2'")
        )
        assert (use.by_index, use.reason) == (False, "the table has no index")


def test_a_disabled_table_is_left_to_spark_from_the_next_decision_on(
    spark, agreed, costs, make_table
):
    query = "SELECT * FROM disabled WHERE id = '{}'"
    with open_table(make_table("disabled", rows(spark, 0, 9), ["id"])) as table:
        costs(spark_scan_ms=1e12)
        assert by_index(agreed(query.format(2))) == [True]
        table.disable()
        [use] = agreed(query.format(3))
        assert not use.by_index
        assert "switches its indexes off" in use.reason
        table.enable()
        assert by_index(agreed(query.format(4))) == [True]


def _streamed(session, stream, tmp_path, **trigger):
    """The rows that a stream writes."""
    written = stream.writeStream.format("memory").queryName("streamed").trigger(**trigger)
    written.option("checkpointLocation", str(tmp_path / "checkpoint")).start().awaitTermination()
    found = rows_of(session.table("streamed"))
    session.catalog.dropTempView("streamed")
    return found


def test_stream_with_a_static_side(spark, enabled, tables, tmp_path):
    source = tmp_path / "keys"
    enabled.range(3, 6).selectExpr("cast(id AS string) AS id").write.parquet(str(source))
    keys = enabled.readStream.schema("id string").parquet(str(source))
    joined = keys.join(enabled.table("rule_cow").where("amount < 15"), "id").select("id", "msg")
    expected = spark.table("rule_cow").where("id IN ('3', '4')").select("id", "msg")
    assert _streamed(enabled, joined, tmp_path, availableNow=True) == rows_of(expected)


def test_stream_from_a_table(enabled, spark, tables, tmp_path):
    few = [
        read.format("hudi").load(str(tables.folder / "rule_cow")).where("amount < 15")
        for read in (enabled.readStream, spark.read)
    ]
    stream, expected = (each.select("id", "msg") for each in few)
    assert _streamed(enabled, stream, tmp_path, once=True) == rows_of(expected)


def test_batches_of_a_stream_may_ask(enabled, spark, tables, tmp_path):
    """A function of the program runs in a call from the JVM, and Python is called from its
    queries."""
    source = tmp_path / "keys"
    spark.range(3, 6).selectExpr("cast(id AS string) AS id").write.parquet(str(source))
    found, uses = [], []

    def look_up(keys, _):
        few = keys.sparkSession.table("rule_cow").where("amount < 15")
        found.extend(rows_of(few.join(keys, "id").select("id", "msg")))
        uses.extend(last_queries(keys.sparkSession)[-1])

    query = (
        enabled.readStream.schema("id string")
        .parquet(str(source))
        .writeStream.foreachBatch(look_up)
        .trigger(availableNow=True)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .start()
    )
    query.awaitTermination()
    expected = spark.table("rule_cow").where("id IN ('3', '4')").select("id", "msg")
    assert found == rows_of(expected)
    assert by_index(tuple(uses)) == [True]


def test_user_functions_stand_above(spark, agreed):
    def called(session):
        session.udf.register("doubled", lambda value: 2 * value, "bigint")
        return session.sql("SELECT doubled(amount) AS d FROM rule_cow WHERE id = '3'")

    assert by_index(agreed(called)) == [True]

    def tested(session):
        session.udf.register("doubled", lambda value: 2 * value, "bigint")
        return session.sql("SELECT id FROM rule_cow WHERE doubled(amount) = 18 AND id < '4'")

    assert by_index(agreed(tested)) == [True]


def test_a_condition_of_many_parts_is_told_of(enabled, spark, tables):
    """A DataFrame's conditions are as deep as they have parts."""
    arms = [(F.col("id") == str(number)) & (F.col("amount") > number) for number in range(150)]
    frames = [each.table("rule_cow").where(reduce(or_, arms)) for each in (enabled, spark)]
    assert rows_of(frames[0]) == rows_of(frames[1])
    [use] = last_queries(enabled)[-1]
    assert use.reason == "300 predicates are more than read.max_predicates=10"
