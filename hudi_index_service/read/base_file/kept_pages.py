"""The opened pages of local base files that this process keeps for later queries.

A child that was forked begins with none: what its parent kept may be half changed.
"""

import os
from collections.abc import Sequence
from functools import cache

from hudi_index_parquet import Footer, PageCache, ParquetReadError

from hudi_index_service.config import settings
from hudi_index_service.hudi.snapshot import BaseFile
from hudi_index_service.process import control_group_limits
from hudi_index_service.storage.store import Storage

_MIB = 2**20
_DEFAULT = 256 * _MIB
_SHARE_OF_MEMORY = 16
_SHARE_OF_TASK = 10

_runs_tasks = False


@cache
def kept_pages() -> PageCache | None:
    """The process's cache; None if it keeps no pages."""
    size = budget()
    return PageCache(size) if size else None


def column_sizes(
    storage: Storage, base_file: BaseFile, footer: Footer, columns: Sequence[str]
) -> list[tuple[int, int]] | None:
    """For each column the bytes of its pages that are not kept, and of all its pages before
    compression; None for a remote base file, or one that cannot be read.

    Raises:
        FileNotFoundError: the base file is gone.
    """
    if not storage.is_local:
        return None
    path = storage.local_name(base_file.path)
    try:
        return footer.column_bytes(path, columns, size=base_file.size, pages=kept_pages())
    except ParquetReadError:  # reading it reports it
        return None


@cache
def budget() -> int:
    """The size of the cache in bytes."""
    chosen = settings().read.page_cache_mb
    if chosen is None:
        shares = [limit // _SHARE_OF_MEMORY for limit in control_group_limits()]
        size = min([_DEFAULT, *shares])
    else:
        size = chosen * _MIB
    return size // _SHARE_OF_TASK if _runs_tasks else size


def keep_less_for_tasks() -> None:
    """Shrinks the cache of a process that runs Spark tasks, many of which run on a host."""
    global _runs_tasks
    if not _runs_tasks:
        forget_pages()
        _runs_tasks = True


def forget_pages() -> None:
    """Begins with an empty cache, of the size that the settings say now."""
    global _runs_tasks
    _runs_tasks = False
    budget.cache_clear()
    kept_pages.cache_clear()


os.register_at_fork(after_in_child=kept_pages.cache_clear)
