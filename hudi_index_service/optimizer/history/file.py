"""The history on disk: one SQLite database in the user's state folder.

Several processes use it at the same time. Each connection lives for one call, so that none crosses
a fork. The journal is a write-ahead log, so that readers never wait for writers
(https://sqlite.org/wal.html).
"""

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from fcntl import LOCK_EX, flock
from os import O_CREAT, O_NOFOLLOW, O_RDWR, close
from os import open as os_open
from pathlib import Path
from typing import TypeAlias

from hudi_index_service.config import HistorySettings
from hudi_index_service.optimizer.history.record import HistoryShape, Observation, Sums

FinishedQuery: TypeAlias = tuple[str, float, Observation]
"""A table, the time when a query on it ended, in seconds since 1970, and what was seen."""

SCHEMA_VERSION = 1
"""The version of the schema. Files with a higher version are not changed."""

READ_SECONDS, WRITE_SECONDS = 0.2, 5.0
"""Seconds to wait for another process's lock, in a query and in the background. Readers meet a lock
only while the last connection of another process is closing."""

_DAYS_KEPT = 400

_COLUMNS = ("columns", "unindexed", "used")

_SCHEMA = """
CREATE TABLE shapes (
    table_uri TEXT NOT NULL, shape TEXT NOT NULL, queries INTEGER NOT NULL, last REAL NOT NULL,
    last_used REAL NOT NULL, columns TEXT NOT NULL, sums TEXT NOT NULL,
    PRIMARY KEY (table_uri, shape)
);
CREATE INDEX shapes_last ON shapes (last);
CREATE TABLE days (
    table_uri TEXT NOT NULL, day INTEGER NOT NULL, queries INTEGER NOT NULL,
    PRIMARY KEY (table_uri, day)
) WITHOUT ROWID;
"""


class NewerHistory(Exception):
    """The file was written by a newer release."""


class HistoryFile:
    """The database ``queries.sqlite`` in a folder (mode 0700, the files 0600).

    Every method raises OSError, sqlite3.Error or NewerHistory if the file cannot be used. A damaged
    file is first renamed to ``queries.sqlite.damaged``.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / "queries.sqlite"

    def delete(self) -> None:
        """Deletes the file, if there is one."""
        if self.path.exists():
            for beside in ("", "-wal", "-shm"):
                self.path.with_name(self.path.name + beside).unlink(missing_ok=True)

    def shapes(self, table: str) -> dict[str, HistoryShape]:
        """The records of a table by shape, the most recent last; empty if there is no file."""
        if not self.path.exists():
            return {}
        with self._connection(READ_SECONDS) as connection:
            return _shapes(connection, table)

    def queries_since(self, table: str, day: int) -> int:
        """The number of queries recorded after a day (in days since 1970)."""
        if not self.path.exists():
            return 0
        with self._connection(WRITE_SECONDS) as connection:
            query = "SELECT coalesce(sum(queries), 0) FROM days WHERE table_uri = ? AND day > ?"
            (count,) = connection.execute(query, (table, day)).fetchone()
            return int(count)

    def add(
        self, queries: Sequence[FinishedQuery], settings: HistorySettings
    ) -> dict[str, dict[str, HistoryShape]]:
        """Adds queries. Beyond `max_shapes`, the least recently used shapes are deleted. Returns
        what `shapes` does, for each of their tables."""
        days = Counter((table, int(now // 86_400)) for table, now, _ in queries)
        with self._connection(WRITE_SECONDS) as connection, _transaction(connection):
            known = {table: _shapes(connection, table) for table in {each[0] for each in queries}}
            changed: dict[tuple[str, str], HistoryShape] = {}
            for table, now, query in queries:
                shape = known[table].get(query.shape) or HistoryShape(query.shape)
                shape.add(query, now, settings)
                changed[table, query.shape] = known[table][query.shape] = shape
            connection.executemany(
                "INSERT OR REPLACE INTO shapes VALUES (?, ?, ?, ?, ?, ?, ?)",
                [(table, *_row(shape)) for (table, _), shape in changed.items()],
            )
            connection.executemany(
                "INSERT INTO days VALUES (?, ?, ?) ON CONFLICT (table_uri, day) "
                "DO UPDATE SET queries = queries + excluded.queries",
                [(*key, number) for key, number in days.items()],
            )
            oldest = max(day for _, day in days) - _DAYS_KEPT
            connection.execute("DELETE FROM days WHERE day < ?", (oldest,))
            (count,) = connection.execute("SELECT count(*) FROM shapes").fetchone()
            connection.execute(
                "DELETE FROM shapes WHERE rowid IN "
                "(SELECT rowid FROM shapes ORDER BY last LIMIT ?)",
                (max(0, count - settings.max_shapes),),
            )
            return {table: _shapes(connection, table) for table in known}

    def forget(self, table: str | None) -> int:
        """Deletes the records of one table or of all, also from the file's bytes; returns the
        number of deleted shapes."""
        if not self.path.exists():
            return 0
        with self._connection(WRITE_SECONDS) as connection:
            connection.execute("PRAGMA secure_delete = ON")
            with _transaction(connection):
                parameters = {"table": table}
                deleted = connection.execute(
                    "DELETE FROM shapes WHERE :table IS NULL OR table_uri = :table", parameters
                ).rowcount
                connection.execute(
                    "DELETE FROM days WHERE :table IS NULL OR table_uri = :table", parameters
                )
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return int(deleted)

    @contextmanager
    def _connection(self, wait_seconds: float) -> Iterator[sqlite3.Connection]:
        self._make()
        try:
            with closing(self._open(wait_seconds)) as connection:
                yield connection
        except sqlite3.OperationalError:  # locked, read-only, disk full: the file is not damaged
            raise
        except sqlite3.DatabaseError:
            self._set_aside()
            raise

    def _make(self) -> None:
        folder = self.path.parent
        # makedirs gives its mode to the last folder only.
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        if not self.path.exists():  # SQLite gives its other files the same mode
            close(os_open(self.path, O_CREAT | O_RDWR, 0o600))

    def _open(self, wait_seconds: float) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.path, timeout=wait_seconds, isolation_level=None, check_same_thread=False
        )
        try:
            connection.row_factory = sqlite3.Row
            if _version(connection) == 0:
                with self._file_lock():
                    if _version(connection) == 0:  # else another process was faster
                        _make_tables(connection)
            if _version(connection) > SCHEMA_VERSION:
                raise NewerHistory(f"{self.path} was written by a newer release")
            # A crash of the machine may lose the last queries, but does not damage the file.
            connection.execute("PRAGMA synchronous = NORMAL")
        except BaseException:
            connection.close()
            raise
        return connection

    def _set_aside(self) -> None:
        with self._file_lock():
            if self._is_damaged():  # else another process has already done so
                self.path.replace(self.path.with_name(f"{self.path.name}.damaged"))
                for beside in ("-wal", "-shm"):
                    self.path.with_name(self.path.name + beside).unlink(missing_ok=True)

    @contextmanager
    def _file_lock(self) -> Iterator[None]:
        """A lock: no other process creates or renames the file during the block."""
        lock = os_open(self.path.with_name("lock"), O_CREAT | O_RDWR | O_NOFOLLOW, 0o600)
        try:
            flock(lock, LOCK_EX)
            yield
        finally:
            close(lock)

    def _is_damaged(self) -> bool:
        try:
            with closing(sqlite3.connect(self.path, timeout=READ_SECONDS)) as connection:
                (result,) = connection.execute("PRAGMA quick_check(1)").fetchone()
                return bool(result != "ok")
        except sqlite3.OperationalError:
            return False
        except sqlite3.DatabaseError:
            return True


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """One transaction."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _make_tables(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA journal_mode = WAL")
    with _transaction(connection):
        for statement in _SCHEMA.split(";"):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def _version(connection: sqlite3.Connection) -> int:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return int(version)


def _row(shape: HistoryShape) -> tuple[str | float, ...]:
    columns = {name: sorted(getattr(shape, name)) for name in _COLUMNS}
    sums = {name: round(value, 6) for name, value in shape.sums.items()}
    counts = (shape.queries, shape.last, shape.last_used)
    return (shape.shape, *counts, json.dumps(columns), json.dumps(sums))


def _shapes(connection: sqlite3.Connection, table: str) -> dict[str, HistoryShape]:
    query = "SELECT * FROM shapes WHERE table_uri = ? ORDER BY last"
    return {row["shape"]: _shape(row) for row in connection.execute(query, (table,))}


def _shape(row: sqlite3.Row) -> HistoryShape:
    """The record in a row. An invalid one counts as empty; the next query replaces it."""
    try:
        names, sums = json.loads(row["columns"]), json.loads(row["sums"])
        columns, unindexed, used = (frozenset(names[name]) for name in _COLUMNS)
        return HistoryShape(
            row["shape"],
            int(row["queries"]),
            float(row["last"]),
            float(row["last_used"]),
            columns,
            unindexed,
            used,
            Sums({name: float(value) for name, value in sums.items()}),
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return HistoryShape(row["shape"])
