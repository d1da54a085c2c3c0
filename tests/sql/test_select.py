"""Queries answered through the index return the same rows as Spark."""

import re
import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest
from pyspark.sql import functions as F

from hudi_index_service.read.slices import index_estimates
from hudi_index_service.read.slices.slice_reader import SliceReader
from tests.hudi_tables import NO_METADATA_TABLE, hudi_options, numbered_rows, write
from tests.sql.conftest import rows_of


def test_queries_with_parameters(agreed):
    query = "SELECT id FROM cow WHERE id = :id OR amount < :most"
    assert agreed(query, args={"id": "7", "most": 9}) == [True]
    assert agreed("SELECT id FROM cow WHERE id = ?", args=["7"]) == [True]


def test_other_relations_beside_one_left_to_spark_use_the_index(agreed, index_session):
    query = (
        "WITH seeded AS (SELECT amount, rand(3) AS x FROM partitioned) "
        "SELECT a.id, b.x FROM cow a JOIN seeded b ON a.amount = b.amount WHERE a.id = '3'"
    )
    assert agreed(query) == [True, False]
    assert "random numbers" in index_session.relations[1].reason
    query = "SELECT id, rand(3) AS x FROM cow WHERE amount = (SELECT max(amount) FROM {t})"
    few = "partitioned WHERE id IN ('3', '4')"
    assert sorted(agreed(query.format(t=few))) == [False, True]


@pytest.mark.usefixtures("read_by_tasks")
def test_tasks_have_nothing_to_read_when_all_slices_are_skipped(agreed, index_session, tables):
    """No row of the table can match: there is nothing left for a task to read."""
    query = "SELECT id, max(msg) FROM cow WHERE amount < -1 GROUP BY id"
    assert agreed(query) == [True]
    (use,) = index_session.relations
    assert (use.in_tasks, use.expected) == (True, 0)
    assert agreed("SELECT a.id, b.msg FROM cow a LEFT JOIN cow b ON a.id = b.id AND b.amount < -1")


def test_relations_are_kept_per_thread(index_session, tables):
    index_session.sql("SELECT id FROM cow WHERE id = '3'")

    def query_in_thread() -> list[bool]:
        before = index_session.relations
        index_session.sql("SELECT id FROM partitioned WHERE msg NOT LIKE '%car 3'")
        return [*before, *(use.by_index for use in index_session.relations)]

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(query_in_thread).result() == [False]
    assert [use.by_index for use in index_session.relations] == [True]


def test_index_reads_the_snapshot_that_spark_sees(spark, agreed, index_session, tables, tmp_path):
    path = tmp_path / "growing"
    shutil.copytree(tables.folder / "cow", path)
    spark.sql(f"CREATE TABLE growing USING hudi LOCATION '{path}'")
    query = "SELECT * FROM growing WHERE id IN ('3', '200')"
    assert agreed(query) == [True]
    before = index_session.relations[0].instant
    # Spark caches a table's metadata by name until it is refreshed.
    options = hudi_options("cow", **NO_METADATA_TABLE)
    write(numbered_rows(spark, 200, 201), path, options, "insert")
    assert agreed(query) == [True]
    assert index_session.relations[0].instant == before
    spark.sql("REFRESH TABLE growing")
    # The base file is new and has no entry.
    assert agreed(query) == [False]
    assert index_session.relations[0].instant > before
    assert len(index_session.sql(query).collect()) == 2
    spark.sql("DROP TABLE growing")


@pytest.mark.usefixtures("read_by_tasks", "tables")
def test_many_rows_are_read_by_tasks_and_never_broadcast(spark, index_session):
    query = "SELECT a.id, b.msg FROM merged a JOIN cow b ON a.id = b.id WHERE a.amount < 300"
    # Half of the table: 100 rows of more than 20 bytes each.
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "2000")
    try:
        frame = index_session.sql(query)
        plan = frame._jdf.queryExecution().executedPlan().toString()
        found = rows_of(frame)
    finally:
        spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")
    assert [(use.by_index, use.in_tasks) for use in index_session.relations] == [
        (True, True),
        (False, False),
    ]
    assert "SortMergeJoin" in plan
    assert "BroadcastHashJoin" not in plan
    assert found == rows_of(spark.sql(query))
    assert len(found) > 90


# Handing a row over costs 1 ms; 125 rows are the most that cost less than Spark's scan.
EXPENSIVE_ROWS = {"spark_scan_ms": 225, "handing_ms": 0.1, "handed_row_ms": 1, "tasks_ms": 1e6}


@pytest.fixture
def estimates(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ways in which rows were estimated to choose the reader of a relation."""
    found = []

    def record_calls(owner: object, name: str, what: str) -> None:
        original = getattr(owner, name)

        def recording(*args: object, **kwargs: object) -> object:
            found.append(what)
            return original(*args, **kwargs)

        monkeypatch.setattr(owner, name, recording)

    record_calls(index_estimates, "row_estimate", "bounds")
    record_calls(SliceReader, "exact_rows", "look-up")
    return found


@pytest.mark.usefixtures("tables")
def test_most_of_a_table_is_left_to_spark(agreed, index_session, costs):
    costs(**EXPENSIVE_ROWS)
    assert agreed("SELECT amount FROM cow WHERE amount < 450") == [False]
    (use,) = index_session.relations
    assert use.reason == "the index finds 150 of 200 rows, and Spark scans them faster"
    assert agreed("SELECT amount FROM cow WHERE amount < 60") == [True]


@pytest.mark.usefixtures("tables")
def test_manifests_alone_may_decide(agreed, index_session, costs, estimates):
    assert agreed("SELECT amount FROM cow WHERE amount >= 0") == [False]
    (use,) = index_session.relations
    assert use.reason == "the index rules out no row"
    costs(**EXPENSIVE_ROWS)
    assert agreed("SELECT amount FROM cow WHERE amount >= 0 AND id IS NOT NULL") == [False]
    assert estimates == []


@pytest.mark.usefixtures("tables")
def test_bounds_of_the_opened_index_may_decide(agreed, index_session, costs, estimates):
    costs(**EXPENSIVE_ROWS)
    assert agreed("SELECT amount FROM cow WHERE amount < 450 AND id <> '3'") == [False]
    (use,) = index_session.relations
    assert use.reason == "the index finds at least 149 of 200 rows, and Spark scans them faster"
    assert agreed("SELECT amount FROM cow WHERE amount < 6 AND id <> '7'") == [True]
    (use,) = index_session.relations
    assert (use.reason, use.rows, use.expected) == ("the index finds at most 2 rows", 2, 2)
    # The last time for the number of rows that Spark plans with.
    assert estimates == ["bounds", "bounds", "bounds"]


@pytest.mark.usefixtures("tables")
def test_rows_are_looked_up_when_bounds_do_not_decide(agreed, index_session, costs, estimates):
    costs(**EXPENSIVE_ROWS)
    query = "SELECT amount FROM cow WHERE amount < 450 AND msg <> 'Buying car 1'"
    assert agreed(query) == [False]  # from 121 to 150
    (use,) = index_session.relations
    assert use.reason == "the index finds 128 of 200 rows, and Spark scans them faster"
    assert estimates == ["bounds", "look-up"]


@pytest.mark.usefixtures("tables")
def test_rough_estimate_decides_when_rows_are_far_too_many(agreed, index_session, costs, estimates):
    costs(**EXPENSIVE_ROWS | {"spark_scan_ms": 10, "spark_file_ms": 0.1})
    query = "SELECT amount FROM cow WHERE amount < 300 AND msg > 'Buying car 3'"
    assert agreed(query) == [False]
    (use,) = index_session.relations
    assert re.fullmatch(r"the index finds about \d+ of 200 rows, and Spark .* faster", use.reason)
    assert estimates == ["bounds"]


@pytest.mark.usefixtures("tables")
def test_estimating_stops_once_rows_are_too_many(agreed, index_session, costs, estimates):
    costs(**EXPENSIVE_ROWS | {"spark_scan_ms": 20})
    assert agreed("SELECT amount FROM partitioned WHERE amount < 300") == [False]
    (use,) = index_session.relations
    assert use.reason == "the index finds at least 50 of 200 rows, and Spark scans them faster"
    assert estimates == ["bounds"]


def test_negated_pattern_is_left_to_spark_without_an_estimate(agreed, index_session, tables):
    assert agreed("SELECT id FROM cow WHERE msg NOT LIKE '%car 3'") == [False]
    (use,) = index_session.relations
    assert use.reason == "a negated pattern matches most of the rows"
    assert agreed("SELECT id FROM cow WHERE msg NOT LIKE '%car 3' AND id < '3'") == [True]


def test_cached_tables_streams_and_views_are_passed_through(spark, index_session, tables):
    spark.catalog.cacheTable("partitioned")
    try:
        assert len(index_session.sql("SELECT * FROM partitioned WHERE id = '3'").collect()) == 1
        assert index_session.relations == ()
    finally:
        spark.catalog.uncacheTable("partitioned")
    stream = spark.readStream.format("rate").load().where(F.col("value") > 3)
    stream.createOrReplaceTempView("ticking")
    assert index_session.sql("SELECT value FROM ticking").isStreaming
    spark.catalog.dropTempView("ticking")
    index_session.sql("CREATE TEMP VIEW third AS SELECT * FROM cow WHERE id = '3'")
    assert index_session.relations == ()
    assert len(index_session.sql("SELECT * FROM third").collect()) == 1
    assert index_session.relations[0].by_index
    spark.catalog.dropTempView("third")


def test_query_without_hudi_tables_is_returned_unchanged(index_session, spark, tables):
    """It is not even optimized until its rows are needed."""
    spark.range(3).createOrReplaceTempView("numbers")
    frame = index_session.sql("SELECT id FROM numbers WHERE id = 1")
    tracker = frame._jdf.queryExecution().tracker().phases()
    assert tracker.contains("analysis")
    assert not tracker.contains("optimization")
    assert index_session.relations == ()
    spark.catalog.dropTempView("numbers")
