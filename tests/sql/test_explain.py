"""EXPLAIN [ANALYZE] INDEX: which reader reads each relation of a query, and why."""

import shutil

import pytest
from pyspark.errors import AnalysisException, ParseException

from hudi_index_service import open_table
from hudi_index_service.errors import StatementInvalid
from hudi_index_service.sql.explain import ExplainIndex
from hudi_index_service.sql.statements import parse_statement
from tests.indexed import indexed
from tests.read.spark_jobs import last_stage, tasks_since

EXPLAINED = [
    *("relation", "table", "reader", "index_name", "reason", "instant", "condition", "columns"),
    *("index_slices", "scan_slices", "skip_slices", "merge_slices", "expected_rows"),
    *("actual_rows", "pages", "bytes", "requests", "milliseconds", "query_milliseconds"),
    *("least_rows", "likely_rows", "most_rows", "expected_pages", "expected_bytes"),
    *("index_milliseconds", "scan_milliseconds", "slices"),
]


@pytest.mark.parametrize(
    ("statement", "analyze", "query"),
    [
        ("EXPLAIN INDEX SELECT 1", False, "              SELECT 1"),
        ("explain /* why */ analyze\nindex (SELECT 1);", True, " " * 25 + "\n      (SELECT 1);"),
        ("EXPLAIN INDEX -- all\n TABLE t", False, " " * 20 + "\n TABLE t"),
        ("EXPLAIN ANALYZE INDEX with t as (select 1) from t", True, None),
    ],
)
def test_query_keeps_its_text_and_position(statement, analyze, query):
    parsed = parse_statement(statement)
    assert isinstance(parsed, ExplainIndex)
    assert parsed.analyze == analyze
    assert len(parsed.query) == len(statement)
    assert statement.endswith(parsed.query.strip())
    if query is not None:
        assert parsed.query == query


@pytest.mark.parametrize(
    "query",
    [
        *("EXPLAIN SELECT 1", "EXPLAIN EXTENDED SELECT 1", "EXPLAIN ANALYZE SELECT 1"),
        *("EXPLAIN ANALYZE TABLE t COMPUTE STATISTICS", "EXPLAIN", "EXPLAIN DROP INDEX i ON t"),
    ],
)
def test_sparks_own_explain_is_passed_to_spark(query):
    assert parse_statement(query) is None


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("EXPLAIN INDEX", "Query expected at line 1, column 14 of the statement, found its end"),
        ("EXPLAIN\nINDEX DROP TABLE t", "Query expected at line 2, column 7 of the statement, fou"),
        ("EXPLAIN ANALYZE INDEX 'a'", "Query expected at line 1, column 23 of the statement, foun"),
        ("EXPLAIN INDEX EXPLAIN INDEX SELECT 1", "Query expected at line 1, column 15 of the st"),
        ("EXPLAIN INDEX INSERT INTO t SELECT 1", "Query expected at line 1, column 15 of the st"),
    ],
)
def test_statement_other_than_a_query_is_refused(statement, message):
    with pytest.raises(StatementInvalid) as raised:
        parse_statement(statement)
    assert raised.value.message.startswith(message)


@pytest.fixture(scope="module")
def table(session, spark, written, tmp_path_factory):
    """The folder of the table ``explained``, whose index is built for one partition only."""
    path = tmp_path_factory.mktemp("explain") / "table"
    shutil.copytree(written, path)
    spark.sql(f"CREATE TABLE explained USING hudi LOCATION '{path}'")
    session.sql("CREATE INDEX by_id ON explained USING lucene (id, msg)")
    session.sql("OPTIMIZE TABLE explained WHERE dt = '2026-01-01' STRATEGY ALL")
    yield path
    spark.sql("DROP TABLE explained")


def test_explain_returns_a_row_per_relation(session, table):
    explained = session.sql(
        "EXPLAIN INDEX SELECT a.id, b.amount "
        "FROM explained a JOIN explained b ON a.amount = b.amount "
        "WHERE a.id IN ('2', '4') AND upper(b.msg) <> 'X'"
    )

    assert explained.columns == EXPLAINED
    by_index, by_spark = explained.collect()
    assert (by_index.relation, by_index.table) == (1, f"file:{table}")
    assert (by_index.reader, by_index.index_name) == ("driver", "by_id")
    assert by_index.reason == "the index finds 2 rows; 1 slice read without it"
    assert by_index.condition == "`id` IN ('2', '4')"
    assert by_index["columns"] == ["id", "amount"]
    assert by_index[8:13] == (1, 1, 0, 0, 2)
    assert set(by_index[13:19]) == {None}
    assert by_index[19:22] == (2, 2.0, 2)
    assert by_index.expected_bytes > 0
    assert by_index.index_milliseconds > 0
    assert by_index.scan_milliseconds > 0
    ways = [(each.slices, each.access, each.rule) for each in by_index.slices]
    assert sorted(ways) == [(1, "index", "coverage"), (1, "scan", "coverage")]
    assert len(by_index.instant) == 17
    assert (by_spark.reader, by_spark.index_name, by_spark.condition) == ("spark", None, None)
    assert by_spark.reason == "no index answers a condition on it"
    assert set(by_spark[7:]) == {None}


@pytest.mark.usefixtures("table")
def test_analyze_reports_what_was_read(session):
    query = "EXPLAIN ANALYZE INDEX SELECT * FROM explained WHERE msg = :msg"

    (row,) = session.sql(query, args={"msg": "Buying car 3"}).collect()

    assert (row.reader, row.expected_rows, row.actual_rows) == ("driver", 1, 3)
    assert row.bytes > 0
    assert (row.pages, row.requests) == (0, 0), "a small file on the local disk is read whole"
    assert 0 < row.milliseconds < row.query_milliseconds


@pytest.mark.usefixtures("read_by_tasks")
def test_analyze_counts_once_what_several_tasks_read_of_a_slice(
    session, spark, golden, tmp_path, monkeypatch
):
    # Else a worker has kept pages of the first query for the second one.
    monkeypatch.setitem(spark.sparkContext.environment, "HUDI_INDEX_READ__PAGE_CACHE_MB", "0")
    path = golden("runs_in_row_groups").put(tmp_path)
    indexed(path, ["number"], using="btree").close()
    spark.sql(f"CREATE TABLE shared USING hudi LOCATION '{path}'")
    query = "EXPLAIN ANALYZE INDEX SELECT max(text) FROM shared WHERE number < 20000"
    found, tasks = [], []
    for size in ("128MB", "100KB"):
        spark.conf.set("spark.sql.files.maxPartitionBytes", size)
        before = last_stage(spark)
        (row,) = session.sql(query).collect()
        found.append(row)
        tasks.append(tasks_since(spark, before))
    spark.conf.unset("spark.sql.files.maxPartitionBytes")
    spark.sql("DROP TABLE shared")
    assert max(tasks[0]) < max(tasks[1]) == 4  # one for each row group
    for row in found:
        assert (row.reader, row.actual_rows) == ("tasks", 20_000)
        assert len(row.slices) == 1
        assert row.milliseconds > 0
        assert row.query_milliseconds > 0
    assert found[1].bytes == pytest.approx(found[0].bytes, rel=0.1)


@pytest.mark.usefixtures("read_by_tasks")
def test_queries_read_by_tasks_are_recorded_in_the_history(session, table):
    query = "SELECT max(amount) FROM explained WHERE msg = :msg AND id > '0'"
    for _ in range(3):
        assert session.sql(query, args={"msg": "Buying car 3"}).count() == 1

    with open_table(table) as opened:
        (shape,) = [each for each in opened.history() if each.shape == "id > ? AND msg = ?"]
    assert shape.queries == 3
    assert shape.mean("rows") == pytest.approx(3)
    assert shape.correction is not None


@pytest.mark.usefixtures("table")
def test_explain_gives_the_reason_why_spark_reads(session):
    query = "EXPLAIN INDEX SELECT input_file_name() FROM explained WHERE id = '2'"
    (row,) = session.sql(query).collect()
    assert (row.reader, row.reason) == ("spark", "the query asks for the names of files")


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize("explain", ["EXPLAIN INDEX", "EXPLAIN ANALYZE INDEX"])
@pytest.mark.parametrize(
    "query",
    [
        "WITH t AS (SELECT * FROM explained) INSERT INTO explained SELECT * FROM t",
        "WITH t AS (SELECT '2' AS id) DELETE FROM explained WHERE id IN (SELECT id FROM t)",
        "FROM explained INSERT INTO explained SELECT *",
        "FROM explained INSERT INTO explained SELECT * INSERT INTO other SELECT *",
    ],
)
def test_explain_refuses_queries_that_write(session, explain, query):
    with pytest.raises(StatementInvalid, match="would change something"):
        session.sql(f"{explain} {query}")
    assert session.spark.table("explained").count() == 20


def test_errors_of_spark_point_into_the_whole_statement(session):
    with pytest.raises(ParseException, match="line 2, pos 9"):
        session.sql("EXPLAIN INDEX\nSELECT 1 )")
    with pytest.raises(AnalysisException, match="line 2 pos 14"):
        session.sql("EXPLAIN INDEX\nSELECT * FROM nowhere")
    with pytest.raises(StatementInvalid, match="takes no DataFrames"):
        session.sql("EXPLAIN INDEX SELECT * FROM {t}", t=session.spark.range(1))


def test_explain_without_an_index_or_without_a_table(session, messages):
    session.spark.table(messages.name).createTempView("bare")
    (row,) = session.sql("EXPLAIN ANALYZE INDEX SELECT * FROM bare WHERE id = '1'").collect()
    session.spark.catalog.dropTempView("bare")
    assert (row.reader, row.reason) == ("spark", "the table has no index")
    assert (row.actual_rows, row.milliseconds) == (None, None)
    assert row.query_milliseconds > 0
    nothing = session.sql("EXPLAIN INDEX SELECT 1 AS n WHERE 1 < 2")
    assert (nothing.columns, nothing.collect()) == (EXPLAINED, [])
