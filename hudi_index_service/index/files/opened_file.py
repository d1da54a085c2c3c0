"""Data files of entries while they are open: counts what is fetched for them, and detects that one
has changed since it was opened.

Blocks of a mapped file are checked before their first use only, so a later write to the file would
go undetected.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from hudi_index_parquet import FileStates


@dataclass(slots=True)
class Fetched:
    """Requests for data files of entries, the bytes fetched, and the entries opened."""

    requests: int = 0
    bytes: int = 0
    opened: int = 0


_counting: ContextVar[Fetched | None] = ContextVar("index_fetched", default=None)


@contextmanager
def counted(into: Fetched) -> Iterator[None]:
    """Adds what this thread fetches in the block to `into`."""
    token = _counting.set(into)
    try:
        yield
    finally:
        _counting.reset(token)


def count(*, requests: int = 0, bytes: int = 0, opened: int = 0) -> None:
    """Counts requests, fetched bytes, or opened entries."""
    into = _counting.get()
    if into is not None:
        into.requests += requests
        into.bytes += bytes
        into.opened += opened


class OpenedFile:
    """The state of a local file when it was opened; construct it before reading the file.

    Args:
        is_copy: Whether the file is a copy in the user's cache. A copy is written to as blocks
            arrive, marked as used, evicted and made anew; its open readers continue to read.
    """

    def __init__(self, path: Path, *, is_copy: bool) -> None:
        self._path = path
        self._is_copy = is_copy
        self._status = self._stat()

    def has_changed(self) -> bool:
        """Whether the file was written to or replaced: its size, inode or one of its times differs;
        for a copy, its size. A deleted file has not changed: its bytes stay while it is open."""
        now, before = self._stat(), self._status
        if now is None or before is None:
            return now is not None  # None: it was deleted
        same_file = now.st_ino == before.st_ino and now.st_dev == before.st_dev
        if self._is_copy:
            return same_file and now.st_size != before.st_size
        return not (
            same_file
            and now.st_size == before.st_size
            and now.st_mtime_ns == before.st_mtime_ns
            # Unlike the modification time, this one cannot be set back.
            and now.st_ctime_ns == before.st_ctime_ns
        )

    def is_deleted(self) -> bool:
        """Whether there is no file of this name any more."""
        return self._stat() is None

    @property
    def state(self) -> tuple[Path, os.stat_result] | None:
        """Its path, and what it was when it was opened; None if it was not there."""
        return None if self._status is None else (self._path, self._status)

    def _stat(self) -> os.stat_result | None:
        try:
            return self._path.stat()
        except FileNotFoundError:
            return None


class OpenedFiles:
    """Many open data files, none of them a copy, to be checked by one call."""

    def __init__(self, files: Sequence[OpenedFile]) -> None:
        states = [each.state for each in files]
        self._known = np.array([each is not None for each in states], dtype=bool)
        self._numbers = np.cumsum(self._known, dtype=np.int32) - np.int32(1)
        self._states = FileStates([each for each in states if each is not None])

    def are_as_opened(self, positions: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
        """For each of some positions, whether that file is still there, and has not changed."""
        known = self._known[positions]
        unchanged = self._states.unchanged(self._numbers[positions[known]])
        answers = np.zeros(len(positions), dtype=bool)
        answers[known] = np.frombuffer(unchanged, dtype=bool)
        return answers
