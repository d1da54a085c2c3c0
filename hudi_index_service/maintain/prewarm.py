"""Makes a table's next queries in this process fast: opens entries, which hold the footers of their
base files, and keeps pages of columns in memory.

Nothing that queries keep is given up for it: it stops where entries or pages do not fit any more,
the newest base files first.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from hudi_index_parquet import PageCache, ParquetReadError

from hudi_index_service.build.run import Progress
from hudi_index_service.build.scope import base_files_in_scope
from hudi_index_service.cancellation import check
from hudi_index_service.errors import EntryUnusable
from hudi_index_service.hudi.table import HudiTable
from hudi_index_service.optimizer.plan import SlicePlan
from hudi_index_service.optimizer.serving import ServingEntry
from hudi_index_service.read.base_file.kept_pages import budget, kept_pages
from hudi_index_service.read.base_file.row_reader import RowReader
from hudi_index_service.read.parallel import mapped, waiting
from hudi_index_service.read.queries import TableQueries
from hudi_index_service.read.query import Query
from hudi_index_service.read.slices.reader_pool import ReaderPool
from hudi_index_service.read.slices.slice_entries import SliceEntries, warn_of
from hudi_index_service.wording import counted

_AT_ONCE = 64
"""Base files between two calls of a `Progress`."""

_FULL = 0.75
"""Of the page cache, whose parts fill unevenly. Pages take somewhat more than their plain bytes."""


@dataclass(slots=True)
class Prewarmed:
    """What `IndexedTable.prewarm` has made ready.

    Attributes:
        instant: The snapshot's; "" for a table without commits.
        base_files: Base files of the partitions.
        covered: Those that have an entry. Others are scanned, which keeps nothing.
        entries: Their entries that are open now…
        opened: … and those of them that were not before.
        files: Base files whose pages of the columns are kept now.
        pages: Their data pages that were read for it.
        bytes: The bytes read, as in the files.
        kept_bytes: The size of all that the process's page cache keeps.
        entries_left_out: Entries that do not fit `read.open_mb`, nor the files that a process may
            open.
        files_left_out: Base files whose pages do not fit `read.page_cache_mb`, or are never kept:
            those of remote stores, and of nested columns.
        unusable: Entries that cannot be used; the log says why.
    """

    instant: str = ""
    base_files: int = 0
    covered: int = 0
    entries: int = 0
    opened: int = 0
    files: int = 0
    pages: int = 0
    bytes: int = 0
    kept_bytes: int = 0
    entries_left_out: int = 0
    files_left_out: int = 0
    unusable: int = 0

    @property
    def left_out(self) -> int:
        """The number of all entries and files that were left out."""
        return self.entries_left_out + self.files_left_out + self.unusable

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)

    def __str__(self) -> str:
        left_out = [
            f"{counted(number, what)} left out"
            for number, what in (
                (self.entries_left_out, "entry"),
                (self.files_left_out, "file"),
                (self.unusable, "unusable entry"),
            )
            if number
        ]
        ready = [f"{counted(self.entries, 'entry')} open"]
        ready += [f"pages of {counted(self.files, 'base file')} kept"] if self.files else []
        return ", ".join([*ready, *left_out])


def prewarm(
    table: HudiTable,
    queries: TableQueries,
    columns: Sequence[str],
    partitions: Sequence[str] | None,
    progress: Progress | None = None,
) -> Prewarmed:
    """Opens the entries of the latest snapshot, and reads the pages of some columns.

    Args:
        columns: See `Binding`.
        partitions: See `partitions_in_scope`; None for all.

    Raises:
        ColumnNotFound, ConfigInvalid: there is no such column or partition.
        TableFeatureUnsupported: the table cannot be read completely here.
        QueryCancelled: it is not wanted any more. What was made ready stays so.
    """
    base_files = queries.planner.base_files()
    snapshot = base_files.snapshot
    query = queries.binding(None, columns).to(snapshot.schema)
    chosen = base_files_in_scope(table, snapshot.base_files(), None, partitions)
    paths = {each.path for each in chosen}
    among = [n for n, each in enumerate(snapshot.slices) if each.base_file.path in paths]
    plan = queries.planner.base_file_entries(base_files, among)
    covered = [plan.slices[number] for number in among if plan.slices[number].entries]
    covered.sort(key=lambda each: each.file_slice.base_file.instant, reverse=True)
    done = Prewarmed(snapshot.instant, len(among), len(covered))
    fitting = _fitting(covered, queries.pool, done)
    warming = _Warming(table, queries, query, done)
    for start in range(0, len(fitting), _AT_ONCE):
        warming.warm(fitting[start : start + _AT_ONCE])
        if progress is not None:
            progress(min(start + _AT_ONCE, len(fitting)), len(fitting))
    pages = kept_pages()
    done.kept_bytes = 0 if pages is None else pages.bytes
    return done


def _fitting(slices: Sequence[SlicePlan], pool: ReaderPool, done: Prewarmed) -> Sequence[SlicePlan]:
    """The first slices, as many as have room for their entries beside those that are open."""
    entries, size = pool.room()
    for number, each in enumerate(slices):
        closed = [serving for serving in each.entries if not pool.is_open(serving)]
        entries -= len(closed)
        size -= sum(map(_length, closed))
        if entries < 0 or size < 0:
            done.entries_left_out = sum(len(left.entries) for left in slices[number:])
            return slices[:number]
    return slices


def _length(serving: ServingEntry) -> int:
    return serving.entry.manifest.data.length


@dataclass(slots=True)
class _Warming:
    table: HudiTable
    queries: TableQueries
    query: Query
    done: Prewarmed
    is_full: bool = False

    def warm(self, slices: Sequence[SlicePlan]) -> None:
        """Opens the entries of some slices, several at once, and then reads their pages."""
        settings, is_local = self.queries.pool.settings, self.table.storage.is_local
        most = waiting(settings.read.parallelism, is_local=is_local)
        opened = mapped(self._opened, slices, most, may_be_fast=is_local)
        done, cache = self.done, kept_pages() if is_local else None
        for plan, (usable, before, reader) in zip(slices, opened, strict=True):
            done.entries += usable
            done.opened += usable - before
            done.unusable += len(plan.entries) - usable
            if self.query.output.names:
                check()
                is_kept = cache is not None and reader and self._keep(reader, cache)
                done.files += bool(is_kept)
                done.files_left_out += not is_kept

    def _opened(self, plan: SlicePlan) -> tuple[int, int, RowReader | None]:
        """How many entries of a slice are open now, how many of them were before, and what reads
        its rows, as queries do; None if no entry can be used."""
        pool, storage = self.queries.pool, self.table.storage
        before, usable = 0, list[ServingEntry]()
        for serving in plan.entries:
            was_open = pool.is_open(serving)
            try:
                with pool.lease(serving):
                    usable.append(serving)
                    before += was_open
            except EntryUnusable as error:
                warn_of(error, f"{serving.entry.folder} is not opened ahead")
        if not usable:
            return 0, 0, None
        needed, base_file = self.query.needed, plan.file_slice.base_file
        with SliceEntries.leased(plan._replace(entries=tuple(usable)), pool) as entries:
            reader = entries.stored_rows(storage, needed)
            reader = reader or RowReader(storage, base_file, entries.footer(), needed)
        return len(usable), before, reader

    def _keep(self, reader: RowReader, cache: PageCache) -> bool:
        """Reads a file's pages; returns whether they are kept now. Once the pages of one do not
        fit, none are read any more."""
        before, kept = cache.bytes, 0
        try:
            starts = np.array(reader.footer.page_starts(reader.present), dtype=np.int64)
            size = reader.plan(starts).plain_bytes if len(starts) else 0
            self.is_full = self.is_full or before + size > _FULL * budget()
            if self.is_full:
                return False
            for read in reader.batches(range(reader.footer.rows)):
                kept += read.did.kept
                self.done.pages += read.did.pages - read.did.kept
                self.done.bytes += read.did.bytes
        except ParquetReadError:
            return False  # a query that needs the file says why
        return bool(kept) or cache.bytes > before
