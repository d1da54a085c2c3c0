"""Locates record keys in many slices at once. Segments say which keys a base file may hold, one
call asks all open entries for the rows with these keys, and the keys of all such rows are read and
matched together.

It serves local slices without log files of which few keys are wanted, as most slices of a large
table are. All others are left to `KeyLocator`, also those of which anything goes wrong here.
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter_ns

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from hudi_index_parquet import FileRows, ReadStats, read_files
from pyroaring import BitMap

from hudi_index_service.arrow import FALSE, as_truths, numbers_array, texts_array
from hudi_index_service.errors import EntryUnusable
from hudi_index_service.hudi.snapshot import BaseFile
from hudi_index_service.index.contract import Answer
from hudi_index_service.index.routed import Routed
from hudi_index_service.optimizer.decide import most_keys_by_index
from hudi_index_service.optimizer.plan import Access, SlicePlan
from hudi_index_service.optimizer.serving import ServingEntry
from hudi_index_service.predicate.expression import BoundColumn, In
from hudi_index_service.read.base_file.record_keys import Numbers, RecordKeys
from hudi_index_service.read.base_file.row_reader import FIRST_PAGE, row_positions
from hudi_index_service.read.keys.key_routes import KeyValues
from hudi_index_service.read.keys.rows_of_slices import LOCATIONS
from hudi_index_service.read.slices.listed_rows import listed_rows
from hudi_index_service.read.slices.reader_pool import OpenEntry, ReaderPool
from hudi_index_service.read.statistics import SliceStatistics
from hudi_index_service.storage.store import Storage

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SoughtKeys:
    """The keys to look for in slices, by the values of one column.

    Attributes:
        search_keys: Distinct, without NULL.
        values: The keys' values. Each key has no other value.
        numbers: The numbers of slices without log files.
        routed: The positions of the values to look for in each of these slices.
    """

    search_keys: pa.StringArray
    values: KeyValues
    numbers: Numbers
    routed: Routed


@dataclass(frozen=True, slots=True)
class _Found:
    """The rows of one base file that may have one of the keys.

    Attributes:
        keys: The number of keys looked for.
        ms: The milliseconds of the look-up.
    """

    number: int
    entry: OpenEntry
    base_file: BaseFile
    rows: BitMap
    keys: int
    ms: float


@dataclass(frozen=True, slots=True)
class KeysTogether:
    """Locates keys in many slices of a local table at once.

    Attributes:
        keys: The table's record keys.
    """

    storage: Storage
    pool: ReaderPool
    keys: RecordKeys

    def locate(
        self, sought: SoughtKeys, plans: Sequence[SlicePlan]
    ) -> tuple[list[pa.Table], dict[int, SliceStatistics]]:
        """The locations (`LOCATIONS`) of the keys in those slices that are read here, and the
        statistics of each of these slices, by its number.

        Args:
            plans: Of all slices, with the entries that may serve their base files.
        """
        leaf = In(
            BoundColumn(sought.values.column[0], sought.values.values.type), sought.values.values
        )
        by_layout: dict[tuple[str, int], list[tuple[int, ServingEntry]]] = {}
        counts = (sought.routed.ends - sought.routed.starts).tolist()
        for place, number in enumerate(sought.numbers.tolist()):
            plan = plans[number]
            if plan.entries and counts[place] <= most_keys_by_index(plan.total):
                for serving in plan.entries:
                    if leaf.column.name in serving.names:
                        by_layout.setdefault((serving.index_type.name, serving.layout), []).append(
                            (place, serving)
                        )
                        break
        tables: list[pa.Table] = []
        statistics: dict[int, SliceStatistics] = {}
        for members in by_layout.values():
            if members[0][1].answer(leaf) is Answer.NONE:
                continue
            self._open([serving for _, serving in members])
            for group in _portions(self._rows(leaf, members, sought, plans)):
                started = perf_counter_ns()
                read = self._read(group)
                ms = (perf_counter_ns() - started) / 1e6
                if read is not None:
                    batch, did = read
                    table, matching = _located(sought, plans, group, self.keys.of(batch))
                    tables.append(table)
                    statistics |= _statistics(plans, group, did, matching, ms)
        return tables, statistics

    def _open(self, servings: Sequence[ServingEntry]) -> None:
        """Opens the entries that are not open yet; those that cannot be are left out."""
        opened = self.pool.open_paths
        for serving in servings:
            if serving.entry.data_path not in opened:
                try:
                    with self.pool.lease(serving):
                        pass
                except EntryUnusable as error:  # looking up the slice alone reports it
                    log.info("%s is not asked with others: %s", serving.entry.folder, error)

    def _rows(
        self,
        leaf: In,
        members: Sequence[tuple[int, ServingEntry]],
        sought: SoughtKeys,
        plans: Sequence[SlicePlan],
    ) -> list[_Found]:
        """The rows in entries of one layout that may have one of the keys."""
        places = np.array([place for place, _ in members], dtype=np.int64)
        numbers, routed = sought.numbers[places].tolist(), sought.routed.of_files(places)
        counts = (routed.ends - routed.starts).tolist()
        answers = listed_rows(leaf, [each for _, each in members], routed, self.pool)
        found = []
        for number, keys, answer in zip(numbers, counts, answers, strict=True):
            base_file = plans[number].file_slice.base_file
            if answer is not None and base_file is not None:
                found.append(_Found(number, answer.entry, base_file, answer.rows, keys, answer.ms))
        return found

    def _read(self, group: Sequence[_Found]) -> tuple[pa.RecordBatch, list[ReadStats]] | None:
        """The columns of the keys in rows that were found, one file after the other; None if the
        files must be read one by one."""
        files = [
            FileRows(
                each.entry.bounds.footer,
                self.storage.local_name(each.base_file.path),
                row_positions(each.rows),
                each.base_file.size,
            )
            for each in group
        ]
        columns = self.keys.columns
        try:
            read = read_files(files, columns.names)
        except (OSError, ValueError) as error:  # reading it alone reports it, or reads it by Arrow
            log.info("One of %d files cannot be read by row: %s", len(files), error)
            return None
        if read is None or read[0].schema.types != columns.types:
            return None
        return read


def _portions(found: Sequence[_Found]) -> Iterator[list[_Found]]:
    """Files whose rows are read by one call."""
    portion: list[_Found] = []
    rows = 0
    for each in found:
        portion.append(each)
        rows += len(each.rows)
        if rows >= FIRST_PAGE:
            yield portion
            portion, rows = [], 0
    if portion:
        yield portion


def _located(
    sought: SoughtKeys,
    plans: Sequence[SlicePlan],
    group: Sequence[_Found],
    row_keys: pa.StringArray,
) -> tuple[pa.Table, list[int]]:
    """The locations of the keys of rows, and how many there are in each file."""
    places = pc.index_in(row_keys, value_set=sought.search_keys)
    is_sought = as_truths(places.is_valid())
    of_rows = np.repeat(np.arange(len(group)), [len(each.rows) for each in group])[is_sought]
    row_ids = np.concatenate([row_positions(each.rows) for each in group])[is_sought]
    slices = [plans[each.number].file_slice for each in group]
    slice_values = (
        [each.partition for each in slices],
        [each.file_id for each in slices],
        [each.base_file.instant for each in group],
    )
    table = pa.table(
        [
            sought.search_keys.take(places.drop_null()),
            *(texts_array(each, pa.string()).take(numbers_array(of_rows)) for each in slice_values),
            numbers_array(row_ids),
            pa.repeat(FALSE, len(row_ids)),
        ],
        schema=LOCATIONS,
    )
    return table, np.bincount(of_rows, minlength=len(group)).tolist()


def _statistics(
    plans: Sequence[SlicePlan],
    group: Sequence[_Found],
    did: Sequence[ReadStats],
    matching: Sequence[int],
    reading_ms: float,
) -> dict[int, SliceStatistics]:
    """The statistics of each slice, of which so many rows have one of the keys."""
    statistics = {}
    for each, stats, returned in zip(group, did, matching, strict=True):
        name, rows = plans[each.number].file_slice.name, len(each.rows)
        of_slice = SliceStatistics(name, Access.INDEX, candidates=rows, rows_checked=rows)
        of_slice.keys, of_slice.rows_returned = each.keys, returned
        of_slice.lookup_ms = each.ms
        of_slice.ms = each.ms + reading_ms / len(group)
        of_slice.add_read(stats)
        statistics[each.number] = of_slice
    return statistics
