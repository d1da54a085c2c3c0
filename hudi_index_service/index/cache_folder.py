"""The user's cache folder for data files of remote entries, which several processes share.

What keeps them out of each other's way are locks on the files themselves (`flock`), which go with
the process that held them: a file that is locked, shared, is being made or opened, and not evicted.
After that it may go: whoever has it open reads on.
"""

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hudi_index_service.config import Settings
from hudi_index_service.storage import Storage

WHOLE_SUFFIX = ".pack"
"""Of whole, checked copies."""

PART_SUFFIX = ".part"
"""Of whole copies in the making; one that nobody has locked was given up."""

BLOCKS_SUFFIX = ".blocks"
"""Of copies that have only some blocks, and gaps where the others belong."""

_FOLDER = "entries"
_LOCK = "entries.lock"  # beside the folder, which holds nothing but copies


def copies_folder(cache_folder: Path) -> Path:
    """Where the copies lie, whether it exists or not."""
    return cache_folder / _FOLDER


def made_folder(settings: Settings) -> Path:
    """The same, made if need be, for this user alone."""
    folder = copies_folder(settings.cache_folder)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def table_prefix(storage: Storage) -> str:
    """How the names of all copies of the table's entries begin."""
    return f"{hashlib.sha256(storage.uri.encode()).hexdigest()[:16]}-"


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Keeps others from making room, beginning a copy or listing the copies for the length of the
    block."""
    with (folder.parent / _LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def in_use(copy: Path, length: int) -> Iterator[bool]:
    """Keeps a copy of that length from eviction for the length of the block; False if there is
    none."""
    with locked(copy, fcntl.LOCK_SH) as is_locked:
        status = status_of(copy)
        usable = is_locked and status is not None and status.st_size == length
        if usable:
            with suppress(FileNotFoundError):  # erased in this moment, which no lock prevents
                os.utime(copy)  # used now: the last to be evicted
        yield usable


@contextmanager
def locked(path: Path, kind: int) -> Iterator[bool]:
    """Locks the file for the length of the block; False if it is not there, or (``LOCK_NB``) if
    another process holds a lock against it."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        yield False
        return
    try:
        try:
            fcntl.flock(handle, kind)
        except BlockingIOError:
            yield False
            return
        # It may have been deleted before it was locked.
        present = status_of(path)
        yield present is not None and os.path.samestat(os.fstat(handle), present)
    finally:
        os.close(handle)


def make_room(folder: Path, length: int, settings: Settings, *, but: Path | None = None) -> None:
    """Deletes the copies that were used longest ago, of whatever tables, until that many bytes fit
    into what the cache may hold; only while `alone_in` the folder. Those being made or opened stay,
    so that for a moment it can hold more.

    Args:
        but: Stays as well.
    """
    used = [(copy, status) for copy in copies_in(folder) if (status := status_of(copy)) is not None]
    taken = sum(bytes_of(copy, status) for copy, status in used)
    excess = taken + length - settings.cache_max_mb * 2**20
    for copy, status in sorted(used, key=lambda each: each[1].st_mtime):
        if excess <= 0:
            return
        if copy != but and _deleted_if_idle(copy):
            excess -= bytes_of(copy, status)


def copies_in(folder: Path) -> list[Path]:
    """All copies, of whatever tables, those in the making too."""
    suffixes = (WHOLE_SUFFIX, PART_SUFFIX, BLOCKS_SUFFIX)
    return [path for suffix in suffixes for path in folder.glob(f"*{suffix}")]


def bytes_of(copy: Path, status: os.stat_result) -> int:
    """What the copy takes on the disk; of one with gaps, less than its length."""
    if copy.suffix == BLOCKS_SUFFIX:
        return min(status.st_size, status.st_blocks * 512)
    return status.st_size


def status_of(path: Path) -> os.stat_result | None:
    """The file's status; None if it is gone: another process was faster."""
    try:
        return path.stat()
    except FileNotFoundError:
        return None


def _deleted_if_idle(path: Path) -> bool:
    with locked(path, fcntl.LOCK_EX | fcntl.LOCK_NB) as is_locked:
        if is_locked:
            path.unlink(missing_ok=True)
        return is_locked
