"""Local folders for a task's unpublished files. A folder is deleted when its task ends or, if the
process was killed, when the next task begins on the same machine.

A folder's owner holds a lock on it (`flock`), which the system releases when the process ends. A
folder that can be locked is therefore abandoned.
"""

import fcntl
import logging
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Self

log = logging.getLogger(__name__)

_PREFIX = "hudi-index-build-"


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A new folder below the system's folder for temporary files (``TMPDIR``), deleted at the end
    of the block. First removes the folders that this user's killed processes left there.

    Raises:
        OSError: no folder can be created.
    """
    remove_abandoned()
    folder, lock = _locked_folder()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


class Scratch:
    """A task's scratch folder, made when it is first needed. Used as a context manager."""

    def __init__(self) -> None:
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    @cached_property
    def folder(self) -> Path:
        """The folder. Raises OSError if it cannot be created."""
        return self._stack.enter_context(scratch_folder())


def remove_abandoned() -> int:
    """Removes this user's folders whose owners are dead. Returns the number of removed folders."""
    removed = 0
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
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
            log.info("Removed %s, left by a build that was killed.", folder)
            removed += 1
    return removed


def _locked_folder() -> tuple[Path, int]:
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        with suppress(FileNotFoundError):  # removed as abandoned before it was locked
            lock = _lock(folder)
            if lock is not None:
                if folder.exists():
                    return folder, lock
                os.close(lock)


def _lock(folder: Path) -> int | None:
    """A descriptor that holds the folder's lock until closed; None if another process holds it."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor
