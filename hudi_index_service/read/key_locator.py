"""Where record keys lie in one file slice: by an index on the key, else by the base file's Bloom
filter and a scan of its keys alone.

Rows in log files that replace others do not move a key: its location is the row of the base file,
also where a log file deletes it, for that is where Hudi's own look-ups send its next version. A key
that only log files hold has a location without row id.
"""

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from hudi_index_parquet import Footer, ParquetReadError
from pyroaring import BitMap

from hudi_index_service.columns import root_column
from hudi_index_service.config import Settings
from hudi_index_service.optimizer.access import Reading, cheapest_reading
from hudi_index_service.optimizer.plan import Access, SlicePlan
from hudi_index_service.read.bloom_filter import KeyFilter
from hudi_index_service.read.key_range import KeyRange
from hudi_index_service.read.reader_pool import ReaderPool
from hudi_index_service.read.record_keys import RecordKeys
from hudi_index_service.read.row_ids import matching_rows
from hudi_index_service.read.row_reader import RowReader, row_positions
from hudi_index_service.read.slice_entries import INDEX_FAILURES, SliceEntries, warn_of
from hudi_index_service.read.statistics import SliceStatistics
from hudi_index_service.table.base_file import column_bytes, present_columns, read_columns
from hudi_index_service.table.parquet_file import open_parquet
from hudi_index_service.table.protocol import BaseFile, HudiTable

log = logging.getLogger(__name__)

LOCATIONS = pa.schema(
    [
        ("record_key", pa.string()),
        ("partition", pa.string()),
        ("file_id", pa.string()),
        ("instant", pa.string()),
        ("row_id", pa.int64()),
        ("deleted", pa.bool_()),
    ]
)
"""What is told of each key found. ``deleted``: a log file deletes the row; NULL: not looked at."""

_INDEX_FRACTION = 1 / 20  # of a file's rows: for more keys, reading all its keys is cheaper

Numbers = np.ndarray[tuple[int], np.dtype[np.int64]]
KeysAt = tuple[Numbers, pa.StringArray]
"""Row ids, and the record keys of these rows."""


@dataclass(frozen=True, slots=True)
class KeyLocator:
    """Finds record keys in the slices of one snapshot.

    Attributes:
        schema: The table's in the snapshot.
        instant: The snapshot's, to which log files are merged.
    """

    table: HudiTable
    keys: RecordKeys
    schema: pa.Schema
    instant: str
    pool: ReaderPool
    settings: Settings

    def locate(
        self,
        plan: SlicePlan,
        wanted: pa.StringArray,
        statistics: SliceStatistics,
        *,
        find_deleted: bool,
    ) -> pa.Table:
        """The locations (`LOCATIONS`) of those of the keys that the slice holds.

        Args:
            plan: The slice with the entries that may serve its base file, log files or not.
            wanted: Distinct keys, none of them NULL.
            find_deleted: Whether to tell which rows log files delete, at the price of merging them.

        Raises:
            FileNotFoundError: a file of the slice is gone.
            TableFeatureUnsupported: the slice cannot be read right here.
        """
        base_file = plan.file_slice.base_file
        found, rows = _nothing()
        if base_file is not None and len(wanted):
            found, rows = self._in_range(plan, base_file, wanted, statistics)
        deleted: pa.Array = pa.nulls(len(rows), pa.bool_())
        row_ids = pa.array(rows)
        if plan.file_slice.log_files and (find_deleted or len(np.unique(found)) < len(wanted)):
            live = self._after_merging(plan, wanted)
            deleted = pa.array(~live[found])
            live[found] = False
            added = np.flatnonzero(live)
            found = np.concatenate([found, added])
            row_ids = pa.concat_arrays([row_ids, pa.nulls(len(added), pa.int64())])
            deleted = pa.concat_arrays([deleted, pa.array(np.zeros(len(added), dtype=bool))])
        statistics.rows_returned = len(found)
        return pa.table(
            [
                wanted.take(pa.array(found)),
                _repeated(plan.file_slice.partition, len(found)),
                _repeated(plan.file_slice.file_id, len(found)),
                _repeated(None if base_file is None else base_file.instant, len(found)),
                row_ids,
                deleted,
            ],
            schema=LOCATIONS,
        )

    def _in_range(
        self,
        plan: SlicePlan,
        base_file: BaseFile,
        wanted: pa.StringArray,
        statistics: SliceStatistics,
    ) -> tuple[Numbers, Numbers]:
        """As `_in_base_file`, which is asked for those keys only that lie between the file's
        least and greatest."""
        within = KeyRange.of_base_file(plan, self.keys)
        if within is None:
            statistics.keys = len(wanted)
            return self._in_base_file(plan, base_file, wanted, statistics)
        possible = np.flatnonzero(within.holds(wanted))
        statistics.keys = len(possible)
        if not len(possible):
            statistics.access = Access.SKIP
            statistics.note = "no key lies between its least and greatest"
            return _nothing()
        some = wanted if len(possible) == len(wanted) else wanted.take(pa.array(possible))
        found, rows = self._in_base_file(plan, base_file, some, statistics)
        return possible[found], rows

    def _in_base_file(
        self,
        plan: SlicePlan,
        base_file: BaseFile,
        wanted: pa.StringArray,
        statistics: SliceStatistics,
    ) -> tuple[Numbers, Numbers]:
        """Positions in `wanted` of the keys found, and the row id of each."""
        by_index = self._by_index(plan, wanted, statistics)
        if by_index is not None:
            rows, footer = by_index
            if not rows:
                return _nothing()
            keys = self._keys_at(base_file, rows, footer, statistics)
            if keys is not None:
                return _matches(keys, wanted)
        return _matches(self._all_keys(base_file, wanted, statistics), wanted)

    def _by_index(
        self, plan: SlicePlan, wanted: pa.StringArray, statistics: SliceStatistics
    ) -> tuple[BitMap, Footer] | None:
        """Rows among which all with these keys are, and the base file's footer; None where no index
        tells, or for so many keys that it does not pay."""
        if not plan.entries:
            return None
        if len(wanted) > plan.total * _INDEX_FRACTION:
            statistics.note = f"{len(wanted)} keys are looked for: reading all keys is cheaper"
            return None
        try:
            with SliceEntries.leased(plan, self.pool, statistics) as entries:
                for predicate in self.keys.narrowed_to(wanted):
                    found = matching_rows(predicate, entries.rows, entries.total)
                    if found.rows is not None:
                        statistics.access = Access.INDEX
                        statistics.candidates = len(found.rows)
                        return found.rows, entries.footer()
        except INDEX_FAILURES as error:
            warn_of(error, f"{plan.file_slice.name} is searched without index")
            statistics.note = error.message.rstrip(".")
        return None

    def _keys_at(
        self, base_file: BaseFile, rows: BitMap, footer: Footer, statistics: SliceStatistics
    ) -> list[KeysAt] | None:
        """The keys of these rows; None where reading all of them is better, or they cannot be read
        by row."""
        storage, path = self.table.storage, base_file.path
        if not present_columns(footer.schema, self.keys.columns, source=path):
            return None
        positions = row_positions(rows)
        reader = RowReader(storage, base_file, footer, self.keys.columns)
        keys, start = [], 0
        try:
            cost = reader.plan(positions)
            reading = cheapest_reading(cost, self.settings, remote=not storage.is_local)
            if reading is Reading.FILE:
                return None
            for read in reader.batches(positions):
                statistics.add_read(read.did)
                for batch in read.batches:
                    some = positions[start : start + batch.num_rows]
                    keys.append((some, self.keys.of(batch)))
                    start += batch.num_rows
        except ParquetReadError as error:
            log.info("The keys of %s are read without row ids: %s", path, error)
            return None
        return keys

    def _all_keys(
        self, base_file: BaseFile, wanted: pa.StringArray, statistics: SliceStatistics
    ) -> Iterator[KeysAt]:
        """All keys of the file in portions; none if its footer says that it has none of these."""
        path = base_file.path
        statistics.access = Access.SCAN
        with open_parquet(self.table.storage, path, base_file.size) as file:
            # Without the keys in its rows, Hudi fills in no filter.
            if self.keys.stored:
                footer = KeyFilter.of_footer(file.metadata.metadata)
                if not footer.may_hold_any(wanted):
                    statistics.note = "its Bloom filter has none of the keys"
                    return
            present = present_columns(file.schema_arrow, self.keys.columns, source=path)
            statistics.bytes_read += column_bytes(file, present)
            start = 0
            rows = self.settings.build.batch_rows
            for batch in read_columns(file, self.keys.columns, batch_rows=rows, source=path):
                yield np.arange(start, start + batch.num_rows), self.keys.of(batch)
                start += batch.num_rows
            statistics.rows_checked += start

    def _after_merging(
        self, plan: SlicePlan, wanted: pa.StringArray
    ) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """For each key, whether the slice has it once its log files are merged."""
        live = np.zeros(len(wanted), dtype=bool)
        roots = list(dict.fromkeys(root_column(name) for name in self.keys.columns.names))
        batches = self.table.read_slice(
            plan.file_slice, roots, as_of=self.instant, schema=self.schema
        )
        found, _ = _matches(
            ((np.zeros(batch.num_rows, np.int64), self.keys.of(batch)) for batch in batches), wanted
        )
        live[found] = True
        return live


def _matches(keys: Iterable[KeysAt], wanted: pa.StringArray) -> tuple[Numbers, Numbers]:
    """Positions in `wanted` of the keys that are in it, and the row id of each."""
    found, rows = [_nothing()[0]], [_nothing()[1]]
    for row_ids, some in _gathered(keys, len(wanted)):
        positions = pc.index_in(some, value_set=wanted)
        hits = positions.is_valid().to_numpy(zero_copy_only=False)
        found.append(positions.drop_null().to_numpy().astype(np.int64))
        rows.append(row_ids[hits])
    return np.concatenate(found), np.concatenate(rows)


def _gathered(keys: Iterable[KeysAt], rows: int) -> Iterator[KeysAt]:
    """The same in portions of about `rows` at least: for each, Arrow hashes what is wanted anew."""
    row_ids: list[Numbers] = []
    values: list[pa.StringArray] = []
    for some, batch in keys:
        row_ids.append(some)
        values.append(batch)
        if sum(map(len, row_ids)) >= rows:
            yield np.concatenate(row_ids), pa.concat_arrays(values)
            row_ids, values = [], []
    if row_ids:
        yield np.concatenate(row_ids), pa.concat_arrays(values)


def _nothing() -> tuple[Numbers, Numbers]:
    return np.zeros(0, np.int64), np.zeros(0, np.int64)


def _repeated(value: str | None, rows: int) -> pa.Array:
    return pa.repeat(pa.scalar(value, pa.string()), rows)
