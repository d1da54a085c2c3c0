"""Temporary folders that outlive no process: those of killed ones are removed by others.

A folder's owner holds a lock on it (`flock`), which the system releases when the process ends. A
folder that can be locked is therefore abandoned.
"""

import fcntl
import logging
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

log = logging.getLogger(__name__)

BUILDING = "hudi-index-build-"
"""Of an index that is being built."""

MERGING = "hudi-index-merge-"
"""Of log files that are being merged."""

RANKING = "hudi-index-ranked-"
"""Of texts that no index holds and that are being ranked."""

_PREFIXES = (BUILDING, MERGING, RANKING)


def locked_folder(prefix: str) -> tuple[Path, int]:
    """A new folder below the system's folder for temporary files (``TMPDIR``), with the descriptor
    that locks it until it is closed.

    Args:
        prefix: One of this module's.

    Raises:
        OSError: no folder can be created.
    """
    while True:
        folder = Path(tempfile.mkdtemp(prefix=prefix))
        with suppress(FileNotFoundError):  # removed as abandoned before it was locked
            lock = _lock(folder)
            if lock is not None:
                if folder.exists():
                    return folder, lock
                os.close(lock)


@contextmanager
def temporary_folder(prefix: str) -> Iterator[Path]:
    """A new folder, deleted at the end of the block; see `locked_folder`."""
    folder, lock = locked_folder(prefix)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


class OwnedFolder:
    """A temporary folder, removed with this object, or by `close`, by the process that made it
    alone. What killed processes left is removed before a process makes its first one.

    Args:
        prefix: Of its name; see `locked_folder`.

    Attributes:
        name: Its path.
    """

    def __init__(self, prefix: str) -> None:
        _remove_abandoned_once(os.getpid())
        folder, lock = locked_folder(prefix)
        self.name = str(folder)
        weakref.finalize(self, os.close, lock)  # made first, called last
        self.close = weakref.finalize(self, _remove, self.name, os.getpid())


def remove_abandoned() -> int:
    """Removes this user's folders whose owners are dead. Returns the number of removed folders."""
    removed = 0
    places = [Path(tempfile.gettempdir()).glob(f"{prefix}*") for prefix in _PREFIXES]
    for folder in (folder for place in places for folder in place):
        with suppress(OSError):  # another user's, or being removed by another process
            if folder.lstat().st_uid != os.getuid():
                continue
            lock = _lock(folder)
            if lock is None:
                continue
            try:
                shutil.rmtree(folder)
            finally:
                os.close(lock)
            log.info("Removed %s, left by a process that was killed.", folder)
            removed += 1
    return removed


def _lock(folder: Path) -> int | None:
    """A descriptor that holds the folder's lock until closed; None if another process holds it."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


@cache
def _remove_abandoned_once(process: int) -> None:
    remove_abandoned()


def _remove(name: str, owner: int) -> None:
    if owner == os.getpid():
        # Who cleaned up the temporary folder above it has removed this one too.
        with suppress(FileNotFoundError):
            shutil.rmtree(name)
