"""Mistakes in SQL: each raises an error with code, message and remedy in terms of SQL."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from hudi_index_service import IndexServiceError
from hudi_index_service.sql import IndexSession
from tests.golden.table import Golden
from tests.mistakes.clear import COMMANDS, PYTHON, assert_clear

pytestmark = pytest.mark.fast

INVALID, UNKNOWN = "STATEMENT_INVALID", "COLUMN_NOT_FOUND"

# A statement → code, part of the message, of the remedy. `t` has the index by_amount.
MISTAKES = [
    ("CREATE INDEX i ON t USING lucene (mgs)", UNKNOWN, "'mgs'", "msg, and"),
    ("CREATE INDEX i ON t USING lucene (id) INCLUDE (tss)", UNKNOWN, "'tss'", "ts, and"),
    ("CREATE INDEX i ON t USING lucene ()", INVALID, "line 1, column 35", "Correct the statement"),
    ("CREATE INDEX i t USING lucene (id)", INVALID, "ON expected", "Correct the statement"),
    ("CREATE INDEX i ON t USING lucine (id)", "INDEX_TYPE_UNKNOWN", "'lucine'", "mean lucene?"),
    (
        *("CREATE INDEX by_amount ON t USING lucene (id)", "INDEX_EXISTS"),
        *("by_amount", "or add IF NOT EXISTS"),
    ),
    (
        *("CREATE INDEX `i-j` ON t USING lucene (id)", "INDEX_DEFINITION_INVALID"),
        *("'i-j'", "letters, digits"),
    ),
    (
        *("CREATE INDEX i ON t USING lucene (id, ID)", "INDEX_DEFINITION_INVALID"),
        *("id twice", "once"),
    ),
    (
        *("CREATE INDEX i ON t USING lucene (msg OPTIONS(analyzer='standrad'))",),
        *("INDEX_DEFINITION_INVALID", "'standrad'", "Did you mean standard?"),
    ),
    (
        *("CREATE INDEX i ON t USING lucene (amount OPTIONS(analyzer='simple'))",),
        *("INDEX_DEFINITION_INVALID", "only string columns", "Remove the option"),
    ),
    ("CREATE INDEX i ON nosuch USING lucene (id)", "TABLE_NOT_FOUND", "nosuch", "path in quotes"),
    ("CREATE INDEX i ON '/no/t' USING lucene (id)", "TABLE_NOT_FOUND", "/no/t", "Check the path"),
    ("CREATE INDEX i ON plain USING lucene (a)", "NOT_A_HUDI_TABLE", "parquet", "USING hudi"),
    ("CREATE INDEX i ON seen USING lucene (a)", "NOT_A_HUDI_TABLE", "is a view", "Name the table"),
    ("ALTER INDEX by_amount ON t", INVALID, "ADD, DROP, SET or RENAME TO", "Correct the"),
    ("ALTER INDEX by_amuont ON t ADD (ts)", "INDEX_NOT_FOUND", "by_amuont", "mean by_amount?"),
    ("ALTER INDEX by_amount ON t DROP (ts)", UNKNOWN, "no column ts", "amount, msg"),
    ("DROP INDEX by_amuont ON t", "INDEX_NOT_FOUND", "by_amuont", "mean by_amount? SHOW INDEXES"),
    ("DROP INDEX ON t", INVALID, "( expected", "Correct the statement"),
    ("REFRESH INDEX nothing ON t", "INDEX_NOT_FOUND", "nothing", "SHOW INDEXES FROM t"),
    ("OPTIMIZE TABLE t STRATEGY SOME", INVALID, "found 'SOME'", "Correct the statement"),
    ("OPTIMIZE TABLE t STRATGY ALL", INVALID, "found 'STRATGY'", "Correct the statement"),
    ("OPTIMIZE TABLE t WHERE id = '1'", "PREDICATE_INVALID", "'id'", "not partitioned"),
    ("OPTIMIZE TABLE t WHERE mgs = 1", UNKNOWN, "line 1, column 24 of the statement", "msg, and"),
    ("SHOW INDEXING nosuch", "TABLE_NOT_FOUND", "no table nosuch", "Check its name"),
    ("SHOW INDEXING t BUILD 99", "BUILD_NOT_FOUND", "000099", "SHOW INDEXING of the table"),
    ("SHOW INDEXING t BUILD x", INVALID, "found 'x'", "Correct the statement"),
    ("CANCEL INDEXING nosuch", "TABLE_NOT_FOUND", "no table nosuch", "Check its name"),
    ("EXPLAIN INDEX INSERT INTO t VALUES (1)", INVALID, "'INSERT'", "before a SELECT"),
    ("SELECT * FROM hudi.`/no/t`", INVALID, "by its path", "CREATE TEMPORARY VIEW t USING hudi"),
]


@pytest.fixture(scope="module")
def session(
    spark: SparkSession, golden: Golden, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[IndexSession]:
    """A session in a database of its own, with the tables that the statements name."""
    path: Path = golden("two_hundred_rows").put(tmp_path_factory.mktemp("sql") / "table")
    own = spark.newSession()
    own.sql("CREATE DATABASE mistakes")
    own.sql("USE mistakes")
    own.sql(f"CREATE TABLE t USING hudi LOCATION '{path}'")
    own.sql("CREATE TABLE plain (a INT) USING parquet")
    own.sql("CREATE VIEW seen AS SELECT * FROM plain")
    session = IndexSession(own)
    session.sql("CREATE INDEX by_amount ON t USING lucene (amount, msg)")
    yield session
    own.sql("DROP DATABASE mistakes CASCADE")


@pytest.mark.parametrize(
    ("statement", "code", "says", "remedy"), MISTAKES, ids=[each[0] for each in MISTAKES]
)
def test_a_mistake_raises_an_error_with_code_and_remedy(
    statement: str, code: str, says: str, remedy: str, session: IndexSession
) -> None:
    with pytest.raises(IndexServiceError) as raised:
        session.sql(statement)
    assert_clear(str(raised.value), code, says, remedy, foreign=(COMMANDS, PYTHON))
