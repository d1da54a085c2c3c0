"""The history on disk: one SQLite database in the user's state folder.

Several processes use it at the same time. Each connection lives for one call, so that none crosses
a fork. The journal is a write-ahead log, so that readers never wait for writers
(https://sqlite.org/wal.html).
"""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from fcntl import LOCK_EX, flock
from os import O_CREAT, O_NOFOLLOW, O_RDWR, close
from os import open as os_open
from pathlib import Path

from hudi_index_service.optimizer.history.record import HistoryShape
from hudi_index_service.optimizer.history.sums import Sums

SCHEMA_VERSION = 1
"""The version of the schema. Files with a higher version are not changed."""

READ_SECONDS, WRITE_SECONDS = 0.2, 5.0
"""Seconds to wait for another process's lock, in a query and in the background. Readers meet a lock
only while the last connection of another process is closing."""

_DAYS_KEPT = 400

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

    def shapes(self, table: str, wait_seconds: float = READ_SECONDS) -> dict[str, HistoryShape]:
        """The records of a table by shape; empty if there is no file."""
        if not self.path.exists():
            return {}
        with self._connection(wait_seconds) as connection:
            rows = connection.execute("SELECT * FROM shapes WHERE table_uri = ?", (table,))
            return {row["shape"]: _shape(row) for row in rows}

    def queries_since(self, table: str, day: int) -> int:
        """The number of queries recorded after a day (in days since 1970)."""
        if not self.path.exists():
            return 0
        with self._connection(WRITE_SECONDS) as connection:
            query = "SELECT coalesce(sum(queries), 0) FROM days WHERE table_uri = ? AND day > ?"
            (count,) = connection.execute(query, (table, day)).fetchone()
            return int(count)

    def merge(
        self,
        changes: Iterable[tuple[str, HistoryShape, float]],
        days: Mapping[tuple[str, int], int],
        *,
        half_life_days: float,
        most: int,
    ) -> None:
        """Adds new records as (table, new record, share of the known record that is kept). Beyond
        `most` shapes, the least recently used ones are deleted."""
        with self._connection(WRITE_SECONDS) as connection, _transaction(connection):
            for table, new, keep in changes:
                _merge_one(connection, table, new, keep, half_life_days)
            connection.executemany(
                "INSERT INTO days VALUES (?, ?, ?) ON CONFLICT (table_uri, day) "
                "DO UPDATE SET queries = queries + excluded.queries",
                [(table, day, queries) for (table, day), queries in days.items()],
            )
            if days:
                oldest = max(day for _, day in days) - _DAYS_KEPT
                connection.execute("DELETE FROM days WHERE day < ?", (oldest,))
            (count,) = connection.execute("SELECT count(*) FROM shapes").fetchone()
            if count > most:
                connection.execute(
                    "DELETE FROM shapes WHERE rowid IN "
                    "(SELECT rowid FROM shapes ORDER BY last LIMIT ?)",
                    (count - most,),
                )

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
                columns = [row[1] for row in connection.execute("PRAGMA table_info(shapes)")]
                return result != "ok" or "sums" not in columns
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


def _merge_one(
    connection: sqlite3.Connection,
    table: str,
    new: HistoryShape,
    keep: float,
    half_life_days: float,
) -> None:
    row = connection.execute(
        "SELECT * FROM shapes WHERE table_uri = ? AND shape = ?", (table, new.shape)
    ).fetchone()
    merged = HistoryShape(new.shape) if row is None else _shape(row)
    if row is not None:
        keep *= faded(new.last - merged.last, half_life_days)
    merged.add_later(new, keep)
    columns = {
        "columns": sorted(merged.columns),
        "unindexed": sorted(merged.unindexed),
        "used": sorted(merged.used),
    }
    sums = {name: round(value, 6) for name, value in merged.sums.values.items()}
    counts = (merged.queries, merged.last, merged.last_used)
    connection.execute(
        "INSERT OR REPLACE INTO shapes VALUES (?, ?, ?, ?, ?, ?, ?)",
        (table, merged.shape, *counts, json.dumps(columns), json.dumps(sums)),
    )


def faded(seconds: float, half_life_days: float) -> float:
    """The share that remains after this time."""
    return float(0.5 ** (max(0.0, seconds) / 86_400 / half_life_days))


def _shape(row: sqlite3.Row) -> HistoryShape:
    """The record in a row. An invalid one counts as empty; the next query replaces it."""
    try:
        columns = json.loads(row["columns"])
        sums = Sums({str(name): float(value) for name, value in json.loads(row["sums"]).items()})
        return HistoryShape(
            row["shape"],
            int(row["queries"]),
            float(row["last"]),
            float(row["last_used"]),
            frozenset(columns["columns"]),
            frozenset(columns["unindexed"]),
            frozenset(columns["used"]),
            sums,
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return HistoryShape(row["shape"])
