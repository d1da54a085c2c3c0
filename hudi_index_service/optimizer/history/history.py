"""The history as queries use it: kept in memory, and written to disk in the background."""

import atexit
import logging
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from threading import Lock, Thread
from time import time

from hudi_index_service.config import HistorySettings, Settings
from hudi_index_service.errors import HistoryUnavailable
from hudi_index_service.optimizer.history.file import FinishedQuery, HistoryFile, NewerHistory
from hudi_index_service.optimizer.history.record import HistoryShape, Observation

log = logging.getLogger(__name__)

_BATCH = 64  # queries that are written together
_MOST_UNWRITTEN = 16 * _BATCH  # that are kept while the file cannot be used

_FAILURES = (OSError, sqlite3.Error, NewerHistory)


class History:
    """The records of past queries by table and shape. Safe to use from several threads and several
    processes; each process reads the records of others when it writes its own.

    If the file cannot be used, a warning is logged once, and this process keeps its history in
    memory only.

    Args:
        folder: The folder of the history; created on first use, mode 0700.
    """

    def __init__(self, folder: Path, settings: HistorySettings) -> None:
        self._file = HistoryFile(folder)
        self._settings = settings
        self._warned = False
        self.forget_unwritten()

    def forget_unwritten(self) -> None:
        """Forgets what is in memory. In a forked process, the parent writes it, and may have held a
        lock."""
        self._lock = Lock()  # protects the data in memory; held for microseconds
        self._writing = Lock()
        self._known: dict[str, dict[str, HistoryShape]] = {}  # the most recent shape last
        self._unwritten: list[FinishedQuery] = []

    def shape(self, table: str, shape: str) -> HistoryShape | None:
        """The record of a shape. The first call for a table reads the file."""
        return self._shapes(table).get(shape)

    def record(self, table: str, observation: Observation) -> None:
        """Adds a finished query. It counts immediately, and a separate thread writes it later."""
        query = table, time(), observation
        self._shapes(table)
        with self._lock:
            self._add(query)
            self._unwritten.append(query)
            full = len(self._unwritten) % _BATCH == 0
        if full:
            Thread(target=self.flush, name="history-write", daemon=True).start()

    def shapes(self, table: str) -> list[HistoryShape]:
        """The records of a table, the most recent first."""
        self.flush()
        shapes = self._shapes(table)
        with self._lock:
            return sorted(shapes.values(), key=lambda each: each.last, reverse=True)

    def queries_since(self, table: str, since: float) -> int:
        """The number of queries on a table recorded after the UTC day of a time (in seconds since
        1970)."""
        self.flush()
        try:
            return self._file.queries_since(table, int(since // 86_400))
        except _FAILURES as error:
            self._warn(error)
            return 0

    def forget(self, table: str | None = None) -> int:
        """Deletes the records of one table or of all. Other running processes drop them at their
        next write.

        Returns:
            The number of deleted shapes.

        Raises:
            HistoryUnavailable: the file could not be changed.
        """
        self.flush()
        with self._writing:
            try:
                deleted = self._file.forget(table)
            except _FAILURES as error:
                raise HistoryUnavailable(
                    f"The query history {self._file.path} cannot be changed: {error}."
                ) from error
            with self._lock:
                self._unwritten = [each for each in self._unwritten if table not in (None, each[0])]
                for each in list(self._known) if table is None else [table]:
                    self._known.pop(each, None)
        return deleted

    def erase(self) -> None:
        """Forgets everything and deletes the file, which no other process may be using."""
        self.forget_unwritten()
        self._file.delete()

    def flush(self) -> None:
        """Writes unwritten queries, and reads what other processes wrote."""
        with self._writing:
            with self._lock:
                queries, self._unwritten = self._unwritten, []
            if not queries:
                return
            try:
                written = self._file.add(queries, self._settings)
            except _FAILURES as error:
                self._warn(error)
                with self._lock:
                    self._unwritten = [*queries, *self._unwritten][-_MOST_UNWRITTEN:]
                return
            with self._lock:
                self._known |= written
                for query in self._unwritten:  # they ended meanwhile
                    if query[0] in written:
                        self._add(query)

    def _add(self, query: FinishedQuery) -> None:
        """Adds a query to the record of its shape in memory."""
        table, now, observation = query
        shapes = self._known.setdefault(table, {})
        shape = shapes.pop(observation.shape, None) or HistoryShape(observation.shape)
        shape.add(observation, now, self._settings)
        shapes[observation.shape] = shape
        if len(shapes) > self._settings.max_shapes:
            del shapes[next(iter(shapes))]

    def _shapes(self, table: str) -> dict[str, HistoryShape]:
        shapes = self._known.get(table)
        if shapes is None:
            try:
                stored = self._file.shapes(table)
            except _FAILURES as error:
                self._warn(error)
                stored = {}
            with self._lock:
                shapes = self._known.setdefault(table, stored)
        return shapes

    def _warn(self, error: Exception) -> None:
        if not self._warned:
            log.warning("The history of queries is not kept: %s: %s.", self._file.path, error)
        self._warned = True


def history_of(settings: Settings) -> History | None:
    """The process's history for these settings; None if they switch it off."""
    return stored_history(settings) if settings.history.enabled else None


def stored_history(settings: Settings) -> History:
    """The same, even if switched off, to show what was recorded before."""
    key = settings.state_folder, settings.history
    history = _histories.get(key)
    if history is None:
        history = _histories.setdefault(key, History(settings.state_folder / "history", key[1]))
    return history


_histories: dict[tuple[Path, HistorySettings], History] = {}
"""Those of this process, each written when it ends."""


def each_history(do: Callable[[History], None]) -> None:
    """Does something with each history of this process."""
    for history in list(_histories.values()):
        do(history)


atexit.register(each_history, History.flush)
os.register_at_fork(after_in_child=lambda: each_history(History.forget_unwritten))
