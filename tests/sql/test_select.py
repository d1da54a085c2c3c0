"""Queries answered through the index return the same rows as Spark."""

import re
import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest
from pyspark.sql import functions as F

from hudi_index_service import open_table
from hudi_index_service.read.slices import index_estimates
from hudi_index_service.read.slices.slice_reader import SliceReader
from hudi_index_service.sql.rule import by_index as by_index_module
from tests.hudi_tables import NO_METADATA_TABLE, hudi_options, numbered_rows, write
from tests.sql.conftest import KINDS, rows_of


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("query", "by_index"),
    [
        ("SELECT * FROM {t} WHERE id = '3'", [True]),
        ("SELECT msg FROM {t} WHERE ID IN ('3', '4', '150') AND `Amount` > 9", [True]),
        ("SELECT id FROM {t} WHERE msg LIKE 'Buying car 3%' AND upper(msg) <> 'X'", [True]),
        ("SELECT ID, Msg AS msg, ID FROM {t} WHERE id = '5'", [True]),
        ("SELECT id FROM {t} WHERE id = 'absent'", [True]),
        ("SELECT count(*), max(ts) FROM {t} WHERE amount BETWEEN 30 AND 90", [True]),
        ("SELECT id FROM {t} WHERE upper(msg) = 'BUYING CAR 3'", [False]),
        ("SELECT ts, count(*) FROM {t} GROUP BY ts", [False]),
        ("SELECT k, twice FROM {t}_view WHERE k = '8' OR twice = 30", [False]),
        ("SELECT k, twice FROM {t}_view WHERE k = '8'", [True]),
        (
            "SELECT a.id, b.amount FROM {t} a JOIN {t} b ON a.amount = b.amount "
            "WHERE a.id IN ('3', '4') AND b.msg <> 'Buying car 1'",
            [True, True],
        ),
        (
            "SELECT a.id, b.id FROM {t} a LEFT JOIN {t} b ON a.id = b.id AND b.amount < 15 "
            "WHERE a.msg = 'Buying car 1'",
            [True, True],
        ),
        (
            "SELECT a.id, b.id FROM {t} a FULL JOIN (SELECT * FROM {t} WHERE id = '7') b "
            "ON a.id = b.id AND a.id = '7'",
            [False, True],
        ),
        (
            "SELECT id FROM {t} WHERE dt > '2026-01-01' AND id IN "
            "(SELECT id FROM {t} WHERE amount < 12)",
            [True, True],
        ),
        (
            "SELECT id FROM {t} a WHERE NOT EXISTS (SELECT 1 FROM {t} b WHERE b.id = a.id "
            "AND b.msg = 'Buying car 2') AND a.amount < 60",
            [True, True],
        ),
        (
            "SELECT id FROM {t} WHERE amount = (SELECT max(amount) FROM {t}) AND id > '1'",
            [True, False],
        ),
        (
            "WITH few AS (SELECT id, amount, dt FROM {t} WHERE amount < 20) "
            "SELECT id, sum(amount) OVER (PARTITION BY dt ORDER BY id) FROM few "
            "UNION ALL SELECT id, -1 FROM {t} WHERE id = '9' "
            "UNION SELECT id, amount FROM few WHERE id > '2'",
            [True, True, True],
        ),
        (
            "SELECT /*+ BROADCAST(b) */ a.dt, count(DISTINCT b.msg) FROM {t} a JOIN {t} b "
            "ON a.dt = b.dt AND b.amount < 9 WHERE a.id < '11' GROUP BY ROLLUP (a.dt)",
            [True, True],
        ),
        (
            "SELECT word FROM {t} LATERAL VIEW explode(split(msg, ' ')) AS word WHERE id = '5'",
            [True],
        ),
        ("SELECT id FROM {t} WHERE id > '5' ORDER BY amount DESC LIMIT 3", [True]),
        ("SELECT id FROM {t} WHERE id = '5' MINUS SELECT id FROM {t} WHERE id = '6'", [True]),
        ("SELECT DISTINCT msg FROM {t} WHERE amount < 30 AND rand() < 2", [True]),
        # Spark evaluates such a CTE once.
        (
            "WITH r AS (SELECT id, rand() AS x FROM {t} WHERE amount < 60) "
            "SELECT count(*) FROM r a JOIN r b ON a.id = b.id AND a.x = b.x",
            [True],
        ),
    ],
)
def test_queries_return_the_same_rows_as_spark(agreed, kind, query, by_index):
    assert agreed(query.format(t=kind)) == by_index


def test_queries_with_parameters(agreed):
    query = "SELECT id FROM cow WHERE id = :id OR amount < :most"
    assert agreed(query, args={"id": "7", "most": 9}) == [True]
    assert agreed("SELECT id FROM cow WHERE id = ?", args=["7"]) == [True]


def test_only_needed_columns_are_read(index_session, tables):
    index_session.sql("SELECT upper(msg) AS m FROM merged_view WHERE twice > 3 AND k < '2'")
    (use,) = index_session.relations
    assert use.columns == ("id", "msg", "amount")
    assert use.where == "`id` < '2'"
    assert use.table == f"file:{tables.folder / 'merged'}"


def test_time_travel_and_read_optimized(agreed, tables):
    then = f"merged TIMESTAMP AS OF '{tables.first_instant}'"
    query = "SELECT * FROM {then} WHERE id = '2'"
    assert agreed(query.format(then=then)) == [True]
    query = "SELECT a.amount, b.amount FROM merged a JOIN {then} b ON a.id = b.id WHERE a.id = '2'"
    assert agreed(query.format(then=then)) == [True, True]
    assert agreed("SELECT * FROM hudi_query('merged', 'read_optimized') WHERE id = '2'") == [True]


def test_table_changes_are_left_to_spark(agreed, tables, index_session):
    query = "SELECT id FROM hudi_table_changes('merged', 'latest_state', '{since}') WHERE id = '2'"
    assert agreed(query.format(since=tables.first_instant)) == [False]
    assert index_session.relations[0].reason == "not a snapshot query"


def test_incremental_query_is_left_to_spark(spark, agreed, index_session, tables):
    frame = spark.read.format("hudi").option("hoodie.datasource.query.type", "incremental")
    frame = frame.option("hoodie.datasource.read.begin.instanttime", tables.first_instant)
    frame.load(str(tables.folder / "merged")).createOrReplaceTempView("changed")
    assert agreed("SELECT id FROM changed WHERE id = '2'") == [False]
    assert agreed("SELECT count(*) FROM changed WHERE id = '2'") == [False]
    assert index_session.relations[0].reason == "not a snapshot query"
    spark.catalog.dropTempView("changed")


def test_change_data_capture_is_left_to_spark(spark, index_session, tmp_path):
    path = tmp_path / "changing"
    options = hudi_options("changing", **NO_METADATA_TABLE)
    options |= {"hoodie.table.cdc.enabled": "true"}
    write(numbered_rows(spark, 0, 9), path, options, "insert")
    write(numbered_rows(spark, 2, 4, 1), path, options)
    with open_table(path) as table:
        table.create_index("i", ["id"])
        table.build(strategy="all").raise_for_failures()
    frame = spark.read.format("hudi").option("hoodie.datasource.query.type", "incremental")
    frame = frame.option("hoodie.datasource.query.incremental.format", "cdc")
    frame = frame.option("hoodie.datasource.read.begin.instanttime", "000")
    frame.load(str(path)).createOrReplaceTempView("changes")
    query = "SELECT op, count(*) AS n FROM changes WHERE ts_ms > '' GROUP BY op ORDER BY op"
    assert [tuple(row) for row in index_session.sql(query).collect()] == [("i", 9), ("u", 2)]
    assert not any(use.by_index for use in index_session.relations)
    spark.catalog.dropTempView("changes")


def test_conditions_on_user_functions_are_left_to_spark(spark, agreed, index_session):
    spark.udf.register("doubled", lambda value: 2 * value, "bigint")
    assert agreed("SELECT doubled(amount) AS d FROM cow WHERE id = '3'") == [True]
    query = "SELECT a.id, b.d FROM cow a, (SELECT doubled(amount) AS d FROM cow) b WHERE a.id = '3'"
    assert agreed(query) == [True, False]
    assert agreed("SELECT id FROM cow WHERE doubled(amount) = 18") == [False]
    assert index_session.relations[0].reason == "no index answers a condition on it"


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        (
            "SELECT input_file_name() FROM cow WHERE id = '3'",
            "the query asks for the names of files",
        ),
        (
            "SELECT id FROM cow TABLESAMPLE (50 PERCENT) REPEATABLE (3) WHERE id < '3'",
            "Sample stands above it in the plan",
        ),
        (
            "SELECT id, rand(3) AS x FROM cow WHERE id < '3'",
            "the query has random numbers with a seed",
        ),
        (
            "SELECT id FROM cow WHERE id < '3' AND randn(3) < 0.5",
            "the query has random numbers with a seed",
        ),
        (
            "SELECT id, monotonically_increasing_id() AS n FROM cow WHERE id < '3'",
            "the query numbers rows or tasks",
        ),
        (
            "SELECT spark_partition_id() AS n, max(id) FROM cow WHERE id < '3' GROUP BY 1",
            "the query numbers rows or tasks",
        ),
    ],
)
def test_queries_that_depend_on_sparks_reader_are_left_to_spark(
    agreed, index_session, monkeypatch, query, reason
):
    planned = []
    monkeypatch.setattr(by_index_module, "pinned", lambda *arguments: planned.append(arguments))
    assert agreed(query) == [False]
    assert index_session.relations[0].reason == reason
    assert planned == [], "the index was not used for planning"


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


def test_unknown_read_option_is_left_to_spark(spark, index_session, tables):
    frame = spark.read.format("hudi").option(
        "hoodie.datasource.read.extract.partition.values.from.path", "true"
    )
    frame.load(str(tables.folder / "cow")).createOrReplaceTempView("optioned")
    query = "SELECT id FROM optioned WHERE id = '3'"
    assert rows_of(index_session.sql(query)) == rows_of(spark.sql(query))
    (use,) = index_session.relations
    assert (use.by_index, "does not know the option" in use.reason) == (False, True)
    spark.catalog.dropTempView("optioned")


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
