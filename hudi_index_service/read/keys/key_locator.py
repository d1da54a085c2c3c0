"""Locates record keys in slices: the rows that may have one of the keys are found, their keys are
read, and one join of all these rows with the search keys gives the locations.

The rows are found in one of three ways. Of local base files of which few keys are sought, one call
asks all entries, and one reads the keys of the rows. Of small ones of which many are, the keys of
all rows are read, of many files by one call. All other slices, and those of which anything goes
wrong, are read one by one as for a query with an IN on the key: by index if that pays, else by a
scan, unless Hudi's Bloom filter rules it out.

An update in a log file does not move a key: its location is the row of the base file, even if a log
file deletes it, since Hudi's own look-ups send its next version there. A key that only log files
hold has a location without row id.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter_ns
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from hudi_index_parquet import FileRows, read_columns, read_files

from hudi_index_service.arrow import numbers_array, texts_array, truths_array
from hudi_index_service.cancellation import check
from hudi_index_service.errors import EntryUnusable
from hudi_index_service.hudi.snapshot import BaseFile
from hudi_index_service.index.contract import Answer
from hudi_index_service.index.metadata.segments.segment import ColumnKey
from hudi_index_service.index.routed import Routed
from hudi_index_service.optimizer.decide import bloom_filter_pays, most_keys_by_index
from hudi_index_service.optimizer.plan import Access, SlicePlan
from hudi_index_service.optimizer.serving import ServingEntry
from hudi_index_service.predicate.expression import BoundColumn, In
from hudi_index_service.read.base_file.kept_pages import kept_pages
from hudi_index_service.read.base_file.key_join import KeyJoin, Numbers
from hudi_index_service.read.base_file.record_keys import RecordKeys
from hudi_index_service.read.base_file.row_reader import FIRST_PAGE, positions, row_positions
from hudi_index_service.read.keys.bloom_filter import KeyFilter
from hudi_index_service.read.keys.key_routes import PARTITION, KeyRoutes, SoughtKeys
from hudi_index_service.read.parallel import mapped
from hudi_index_service.read.slices.many_entries import RowsOfOpen, listed_rows
from hudi_index_service.read.slices.slice_reader import SliceReader
from hudi_index_service.read.statistics import ReadStatistics, SliceStatistics

log = logging.getLogger(__name__)

_File = TypeVar("_File")
_Read = TypeVar("_Read", bound=tuple[Any, ...])

_FILES_AT_ONCE = 32  # of small ones
_LOG_ONLY = -1

PLACE = "place"

LOCATIONS = pa.schema(
    [
        (PLACE, pa.int64()),
        (PARTITION, pa.string()),
        ("file_id", pa.string()),
        ("instant", pa.string()),
        ("row_id", pa.int64()),
        ("deleted", pa.bool_()),
    ]
)
"""The columns of each key found. ``place``: the position of the key in the search keys.
``deleted``: whether a log file is known to delete the row."""


@dataclass(frozen=True, slots=True)
class _Job:
    """The search of one slice, of which `number` is the number in the snapshot."""

    number: int
    plan: SlicePlan
    sought: SoughtKeys

    @property
    def has_logs(self) -> bool:
        """Whether it has log files, which can hold any key."""
        return bool(self.plan.file_slice.log_files)

    @property
    def file(self) -> BaseFile:
        """The base file."""
        return self.plan.file_slice.base_file


@dataclass(frozen=True, slots=True)
class KeyLocator:
    """Finds record keys in the slices of one snapshot.

    Attributes:
        reader: Reads the slices; its query is for the columns of the keys, without predicate.
        keys: The table's record keys.
        find_deleted: Whether to find the rows that log files delete, at the cost of a merge.
    """

    reader: SliceReader
    keys: RecordKeys
    find_deleted: bool

    def locate(
        self,
        slices: Mapping[int, SlicePlan],
        routes: KeyRoutes,
        statistics: ReadStatistics,
        threads: int = 1,
    ) -> pa.Table:
        """The locations (`LOCATIONS`) of keys in slices.

        Args:
            slices: Number → the slice with the entries that may serve its base file; it may have
                log files.
            routes: The keys, and which base files may hold them.
            statistics: Of these slices.
            threads: How many threads may read slices.

        Raises:
            FileNotFoundError: a file of a slice is gone.
            TableFeatureUnsupported: a slice cannot be read without Spark.
        """
        join = KeyJoin(routes.search_keys, 3)
        by_index, small, others = list[_Job](), list[_Job](), list[_Job]()
        is_local, cheaper = self.reader.table.storage.is_local, self.reader.cheaper
        for number, plan in slices.items():
            job = _Job(number, plan, routes.of_slice(number, plan))
            if job.has_logs:
                others.append(job)
            elif not len(job.sought):
                statistics.begin(number).access = Access.SKIP
            elif not plan.entries or not is_local:
                others.append(job)
            elif len(job.sought) <= most_keys_by_index(plan.total) and not (
                self.keys.stored and cheaper.stays_unopened(plan)
            ):
                by_index.append(job)
            elif self.keys.stored and not bloom_filter_pays(plan.total):
                small.append(job)  # the build of its entry has checked it
            else:
                others.append(job)
        others += self._by_index(by_index, statistics, join)
        for first in range(0, len(small), _FILES_AT_ONCE):
            check()
            others += self._by_file(small[first : first + _FILES_AT_ONCE], statistics, join)
        others.sort(key=lambda job: job.number)

        def work(job: _Job) -> None:
            self._by_itself(job, routes, statistics.begin(job.number), join)

        mapped(work, others, threads, may_be_fast=is_local)
        return _locations(join, slices, statistics)

    # --- many slices at once ---------------------------------------------------------------------

    def _by_index(
        self, jobs: Iterable[_Job], statistics: ReadStatistics, join: KeyJoin
    ) -> list[_Job]:
        """Searches slices with entries for few keys each; returns those that are left."""
        left: list[_Job] = []
        layouts: dict[tuple[ColumnKey, str, int], list[tuple[_Job, ServingEntry]]] = {}
        for job in jobs:
            values = job.sought.values
            servings = (each for each in job.plan.entries if values.column[0] in each.names)
            serving = None if len(values.anywhere) else next(servings, None)
            if serving is None:
                left.append(job)
            else:
                layout = values.column, serving.index_type.name, serving.layout
                layouts.setdefault(layout, []).append((job, serving))
        for members in layouts.values():
            found: list[_Found] = []
            for (job, _), rows in zip(members, self._found(members), strict=True):
                if rows is None:
                    left.append(job)
                else:
                    found.append((job, rows))
            for group in _portions(found):
                left += self._read(group, statistics, join)
        return left

    def _found(self, members: Sequence[tuple[_Job, ServingEntry]]) -> Sequence[RowsOfOpen | None]:
        """The rows in entries of one layout that may have one of the keys."""
        pool, values = self.reader.pool, members[0][0].sought.values
        servings = [serving for _, serving in members]
        leaf = In(BoundColumn(values.column[0], values.values.type), values.values)
        if servings[0].answer(leaf) is Answer.NONE:
            return [None] * len(members)
        opened = pool.open_paths
        for serving in servings:
            if serving.entry.data_path not in opened:
                try:
                    with pool.lease(serving):
                        pass
                except EntryUnusable as error:  # looking up the slice by itself reports it
                    log.info("%s is not asked with others: %s", serving.entry.folder, error)
        counts = np.array([len(job.sought.positions) for job, _ in members], dtype=np.int32)
        ends = np.cumsum(counts, dtype=np.int32)
        every = np.concatenate([job.sought.positions for job, _ in members], dtype=np.int32)
        return listed_rows(leaf, servings, Routed(every, ends - counts, ends), pool)

    def _read(
        self, group: Sequence["_Found"], statistics: ReadStatistics, join: KeyJoin
    ) -> list[_Job]:
        """Reads the keys of rows that were found; returns the slices that are left."""
        storage, started = self.reader.table.storage, perf_counter_ns()
        row_ids = [row_positions(listed.rows) for _, listed in group]
        files = [
            FileRows(
                listed.entry.bounds.footer, storage.local_name(job.file.path), ids, job.file.size
            )
            for (job, listed), ids in zip(group, row_ids, strict=True)
        ]
        read = self._key_columns(partial(read_files, pages=kept_pages()), files)
        if read is None:
            return [job for job, _ in group]
        batch, did = read.rows, read.stats
        numbers = np.repeat([job.number for job, _ in group], [len(each) for each in row_ids])
        _add(join, self.keys.of(batch), numbers, np.concatenate(row_ids))
        ms = (perf_counter_ns() - started) / 1e6 / len(group)
        for (job, listed), stats in zip(group, did, strict=True):
            each = statistics.begin(job.number)
            each.access, each.keys = Access.INDEX, len(job.sought.positions)
            each.candidates = each.rows_checked = len(listed.rows)
            each.lookup_ms, each.ms = listed.ms, listed.ms + ms
            each.add_read(stats)
        return []

    def _by_file(
        self, jobs: Sequence[_Job], statistics: ReadStatistics, join: KeyJoin
    ) -> list[_Job]:
        """Reads the keys of all rows of small files; returns the slices that are left."""
        storage = self.reader.table.storage
        paths = [(storage.local_path(job.file.path), job.file.size) for job in jobs]
        read = self._key_columns(read_columns, paths)
        if read is None:
            return list(jobs)
        batch, counts = read
        rows = np.concatenate([np.arange(count) for count in counts])
        numbers = np.repeat([job.number for job in jobs], counts)
        _add(join, self.keys.of(batch), numbers, rows)
        for job, count in zip(jobs, counts, strict=True):
            each = statistics.begin(job.number)
            each.access, each.keys, each.rows_checked = Access.SCAN, len(job.sought), count
        return []

    def _key_columns(
        self,
        read: Callable[[list[_File], list[str]], _Read | None],
        files: list[_File],
    ) -> _Read | None:
        """The key columns of many files, and what else reading them returns; None if each file has
        to be read by itself."""
        try:
            found = read(files, self.keys.columns.names)
        except (OSError, ValueError) as error:  # reading it by itself reports it
            log.info("One of %d files cannot be read by row: %s", len(files), error)
            return None
        is_known = found is not None and found[0].schema.types == self.keys.columns.types
        return found if is_known else None

    # --- one slice -------------------------------------------------------------------------------

    def _by_itself(
        self, job: _Job, routes: KeyRoutes, statistics: SliceStatistics, join: KeyJoin
    ) -> None:
        """Searches one slice."""
        plan, number = job.plan, job.number
        if not job.has_logs:
            for rows, row_keys in self._candidates(job, routes, statistics):
                _add(join, row_keys, np.full(len(rows), number), rows)
            return
        keys = routes.keys_at(routes.of_partition(plan.file_slice.partition))
        in_base_file, merged = KeyJoin(keys, 1), KeyJoin(keys, 0)
        if len(job.sought):
            for rows, row_keys in self._candidates(job, routes, statistics):
                in_base_file.add(row_keys, rows)
        places, rows = in_base_file.found()
        deleted = np.zeros(len(rows), dtype=bool)
        if self.find_deleted or len(np.unique(places)) < len(keys):
            for batch in self.reader.merged(plan):
                merged.add(self.keys.of(batch))
            (live,) = merged.found()
            log_only = np.setdiff1d(live, places)
            deleted = np.append(~np.isin(places, live), np.zeros(len(log_only), dtype=bool))
            places = np.append(places, log_only)
            rows = np.append(rows, np.full(len(log_only), _LOG_ONLY))
        row_keys = keys.take(numbers_array(places))
        _add(join, row_keys, np.full(len(rows), number), rows, deleted)

    def _candidates(
        self, job: _Job, routes: KeyRoutes, statistics: SliceStatistics
    ) -> Iterator[tuple[Numbers, pa.StringArray]]:
        """The rows of the base file that may have one of the keys sought, and the key of each."""
        plan, keys = job.plan, routes.keys_at(job.sought.keys)
        statistics.keys = len(keys)

        def may_hold_any(metadata: Mapping[bytes, bytes] | None) -> bool:
            if KeyFilter.of_footer(metadata).may_hold_any(keys):
                return True
            statistics.note = "its Bloom filter has none of the keys"
            return False

        narrowing = self.keys.narrowing(plan, keys)
        statistics.access = Access.SCAN if narrowing is None else Access.INDEX
        # Hudi fills the filter only if rows store their keys.
        filters_pay = self.keys.stored and (not plan.entries or bloom_filter_pays(plan.total))
        reader = replace(
            self.reader,
            query=replace(self.reader.query, normal_form=narrowing),
            footer_check=may_hold_any if filters_pay else None,
        )
        plan = plan._replace(access=statistics.access)
        for rows, batch, _ in reader.candidates(plan, statistics):
            statistics.rows_checked += batch.num_rows
            yield positions(rows), self.keys.of(batch)


_Found = tuple[_Job, RowsOfOpen]
"""A slice, and the rows of its base file that may have one of the keys."""


def _portions(found: Sequence[_Found]) -> Iterator[Sequence[_Found]]:
    """Slices of which one call reads the keys."""
    start = rows = 0
    for end, (_, listed) in enumerate(found, 1):
        rows += len(listed.rows)
        if rows >= FIRST_PAGE or end == len(found):
            yield found[start:end]
            start, rows = end, 0


def _add(
    join: KeyJoin,
    row_keys: pa.StringArray,
    numbers: Numbers,
    rows: Numbers,
    deleted: npt.NDArray[np.bool_] | None = None,
) -> None:
    join.add(row_keys, numbers, rows, np.zeros(len(rows), bool) if deleted is None else deleted)


def _locations(
    join: KeyJoin, slices: Mapping[int, SlicePlan], statistics: ReadStatistics
) -> pa.Table:
    """The locations of the rows that have one of the search keys."""
    keys, numbers, rows, deleted = join.found()
    searched, of_rows, counts = np.unique(numbers, return_inverse=True, return_counts=True)
    for number, count in zip(searched.tolist(), counts.tolist(), strict=True):
        statistics.begun[number].rows_returned = count
    found = [slices[number].file_slice for number in searched.tolist()]
    columns = (
        [each.partition for each in found],
        [each.file_id for each in found],
        [each.base_file.instant for each in found],
    )
    return pa.table(
        [
            numbers_array(keys),
            *(texts_array(each, pa.string()).take(numbers_array(of_rows)) for each in columns),
            numbers_array(rows, rows == _LOG_ONLY),
            truths_array(deleted.astype(bool)),
        ],
        schema=LOCATIONS,
    )
