"""Index statements of sessions that ask a daemon: outcomes are those of `IndexSession`."""

import shutil
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from hudi_index_service import open_table
from hudi_index_service.sql import IndexSession, enable
from tests.indexed import indexed
from tests.spark_rule.daemons import answering, asks, daemon
from tests.spark_rule.outcomes import IN_ORDER, outcome, with_messages


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """That of the session's tables."""
    return tmp_path / "tables"


@pytest.fixture
def unasked(enabled_once, written, folder) -> Iterator[SparkSession]:
    """A session with a copy of the table as ``messages``, which asks nobody yet, see `asks`."""
    session = with_messages(enabled_once.newSession(), "of_daemon", written, folder / "messages")
    yield session
    enable(session)
    enable(enabled_once)


@pytest.fixture
def session(unasked, folder) -> Iterator[SparkSession]:
    """The same with a daemon that may change indexes."""
    with daemon(folder, may_change=True) as listener:
        yield asks(unasked, listener.url)


@pytest.fixture
def reading(unasked, folder) -> Iterator[SparkSession]:
    """The session with a daemon that only reads."""
    with daemon(folder) as listener:
        yield asks(unasked, listener.url)


def test_results_and_errors_equal_those_of_index_session(session, spark, written, tmp_path):
    copy = tmp_path / "reference"
    reference = IndexSession(with_messages(spark.newSession(), "of_python", written, copy))
    for statement, args in IN_ORDER:
        if "/no/such/folder" in statement:
            continue  # which is in none of the daemon's
        expected = outcome(reference.sql, statement, args)
        assert outcome(session.sql, statement, args) == expected, statement


@pytest.mark.fast
def test_an_index_from_its_definition_to_a_query(session, folder):
    [created] = session.sql("CREATE INDEX i ON messages USING lucene (id, amount)").collect()
    assert (created.index_name, created.col_name) == ("i", "id,amount")
    built = session.sql("OPTIMIZE TABLE messages STRATEGY ALL").collect()
    assert {each.status for each in built} == {"built"}
    with open_table(folder / "messages") as table:
        assert created.created.timestamp() == pytest.approx(
            _moment(table.indexes()[0].created), abs=1e-6
        )
    [row] = session.sql("EXPLAIN ANALYZE INDEX SELECT msg FROM messages WHERE id = '3'").collect()
    assert (row.reader, row.index_name, row.condition) == ("driver", "i", "`id` = '3'")
    assert (row.actual_rows, row.expected_rows) == (1, 1)
    assert row.milliseconds > 0
    assert row.query_milliseconds > row.milliseconds
    assert session.sql("SELECT msg FROM messages WHERE id = '3'").collect() == [("Buying car 3",)]
    assert session.sql("DROP INDEX i ON messages PURGE").first().dropped
    assert session.sql("SHOW INDEXES FROM messages").collect() == []


def _moment(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


CHANGES = [
    "CREATE INDEX j ON messages USING lucene (id)",
    "ALTER INDEX i ON messages RENAME TO j",
    "DROP INDEX i ON messages",
    "DROP INDEX ON messages (id)",
    "REFRESH INDEX i ON messages",
    "OPTIMIZE TABLE messages",
    "CANCEL INDEXING messages",
]


@pytest.mark.fast
def test_a_daemon_changes_nothing_unless_it_may(reading, folder):
    with indexed(folder / "messages", ["id"]):
        before = sorted((folder / "messages" / ".hoodie" / ".index").rglob("*"))
        for statement in CHANGES:
            with pytest.raises(AnalysisException, match="with --allow-changes, or use") as raised:
                reading.sql(statement)
            assert raised.value.getErrorClass() == "REQUEST_REFUSED"
        assert sorted((folder / "messages" / ".hoodie" / ".index").rglob("*")) == before
    assert reading.sql("SHOW INDEXES FROM messages").first().index_name == "i"
    assert reading.sql("SHOW INDEXING messages").first().covered == 2
    assert reading.sql("OPTIMIZE TABLE messages DRY RUN").collect() == []
    assert reading.sql("EXPLAIN INDEX SELECT * FROM messages WHERE id = '3'").first().reader


@pytest.mark.parametrize("policy", ["LEGACY", "CORRECTED"])
@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata"])
def test_times_whatever_the_session_makes_of_them(session, folder, policy, zone):
    session.conf.set("spark.sql.legacy.timeParserPolicy", policy)
    session.conf.set("spark.sql.session.timeZone", zone)
    session.sql("CREATE INDEX i ON messages USING lucene (id)")
    [shown] = session.sql("SELECT 1").join(session.sql("SHOW INDEXES FROM messages")).collect()
    with open_table(folder / "messages") as table:
        created = _moment(table.indexes()[0].created)
    assert shown.created.timestamp() == pytest.approx(created, abs=1e-6)


def test_names_are_those_of_the_session(session, folder):
    session.range(1).createOrReplaceTempView("viewed")
    session.sql("CREATE OR REPLACE VIEW lasting AS SELECT 1 AS one")
    session.sql("CREATE TABLE IF NOT EXISTS other USING parquet AS SELECT 1 AS one")
    path = folder / "messages"
    try:
        for name, why in [
            ("viewed", "NOT_A_HUDI_TABLE: viewed is a view"),
            ("lasting", "NOT_A_HUDI_TABLE: lasting is a view"),
            ("other", "NOT_A_HUDI_TABLE: other is not a Hudi table, but of format parquet"),
            ("nowhere", "TABLE_NOT_FOUND: Spark's catalog has no table nowhere"),
            ("no_database.messages", "TABLE_NOT_FOUND"),
            ("a.b.messages", "TABLE_NOT_FOUND: a.b.messages is not in Spark's session catalog"),
        ]:
            with pytest.raises(AnalysisException, match=why):
                session.sql(f"SHOW INDEXING {name}")
        names = ("messages", "of_daemon.messages", "spark_catalog.of_daemon.messages")
        for name in (*names, f"'{path}'", f"hudi.`{path}`"):
            assert session.sql(f"SHOW INDEXING {name}").collect() == []
    finally:
        session.sql("DROP VIEW lasting")
        session.sql("DROP TABLE other")


@pytest.mark.fast
def test_tables_elsewhere(session, written, tmp_path):
    shutil.copytree(written, tmp_path / "elsewhere")
    session.sql(f"CREATE TABLE outside USING hudi LOCATION '{tmp_path / 'elsewhere'}'")
    try:
        for table in ("outside", f"'{tmp_path / 'elsewhere'}'"):
            with pytest.raises(AnalysisException, match="in none of the folders") as raised:
                session.sql(f"CREATE INDEX i ON {table} USING lucene (id)")
            assert raised.value.getErrorClass() == "REQUEST_REFUSED"
    finally:
        session.sql("DROP TABLE outside")


@pytest.mark.fast
def test_a_daemon_that_is_not_there(unasked):
    with answering(None) as address:
        pass
    asks(unasked, address)
    with pytest.raises(AnalysisException, match="cannot be reached") as raised:
        unasked.sql("SHOW INDEXES FROM messages")
    assert raised.value.getErrorClass() == "INDEX_NOT_ANSWERING"
    assert unasked.sql("SELECT count(*) FROM messages").first()[0] == 40
