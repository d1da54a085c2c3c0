"""The user's cache folder for data files of remote entries, shared by several processes.

Processes synchronize with locks on the files themselves (`flock`), which end with the process. A
file with a shared lock is being made or opened, and is not evicted. Afterwards it may be evicted;
processes that have it open continue to read.

The folder is the user's own, and no link is followed in it: others could put files there, or have
this user's files overwritten.
"""

import errno
import fcntl
import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hudi_index_service.config import Settings
from hudi_index_service.errors import StorageFailed
from hudi_index_service.storage.store import Storage

WHOLE_SUFFIX = ".pack"
"""Suffix of whole, checked copies."""

PART_SUFFIX = ".part"
"""Suffix of whole copies in the making; one without a lock was abandoned."""

BLOCKS_SUFFIX = ".blocks"
"""Suffix of copies that hold only some blocks, with gaps for the others."""

_FOLDER = "entries"
_LOCK = "entries.lock"  # next to the folder, which holds only copies


def copies_folder(cache_folder: Path) -> Path:
    """The folder of the copies, which may not exist."""
    return cache_folder / _FOLDER


def made_folder(settings: Settings) -> Path:
    """The folder of the copies, created if needed, for this user alone.

    Raises:
        StorageFailed: it cannot be created, or is not this user's own.
    """
    folder = copies_folder(settings.cache_folder)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise _refused(folder, str(error.strerror)) from error
    require_own(folder)
    return folder


def require_own(folder: Path) -> None:
    """Refuses a folder of copies that others could have put files into. What they may only read is
    closed to them.

    Raises:
        StorageFailed: it is a link, another user's, or others may write to it.
    """
    try:
        # The descriptor stays with the folder that is checked.
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        why = "it is a link" if folder.is_symlink() else str(error.strerror)
        raise _refused(folder, why) from error
    try:
        status = os.fstat(opened)
        if status.st_uid != os.getuid():
            raise _refused(folder, f"it belongs to the user with the id {status.st_uid}")
        mode = stat.S_IMODE(status.st_mode)
        if mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise _refused(folder, f"others may write to it (mode {mode:04o})")
        if mode & (stat.S_IRWXG | stat.S_IRWXO):
            os.fchmod(opened, 0o700)
    finally:
        os.close(opened)


def _refused(path: Path, why: str) -> StorageFailed:
    return StorageFailed(
        f"The cache {path} is not used: {why}.",
        remedy="Remove it, or set another cache_folder, which belongs to this user alone.",
    )


def table_prefix(storage: Storage) -> str:
    """The prefix of the names of all copies of the table's entries."""
    return f"{hashlib.sha256(storage.uri.encode()).hexdigest()[:16]}-"


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Keeps other processes from evicting copies, beginning a copy or listing copies within the
    block.

    Raises:
        StorageFailed: the lock is a link, or another user's.
    """
    path = folder.parent / _LOCK
    try:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        why = "it is a link" if error.errno == errno.ELOOP else str(error.strerror)
        raise _refused(path, why) from error
    try:
        if os.fstat(lock).st_uid != os.getuid():  # who could keep it locked
            raise _refused(path, "it belongs to another user")
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


@contextmanager
def in_use(copy: Path, length: int) -> Iterator[bool]:
    """Protects a copy of that length from eviction within the block; False if there is none."""
    with locked(copy, fcntl.LOCK_SH) as is_locked:
        status = status_of(copy)
        usable = is_locked and status is not None and status.st_size == length
        if usable:
            with suppress(FileNotFoundError):  # just erased, which no lock prevents
                os.utime(copy)  # just used: the last to be evicted
        yield usable


@contextmanager
def locked(path: Path, kind: int) -> Iterator[bool]:
    """Locks the file within the block; False if it does not exist, is a link, or (``LOCK_NB``) if
    another process holds a conflicting lock."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ELOOP):
            raise
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
    """Deletes the least recently used copies, of any table, until `length` more bytes fit into the
    cache's limit. Call it only while `alone_in` the folder. Copies being made or opened stay, so
    the cache can exceed its limit for a moment.

    Args:
        but: Another copy to keep.
    """
    copies = [
        (copy, status) for copy in copies_in(folder) if (status := status_of(copy)) is not None
    ]
    used_bytes = sum(bytes_of(copy, status) for copy, status in copies)
    excess = used_bytes + length - settings.cache_max_mb * 2**20
    for copy, status in sorted(copies, key=lambda each: each[1].st_mtime):
        if excess <= 0:
            return
        if copy != but and _deleted_if_idle(copy):
            excess -= bytes_of(copy, status)


def copies_in(folder: Path) -> list[Path]:
    """All copies, of any table, including those in the making."""
    suffixes = (WHOLE_SUFFIX, PART_SUFFIX, BLOCKS_SUFFIX)
    return [path for suffix in suffixes for path in folder.glob(f"*{suffix}")]


def bytes_of(copy: Path, status: os.stat_result) -> int:
    """The copy's size on disk; for one with gaps, less than its length."""
    if copy.suffix == BLOCKS_SUFFIX:
        return min(status.st_size, status.st_blocks * 512)
    return status.st_size


def status_of(path: Path) -> os.stat_result | None:
    """The file's status; None if another process has deleted it."""
    try:
        return path.stat()
    except FileNotFoundError:
        return None


def _deleted_if_idle(path: Path) -> bool:
    with locked(path, fcntl.LOCK_EX | fcntl.LOCK_NB) as is_locked:
        if is_locked:
            path.unlink(missing_ok=True)
        return is_locked
