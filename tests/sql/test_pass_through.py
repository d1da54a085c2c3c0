"""Statements other than ours reach Spark unchanged."""

import re
from collections.abc import Iterator

import pytest
from pyspark.errors import AnalysisException, ParseException

from hudi_index_service.errors import IndexNotFound, StatementFailed, StatementInvalid

pytestmark = pytest.mark.fast


@pytest.fixture
def view(session, messages) -> Iterator[str]:
    """The table as a temporary view, so that queries have a constant text."""
    session.spark.table(messages.name).createTempView("queried")
    yield "queried"
    session.spark.catalog.dropTempView("queried")


@pytest.mark.usefixtures("view")
def test_query_is_passed_through(session):
    query = " SELECT id /* key */ FROM queried WHERE msg = 'Buying car 3' ORDER BY id; "
    assert [row.id for row in session.sql(query).collect()] == ["10", "17", "3"]


@pytest.mark.usefixtures("view")
def test_parameters_are_passed_through(session):
    named = "SELECT count(*) AS n FROM queried WHERE amount < :most"
    assert session.sql(named, args={"most": 9}).first().n == 3
    assert session.sql(named.replace(":most", "?"), args=[9]).first().n == 3
    table = session.spark.table("queried")
    assert session.sql("SELECT max(amount) AS n FROM {t}", t=table).first().n == 57


def test_other_statements_are_passed_through(session, messages):
    assert messages.name in [row.tableName for row in session.sql("SHOW TABLES").collect()]
    assert [row.col_name for row in session.sql(f"DESCRIBE {messages.name}").collect()][5] == "id"


def test_errors_of_spark_are_raised(session):
    with pytest.raises(ParseException):
        session.sql("SELEC 1")
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        session.sql("SELECT * FROM nowhere")
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        session.sql("SHOW INDEXES FROM nowhere")
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        session.sql("DROP INDEX i ON nowhere")


def test_unknown_indexes(session, messages):
    session.sql(f"CREATE INDEX by_msg ON {messages.name} USING lucene (msg)")
    for statement in (
        f"DROP INDEX other ON {messages.name}",
        f"REFRESH INDEX other ON {messages.name}",
        f"ALTER INDEX other ON {messages.name} ADD (id)",
        f"REFRESH INDEX other ON '{messages}'",
    ):
        with pytest.raises(IndexNotFound) as raised:
            session.sql(statement)
        assert "no index named other" in raised.value.message
        assert raised.value.remedy.startswith("SHOW INDEXES FROM ")
    assert session.sql(f"DROP INDEX IF EXISTS other ON {messages.name}").columns == []
    dropped = session.sql(f"DROP INDEX IF EXISTS other ON '{messages}'").collect()
    assert [tuple(row) for row in dropped] == [("other", False, None)]


@pytest.mark.parametrize("columns", ["(msg, id)", "USING record_index (msg)"])
def test_error_of_hudi_is_shortened_to_one_line(session, messages, columns):
    with pytest.raises(StatementFailed) as raised:
        session.sql(f"CREATE INDEX other ON {messages.name} {columns}")
    assert raised.value.message.startswith("Hudi creates no such index: ")
    assert "\n" not in raised.value.message
    assert "USING lucene" in raised.value.remedy


@pytest.mark.parametrize("query", ["SELECT id FROM {t}", "EXPLAIN INDEX SELECT id FROM {t}"])
def test_table_by_path_in_a_query_is_refused_with_a_remedy(session, messages, query):
    """Spark accepts paths only for its own formats, here as in ``spark.sql``."""
    table = f"hudi.`{messages}`"
    with pytest.raises(AnalysisException, match="UNSUPPORTED_DATASOURCE_FOR_DIRECT_QUERY"):
        session.spark.sql(query.format(t=table).removeprefix("EXPLAIN INDEX "))
    with pytest.raises(StatementInvalid, match="a Hudi table by its path") as raised:
        session.sql(query.format(t=table))
    named = re.search(r"CREATE TEMPORARY VIEW t .*?\)", raised.value.remedy).group()
    session.sql(named)
    assert session.sql("SELECT id FROM t").count() == 20
    session.spark.catalog.dropTempView("t")
