"""Locates record keys in one file slice: the slice is read as for a query with an IN on the key,
and the keys of its rows are matched with the search keys.

Base files are ruled out by the range of their keys, and before a scan by Hudi's Bloom filter. An
update in a log file does not move a key: its location is the row of the base file, even if a log
file deletes it, since Hudi's own look-ups send its next version there. A key that only log files
hold has a location without row id.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from hudi_index_parquet import read_columns

from hudi_index_service.arrow import numbers_array, scalar, truths_array
from hudi_index_service.hudi.snapshot import BaseFile
from hudi_index_service.optimizer.decide import bloom_filter_pays, most_keys_by_index
from hudi_index_service.optimizer.plan import Access, SlicePlan
from hudi_index_service.read.base_file.record_keys import (
    NO_NUMBERS,
    KeysAt,
    Numbers,
    RecordKeys,
    rows_with,
)
from hudi_index_service.read.base_file.row_reader import positions
from hudi_index_service.read.keys.bloom_filter import KeyFilter
from hudi_index_service.read.keys.key_range import FirstKeys
from hudi_index_service.read.keys.rows_of_slices import LOCATIONS, KeysLocated, RowsOfSlices
from hudi_index_service.read.keys.searched_slice import SearchedSlice
from hudi_index_service.read.slices.slice_reader import SliceReader
from hudi_index_service.read.statistics import SliceStatistics

log = logging.getLogger(__name__)

_ROWS_OF_SMALL_FILE = 65_536
_FILES_AT_ONCE = 32  # of small ones


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
        self, plan: SlicePlan, search_keys: pa.StringArray, statistics: SliceStatistics
    ) -> pa.Table:
        """The locations (`LOCATIONS`) of the given keys that the slice holds.

        Args:
            plan: The slice with the entries that may serve its base file; it may have log files.
            search_keys: Distinct keys without NULL.

        Raises:
            FileNotFoundError: a file of the slice is gone.
            TableFeatureUnsupported: the slice cannot be read without Spark.
        """
        return self._located(plan, search_keys, statistics)[1]

    def locate_all(
        self, slices: Iterable[SearchedSlice], search_keys: pa.StringArray
    ) -> Iterator[KeysLocated]:
        """The locations of the given keys in many slices: by index where only few of them may be in
        a base file, otherwise by reading the keys of the files, which are matched for many files at
        a time. Arguments and errors as for `locate`."""
        rows, first_keys = RowsOfSlices(search_keys), FirstKeys(search_keys)
        small_files: list[SearchedSlice] = []
        for each in slices:
            if each.file_slice.log_files:
                plan = each.plan()
                yield self._located(plan, search_keys, _statistics(plan))
                continue
            possible = self._possible(each, search_keys, first_keys)
            if possible is not None:
                if len(possible):
                    keys, plan = search_keys.take(numbers_array(possible)), each.plan()
                    positions, locations = self._located(plan, keys, _statistics(plan))
                    yield possible[positions], locations
                continue
            if not self._is_small(each, search_keys):
                yield from self._collected(each.plan(), rows)
                continue
            small_files.append(each)
            if len(small_files) == _FILES_AT_ONCE:
                yield from self._collected_together(small_files, rows)
                small_files = []
        yield from self._collected_together(small_files, rows)
        yield rows.located()

    def _is_small(self, searched: SearchedSlice, search_keys: pa.StringArray) -> bool:
        """Whether the keys of all rows are read, which are so few that a call for each file would
        take longer than reading them. The file has an entry: the build of it has checked it."""
        return (
            self.reader.table.storage.is_local
            and self.keys.stored
            and searched.rows is not None
            and searched.rows <= _ROWS_OF_SMALL_FILE
            and not bloom_filter_pays(searched.rows)
            and len(search_keys) > most_keys_by_index(searched.rows)
        )

    def _collected_together(
        self, slices: Sequence[SearchedSlice], rows: RowsOfSlices
    ) -> Iterator[KeysLocated]:
        """Collects the rows of small files that have been read by one call; yields the locations of
        their keys once they are many."""
        storage, base_files = self.reader.table.storage, [_base_file(each) for each in slices]
        paths = [(storage.local_path(each.path), each.size) for each in base_files]
        read = None
        try:
            read = read_columns(paths, self.keys.columns.names) if paths else None
        except (OSError, ValueError) as error:  # reading it alone reports it, or reads it by Arrow
            log.info("One of %d files cannot be read by row: %s", len(paths), error)
        if read is None or read[0].schema.types != self.keys.columns.types:
            for each in slices:
                yield from self._collected(each.plan(), rows)
            return
        batch, counts = read
        rows.add_files([each.file_slice for each in slices], counts, self.keys.of(batch))
        if rows.are_many:
            yield rows.located()

    def _collected(self, plan: SlicePlan, rows: RowsOfSlices) -> Iterator[KeysLocated]:
        """The same of one file of any size."""
        for row_ids, row_keys in self._candidates(plan, rows.search_keys, _statistics(plan)):
            rows.add(plan.file_slice, row_ids, row_keys)
            if rows.are_many:
                yield rows.located()

    def _located(
        self, plan: SlicePlan, search_keys: pa.StringArray, statistics: SliceStatistics
    ) -> KeysLocated:
        file_slice, base_file = plan.file_slice, plan.file_slice.base_file
        key_positions, rows = NO_NUMBERS, NO_NUMBERS
        if base_file is not None:
            key_positions, rows = self._in_base_file(plan, search_keys, statistics)
        row_ids, deleted = numbers_array(rows), np.zeros(len(rows), dtype=bool)
        if file_slice.log_files and (
            self.find_deleted or len(np.unique(key_positions)) < len(search_keys)
        ):
            live_positions = self._after_merging(plan, search_keys)
            log_only = np.setdiff1d(live_positions, key_positions)
            row_ids = pa.concat_arrays([row_ids, pa.nulls(len(log_only), pa.int64())])
            deleted = np.append(
                ~np.isin(key_positions, live_positions), np.zeros(len(log_only), dtype=bool)
            )
            key_positions = np.append(key_positions, log_only)
        statistics.rows_returned = len(key_positions)
        instant = None if base_file is None else base_file.instant
        slice_values = (file_slice.partition, file_slice.file_id, instant)
        return key_positions, pa.table(
            [
                search_keys.take(numbers_array(key_positions)),
                *(
                    pa.repeat(scalar(each, pa.string()), len(key_positions))
                    for each in slice_values
                ),
                row_ids,
                truths_array(deleted),
            ],
            schema=LOCATIONS,
        )

    def _in_base_file(
        self, plan: SlicePlan, search_keys: pa.StringArray, statistics: SliceStatistics
    ) -> tuple[Numbers, Numbers]:
        """Positions in `search_keys` of the keys found, and the row id of each."""
        searched = SearchedSlice.of(plan, self.keys)
        possible = self._possible(searched, search_keys, FirstKeys(search_keys))
        if possible is None or len(possible) == len(search_keys):
            statistics.keys = len(search_keys)
            return rows_with(self._candidates(plan, search_keys, statistics), search_keys)
        statistics.keys = len(possible)
        if not len(possible):
            statistics.access = Access.SKIP
            statistics.note = "no key lies between its least and greatest key"
            return NO_NUMBERS, NO_NUMBERS
        possible_keys = search_keys.take(numbers_array(possible))
        key_positions, rows = rows_with(
            self._candidates(plan, possible_keys, statistics), possible_keys
        )
        return possible[key_positions], rows

    def _possible(
        self, searched: SearchedSlice, search_keys: pa.StringArray, first_keys: FirstKeys
    ) -> Numbers | None:
        """Positions in `search_keys` of the keys that may lie in the range of the base file's keys.
        None for all: the range is not known, or among the first keys there are already so many
        that the keys of all rows are read."""
        if searched.within is None or searched.rows is None:
            return None
        most = most_keys_by_index(searched.rows)
        if first_keys.within(searched.within, 4 * most) > most:
            return None
        return np.flatnonzero(searched.within.holds(search_keys))

    def _candidates(
        self, plan: SlicePlan, search_keys: pa.StringArray, statistics: SliceStatistics
    ) -> Iterator[KeysAt]:
        """The rows of the base file that may have these keys."""

        def may_hold_any(metadata: Mapping[bytes, bytes] | None) -> bool:
            if KeyFilter.of_footer(metadata).may_hold_any(search_keys):
                return True
            statistics.note = "its Bloom filter has none of the keys"
            return False

        narrowing = self.keys.narrowing(plan, search_keys)
        statistics.access = Access.SCAN if narrowing is None else Access.INDEX
        reader = replace(
            self.reader,
            query=replace(self.reader.query, normal_form=narrowing),
            # Other slices were searched for other keys, so their results do not apply here.
            footer_check=may_hold_any if self._filters_pay(plan) else None,
        )
        plan = replace(plan, access=statistics.access)
        for rows, batch, _ in reader.candidates(plan, statistics):
            statistics.rows_checked += batch.num_rows
            yield positions(rows), self.keys.of(batch)

    def _filters_pay(self, plan: SlicePlan) -> bool:
        """Whether the Bloom filter in the footer of the base file is worth reading."""
        # Hudi fills the filter only if rows store their keys.
        return self.keys.stored and (not plan.entries or bloom_filter_pays(plan.total))

    def _after_merging(self, plan: SlicePlan, search_keys: pa.StringArray) -> Numbers:
        """Positions in `search_keys` of the keys that the slice has after merging its log files."""
        batches = self.reader.merged(plan)
        keys = ((np.zeros(batch.num_rows, np.int64), self.keys.of(batch)) for batch in batches)
        return rows_with(keys, search_keys)[0]


def _statistics(plan: SlicePlan) -> SliceStatistics:
    return SliceStatistics(plan.file_slice.name, plan.access)


def _base_file(searched: SearchedSlice) -> BaseFile:
    base_file = searched.file_slice.base_file
    assert base_file is not None, "only slices with log files lack a base file"
    return base_file
