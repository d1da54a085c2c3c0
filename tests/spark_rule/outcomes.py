"""What index statements return, whoever runs them."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from hudi_index_service.errors import IndexServiceError
from tests.spark_session import PATIENT

Sql = Callable[..., Any]


def with_messages(spark: SparkSession, database: str, written: Path, path: Path) -> SparkSession:
    """A session whose current database is one with a copy of a table as ``messages``."""
    for key, value in PATIENT.items():
        spark.conf.set(key, value)
    shutil.copytree(written, path)
    spark.sql(f"CREATE DATABASE IF NOT EXISTS {database}")
    spark.sql(f"USE {database}")
    spark.sql("DROP TABLE IF EXISTS messages")
    spark.sql(f"CREATE TABLE messages USING hudi LOCATION '{path}'")
    return spark


VARYING = {
    *("created", "seconds", "started", "finished", "builds", "entries", "index_bytes"),
    *("rows_per_second", "eta_seconds", "milliseconds", "query_milliseconds", "table"),
}
"""Columns that differ between two runs, or two tables."""


def outcome(sql: Sql, statement: str, args: Any = None) -> tuple[Any, ...]:
    """What a statement returns, or its error: the names and types of the columns, and the rows
    without what varies."""
    try:
        frame = sql(statement, args)
    except IndexServiceError as error:
        return error.code, _without_plan(error)
    except PySparkException as error:
        return error.getErrorClass(), _without_plan(error)
    kept = [name for name in frame.columns if name not in VARYING]
    return frame.schema.json(), frame.select(kept).collect()


def _without_plan(error: Exception) -> str:
    """An error's text without Spark's plan, in which expressions are numbered."""
    return str(error).strip().splitlines()[0].partition("; line")[0]


EXPLAINED = "SELECT id, msg FROM messages WHERE msg = 'Buying car 3' AND amount < 60"

_WHILE_BUILT = (
    "SHOW INDEXES FROM messages",
    "SHOW INDEXING messages",
    "OPTIMIZE TABLE messages",
    "CREATE INDEX i ON messages USING lucene, btree (id, msg OPTIONS(analyzer='simple'), amount);",
    "CREATE INDEX IF NOT EXISTS i ON messages USING lucene (id)",
    "CREATE INDEX i ON messages USING lucene (id)",
    "CREATE INDEX j ON messages USING nothing (id)",
    "OPTIMIZE TABLE messages WHERE dt = '2026-01-01' STRATEGY ALL DRY RUN",
    "OPTIMIZE TABLE messages WHERE dt = '2026-01-01' STRATEGY ALL",
    "OPTIMIZE TABLE messages STRATEGY ALL",
    "SHOW INDEXES IN TABLE messages",
    "SHOW INDEXING FROM messages",
    "SHOW INDEXING messages BUILD '000001'",
    "SHOW INDEXING messages BUILD 9",
    f"EXPLAIN INDEX {EXPLAINED}",
    f"EXPLAIN ANALYZE INDEX {EXPLAINED}",
    "EXPLAIN INDEX SELECT count(*) FROM messages WHERE match(msg, 'car')",
    "EXPLAIN INDEX WITH few AS (SELECT * FROM messages WHERE amount < 9) SELECT * FROM few, few f",
    "EXPLAIN INDEX SELECT nothing FROM messages",
    "EXPLAIN INDEX SELECT * FROM messages WHERE",
    "EXPLAIN INDEX WITH t AS (TABLE messages) INSERT INTO messages SELECT * FROM t",
    "EXPLAIN INDEX DROP TABLE messages",
)
_AFTERWARDS = (
    "ALTER INDEX i ON messages ADD (age) DROP (amount) SET OPTIONS(ranked='true')",
    "ALTER INDEX i ON messages RENAME TO k",
    "REFRESH INDEX k ON messages",
    "REFRESH INDEX i ON messages",
    "CANCEL INDEXING messages",
    "DROP INDEX i ON messages",
    "DROP INDEX i ON messages PURGE",
    "DROP INDEX IF EXISTS i ON messages",
    "DROP INDEX IF EXISTS i ON messages PURGE",
    "DROP INDEX ON messages (age) PURGE",
    "DROP INDEX k ON messages CASCADE",
    "DROP INDEX k ON messages PURGE",
    "SHOW INDEXES messages",
    "SHOW INDEXES FROM nowhere",
    "SHOW INDEXING nowhere",
    "OPTIMIZE TABLE '/no/such/folder'",
    "OPTIMIZE TABLE messages WHERE amount = 3",
    "OPTIMIZE TABLE messages; SELECT 1",
    "CREATE INDEX `i ON messages USING lucene (id)",
)

_QUERY = (
    "EXPLAIN INDEX WITH few AS (TABLE messages LIMIT {}) "
    "SELECT msg FROM messages WHERE id = {} AND amount IN (SELECT amount * 1 FROM few)"
)
_NAMED, _POSITIONED = _QUERY.format(":n", ":id"), _QUERY.format("?", "?")
POSITIONED = (_POSITIONED, [5, "3"])
_WITH_PARAMETERS = (
    (_NAMED, {"n": 5, "id": "it's \\ 3"}),
    POSITIONED,
    (_POSITIONED, [5]),
    (_NAMED, {"n": 5}),
    (_NAMED, None),
)
IN_ORDER: tuple[tuple[str, Any], ...] = (
    *((each, None) for each in _WHILE_BUILT),
    *_WITH_PARAMETERS,  # some of which are missing
    *((each, None) for each in _AFTERWARDS),
)
"""Statements on the table with the values of their parameters, from its first index to the last
one's end."""
