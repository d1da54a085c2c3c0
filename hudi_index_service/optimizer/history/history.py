"""The history as queries use it: kept in memory, and written to disk in the background."""

import atexit
import logging
import os
import sqlite3
import weakref
from collections import OrderedDict
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from threading import Lock, Thread
from time import time
from typing import TypeAlias

from hudi_index_service.config import HistorySettings, Settings
from hudi_index_service.errors import HistoryUnavailable
from hudi_index_service.optimizer.history.file import (
    WRITE_SECONDS,
    HistoryFile,
    NewerHistory,
    faded,
)
from hudi_index_service.optimizer.history.record import Correction, HistoryShape, Observation

log = logging.getLogger(__name__)

_BATCH = 64  # queries that are written together

_FAILURES = (OSError, sqlite3.Error, NewerHistory)

_Changes: TypeAlias = "OrderedDict[tuple[str, str], tuple[HistoryShape, float]]"
"""Table and shape → the new record, and the share of the known record that is kept."""

_FinishedQuery: TypeAlias = tuple[str, float, Observation]
"""A finished query: its table, its end time, its observation."""


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
        self._keep = float(0.5 ** (1 / settings.half_life_queries))
        self._warned = False
        self._begin()
        _living.add(self)

    def _begin(self) -> None:
        self._lock = Lock()  # protects the data in memory; held for microseconds
        self._writing = Lock()
        self._known: dict[str, OrderedDict[str, HistoryShape]] = {}
        self._ended: list[_FinishedQuery] = []  # not yet in `_unwritten`
        self._unwritten: _Changes = OrderedDict()
        self._days: dict[tuple[str, int], int] = {}

    def correction(self, table: str, shape: str) -> Correction | None:
        """The correction for estimates of a shape; None while too little is known. The first call
        for a table reads the file."""
        record = self._table_shapes(table).get(shape)
        return None if record is None else record.correction()

    def record(self, table: str, observation: Observation) -> None:
        """Adds a finished query. It counts immediately, and a separate thread writes it later."""
        now = time()
        self._table_shapes(table)
        with self._lock:
            shapes = self._known.setdefault(table, OrderedDict())
            shape = shapes.get(observation.shape)
            if shape is None:
                shape = shapes[observation.shape] = HistoryShape(observation.shape)
                if len(shapes) > self._settings.max_shapes:
                    shapes.popitem(last=False)
            shape.add(observation, now, self._kept_share(shape, now))
            shapes.move_to_end(observation.shape)
            self._ended.append((table, now, observation))
            full = len(self._ended) % _BATCH == 0
        if full:
            Thread(target=self.flush, name="history-write", daemon=True).start()

    def shapes(self, table: str) -> list[HistoryShape]:
        """The records of a table, the most recent first."""
        self.flush()
        shapes = self._table_shapes(table)
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
                for each in list(self._known) if table is None else [table]:
                    self._known.pop(each, None)
                self._ended = [each for each in self._ended if table not in (None, each[0])]
                for key in list(self._unwritten):
                    if table is None or key[0] == table:
                        del self._unwritten[key]
        return deleted

    def erase(self) -> None:
        """Forgets everything and deletes the file, which no other process may be using."""
        with self._writing, self._lock:
            self._known.clear()
            self._unwritten.clear()
            self._ended.clear()
            self._days.clear()
        self._file.delete()

    def flush(self) -> None:
        """Writes unwritten queries, and reads what other processes wrote."""
        with self._writing:
            with self._lock:
                changes, self._unwritten = self._unwritten, OrderedDict()
                days, self._days = self._days, {}
                queries, self._ended = self._ended, []
            if not changes and not queries:
                return
            self._add_queries(queries, changes)
            for table, now, _ in queries:
                day = (table, int(now // 86_400))
                days[day] = days.get(day, 0) + 1
            try:
                self._file.merge(
                    [(table, new, keep) for (table, _), (new, keep) in changes.items()],
                    days,
                    half_life_days=self._settings.half_life_days,
                    most=self._settings.max_shapes,
                )
            except _FAILURES as error:
                self._warn(error)
                self._keep_unwritten(changes, days)
                return
            for table in {table for table, _ in changes}:
                self._reload(table)

    def _kept_share(self, shape: HistoryShape, now: float) -> float:
        """The share of the known record that is kept when a query ends."""
        if not shape.last:
            return self._keep
        return self._keep * faded(now - shape.last, self._settings.half_life_days)

    def _add_queries(self, queries: Iterable[_FinishedQuery], changes: "_Changes") -> None:
        """Adds queries to the new records of their shapes."""
        for table, now, observation in queries:
            key = (table, observation.shape)
            new, keep = changes.setdefault(key, (HistoryShape(observation.shape), 1.0))
            new.add(observation, now, self._kept_share(new, now))
            changes[key] = (new, keep * self._keep)
            changes.move_to_end(key)

    def _keep_unwritten(self, changes: "_Changes", days: dict[tuple[str, int], int]) -> None:
        """Keeps changes for the next write."""
        with self._lock:
            while len(changes) > self._settings.max_shapes:
                changes.popitem(last=False)
            self._unwritten = changes
            for day, queries in days.items():
                self._days[day] = self._days.get(day, 0) + queries

    def _reload(self, table: str) -> None:
        """Replaces the known records by the written ones, and adds queries recorded meanwhile."""
        try:
            shapes = _by_age(self._file.shapes(table, WRITE_SECONDS))
        except _FAILURES as error:
            self._warn(error)
            return
        with self._lock:
            later: _Changes = OrderedDict()
            self._add_queries((each for each in self._ended if each[0] == table), later)
            for (_, shape), (new, keep) in later.items():
                shapes.setdefault(shape, HistoryShape(shape)).add_later(new, keep)
                shapes.move_to_end(shape)
            self._known[table] = shapes

    def _table_shapes(self, table: str) -> OrderedDict[str, HistoryShape]:
        shapes = self._known.get(table)
        if shapes is None:
            try:
                stored = self._file.shapes(table)
            except _FAILURES as error:
                self._warn(error)
                stored = {}
            with self._lock:
                shapes = self._known.setdefault(table, _by_age(stored))
        return shapes

    def _warn(self, error: Exception) -> None:
        if not self._warned:
            log.warning("The history of queries is not kept: %s: %s.", self._file.path, error)
        self._warned = True


def _by_age(shapes: dict[str, HistoryShape]) -> OrderedDict[str, HistoryShape]:
    return OrderedDict(sorted(shapes.items(), key=lambda item: item[1].last))


def history_of(settings: Settings) -> History | None:
    """The process's history for these settings; None if they switch it off."""
    return stored_history(settings) if settings.history.enabled else None


def stored_history(settings: Settings) -> History:
    """The same, even if switched off, to show what was recorded before."""
    global _last
    last = _last
    if last is None or last[0] is not settings:  # hashing settings takes longer than the rest
        last = _last = settings, _history(settings.state_folder / "history", settings.history)
    return last[1]


_last: tuple[Settings, History] | None = None


@lru_cache(maxsize=16)
def _history(folder: Path, settings: HistorySettings) -> History:
    return History(folder, settings)


_living: "weakref.WeakSet[History]" = weakref.WeakSet()


def forget_all() -> None:
    """Empties every history of this process and deletes its file, as if no query had run."""
    for each in list(_living):
        each.erase()


def _write_all() -> None:
    for each in list(_living):
        each.flush()


def _reset_after_fork() -> None:
    """Resets histories in a forked process: its parent writes the unwritten queries, and may have
    held a lock."""
    for each in list(_living):
        each._begin()


atexit.register(_write_all)
os.register_at_fork(after_in_child=_reset_after_fork)
