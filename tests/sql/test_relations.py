"""`IndexSession.sql` asks the enabled session, and tells how it reads the relations of a query."""

# ruff: noqa: S608 - the queries are the test's own

from collections.abc import Iterator

import pytest

from hudi_index_service.sql import IndexSession, last_queries


@pytest.fixture
def by_id(session: IndexSession, messages) -> Iterator[str]:
    """The table with an index, as a temporary view."""
    session.sql(f"CREATE INDEX by_id ON {messages.name} USING lucene (id, msg)")
    session.sql(f"OPTIMIZE TABLE {messages.name} STRATEGY ALL")
    session.spark.table(messages.name).createTempView("with_index")
    yield "with_index"
    session.spark.catalog.dropTempView("with_index")


def used(session: IndexSession) -> list[bool]:
    return [use.by_index for use in session.relations]


def test_relations_are_those_of_the_enabled_session(session, by_id):
    frame = session.sql(f"SELECT amount FROM {by_id} WHERE id = '3'")
    assert (used(session), session.relations[0].rows) == ([True], None)
    assert frame.collect() == [(9,)]
    assert session.relations == last_queries(session.spark)[-1]
    assert session.relations[0].rows == 1


def test_statements_that_read_no_hudi_table_have_no_relations(session, by_id):
    session.sql(f"CREATE TEMP VIEW third AS SELECT * FROM {by_id} WHERE id = '3'")
    assert session.relations == ()
    assert len(session.sql("SELECT * FROM third").collect()) == 1
    assert used(session) == [True]
    session.spark.catalog.dropTempView("third")
    session.spark.catalog.cacheTable(by_id)
    assert len(session.sql(f"SELECT * FROM {by_id} WHERE id = '3'").collect()) == 1
    assert session.relations == ()
    session.spark.catalog.uncacheTable(by_id)


def test_query_without_hudi_tables_is_returned_unchanged(session):
    """It is not even optimized until its rows are needed."""
    session.spark.range(3).createOrReplaceTempView("numbers")
    frame = session.sql("SELECT id FROM numbers WHERE id = 1")
    tracker = frame._jdf.queryExecution().tracker().phases()
    assert tracker.contains("analysis")
    assert not tracker.contains("optimization")
    assert session.relations == ()
    stream = session.spark.readStream.format("rate").load().where("value > 3")
    stream.createOrReplaceTempView("numbers")
    assert session.sql("SELECT value FROM numbers").isStreaming
    session.spark.catalog.dropTempView("numbers")
