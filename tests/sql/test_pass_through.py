"""What is not ours reaches Spark as it was written."""

from collections.abc import Iterator

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, ParseException

from hudi_index_service.errors import IndexExists
from tests.hudi_tables import IN_PROCESS_LOCK


@pytest.fixture
def view(session, messages) -> Iterator[str]:
    """The table as a temporary view, for queries with a constant text."""
    session.spark.table(messages.name).createTempView("queried")
    yield "queried"
    session.spark.catalog.dropTempView("queried")


@pytest.mark.usefixtures("view")
def test_queries(session):
    query = " SELECT id /* key */ FROM queried WHERE msg = 'Buying car 3' ORDER BY id; "
    assert [row.id for row in session.sql(query).collect()] == ["10", "17", "3"]


@pytest.mark.usefixtures("view")
def test_parameters(session):
    named = "SELECT count(*) AS n FROM queried WHERE amount < :most"
    assert session.sql(named, args={"most": 9}).first().n == 3
    assert session.sql(named.replace(":most", "?"), args=[9]).first().n == 3
    table = session.spark.table("queried")
    assert session.sql("SELECT max(amount) AS n FROM {t}", t=table).first().n == 57


def test_other_statements(session, messages):
    assert messages.name in [row.tableName for row in session.sql("SHOW TABLES").collect()]
    assert [row.col_name for row in session.sql(f"DESCRIBE {messages.name}").collect()][5] == "id"


def test_sparks_own_errors(session):
    with pytest.raises(ParseException):
        session.sql("SELEC 1")
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        session.sql("SELECT * FROM nowhere")
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        session.sql("SHOW INDEXES FROM nowhere")
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        session.sql("DROP INDEX i ON nowhere")


@pytest.fixture
def second_hudi_writer(session) -> Iterator[None]:
    """Settings under which Hudi builds its indexes: as a second writer, which needs a lock."""
    settings = {
        **IN_PROCESS_LOCK,
        "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
        # Ten files for twenty rows otherwise; the second is the older name.
        "hoodie.metadata.global.record.level.index.min.filegroup.count": "1",
        "hoodie.metadata.record.index.min.filegroup.count": "1",
    }
    for key, value in settings.items():
        session.spark.conf.set(key, value)
    yield
    for key in settings:
        session.spark.conf.unset(key)


@pytest.mark.usefixtures("second_hudi_writer")
def test_hudis_own_indexes_beside_ours(session, messages):
    table = messages.name
    session.sql(f"CREATE INDEX record_index ON {table} (id)")
    session.sql(f"CREATE INDEX by_msg ON {table} USING lucene (msg)")

    both = session.sql(f"SHOW INDEXES FROM {table}").collect()
    assert ("by_msg", "lucene", "msg", "index service") in [
        (row.index_name, row.index_type, row.col_name, row.managed_by) for row in both
    ]
    theirs = [tuple(row) for row in session.spark.sql(f"SHOW INDEXES FROM {table}").collect()]
    assert "record_index" in [name for name, _, _ in theirs]
    assert [tuple(row)[:3] for row in both if row.managed_by == "hudi"] == theirs

    session.sql(f"DROP INDEX record_index ON {table}")
    assert "record_index" not in [
        row.index_name for row in session.spark.sql(f"SHOW INDEXES FROM {table}").collect()
    ]
    with pytest.raises(IndexExists):
        session.sql(f"CREATE INDEX by_msg ON {table} USING lucene (msg)")


def test_indexes_that_are_none_of_ours_are_hudis_to_judge(session, messages):
    session.sql(f"CREATE INDEX by_msg ON {messages.name} USING lucene (msg)")
    with pytest.raises(Py4JJavaError, match="Index does not exist: other"):
        session.sql(f"DROP INDEX other ON {messages.name}")
    assert session.sql(f"DROP INDEX IF EXISTS other ON {messages.name}").columns == []
    # Hudi's REFRESH INDEX does nothing, whatever its name.
    assert session.sql(f"REFRESH INDEX other ON {messages.name}").columns == []
    with pytest.raises(Py4JJavaError, match="HoodieIndexException"):
        session.sql(f"CREATE INDEX other ON {messages.name} (msg, id)")
