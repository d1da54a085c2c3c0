"""Merges the rows that a slice's log files touch, without the other rows of its base file.

The record keys in the log files tell which rows of the base file count no longer. These rows alone
are merged with the log files; all other rows are as the base file has them, so that an index finds
them. Design: "log rows".
"""

import logging
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from hudi_index_parquet import Footer, ParquetReadError
from pyroaring import BitMap

from hudi_index_service.arrow import binary_array, numbers_array
from hudi_index_service.errors import IndexServiceError
from hudi_index_service.hudi.files.log_file import RECORD_KEY, LogKeysUnknown
from hudi_index_service.hudi.files.parquet_file import refusals_named, row_source
from hudi_index_service.hudi.snapshot import BaseFile, TouchedKeys
from hudi_index_service.hudi.table import HudiTable
from hudi_index_service.optimizer.decide import log_rows_pay
from hudi_index_service.optimizer.plan import Access, SlicePlan
from hudi_index_service.read.base_file.file_scan import own_footer
from hudi_index_service.read.base_file.key_join import KeyJoin
from hudi_index_service.read.base_file.record_keys import RecordKeys
from hudi_index_service.read.base_file.row_reader import NumberedRows, RowIds, positions
from hudi_index_service.read.query import Query
from hudi_index_service.read.statistics import SliceStatistics

log = logging.getLogger(__name__)

T = TypeVar("T")
U = TypeVar("U")

_MOST_REMEMBERED = 10_000
_MERGED_AT_ONCE = 64

_Version: TypeAlias = tuple[str, tuple[str, ...], str]
"""A slice's base file and log files, and the instant up to which they are merged."""


@dataclass(frozen=True, slots=True)
class LogSlice:
    """A slice with log files, and who merges them for a query.

    Attributes:
        query: Its columns are merged.
        instant: Up to which log files are merged.
        candidates: Finds the rows of the base file that may match another query.
    """

    table: HudiTable
    plan: SlicePlan
    query: Query
    instant: str
    candidates: Callable[[Query, SlicePlan, SliceStatistics], Iterator[NumberedRows]]

    @property
    def base_file(self) -> BaseFile:
        """Its base file."""
        return self.plan.file_slice.base_file

    @property
    def version(self) -> _Version:
        """What its log rows depend on."""
        until = self.table.merged_until(self.instant)
        return self.base_file.path, self.plan.file_slice.log_files, until


class _MergedWhole(Exception):
    """The log rows cannot be merged alone, or merging the slice whole costs less; the message says
    why."""


@dataclass(frozen=True, slots=True)
class LogRows:
    """The log rows of one slice.

    Attributes:
        replaced: The rows of the base file that count no longer.
        schema: Of the merged rows.
        batches: The merged rows of all record keys in the log files; none is empty.
    """

    replaced: BitMap
    schema: pa.Schema
    batches: Sequence[pa.RecordBatch]

    @property
    def count(self) -> int:
        """The number of merged rows."""
        return sum(each.num_rows for each in self.batches)

    @property
    def size(self) -> int:
        """Their bytes."""
        return sum(each.nbytes for each in self.batches)

    def has(self, columns: Sequence[pa.Field]) -> bool:
        """Whether they have these columns, in these types."""
        for each in columns:
            position = self.schema.get_field_index(each.name)
            if position < 0 or self.schema.field(position).type != each.type:
                return False
        return True


class LogRowsCache:
    """Merges log rows, and keeps those of the slices last used, since the log rows of one version
    of a slice never change. Safe to use from several threads.

    Args:
        most_bytes: The size of all rows kept.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._kept: OrderedDict[_Version, LogRows] = OrderedDict()  # least recently used first
        self._bytes = 0
        self._refused: dict[_Version, str] = {}
        self._replaced: dict[_Version, BitMap] = {}  # of slices whose log rows are not kept
        self._lock = Lock()
        self._merging = [Lock() for _ in range(_MERGED_AT_ONCE)]

    def of(self, merged: LogSlice, statistics: SliceStatistics) -> LogRows | None:
        """The log rows of a slice with the columns of the table that hold those that the reader's
        query needs, and perhaps others; None if the slice has to be merged whole, for the reason in
        the statistics.

        Raises:
            FileNotFoundError: a file of the slice is gone.
        """
        version = merged.version
        columns = [merged.query.table.field(name) for name in merged.query.needed_roots]

        def merge() -> LogRows:
            kept = self._kept.get(version)  # its columns are merged, too
            names = {each.name for each in columns} | set(kept.schema.names if kept else ())
            schema = pa.schema([each for each in merged.query.table if each.name in names])
            log_rows = _merged_rows(merged, schema)
            self._keep(version, log_rows)
            return log_rows

        found = self._found(merged, statistics, lambda: self._known(version, columns), merge)
        if found is not None:
            statistics.log_rows = found.count
        return found

    def replaced(self, merged: LogSlice, statistics: SliceStatistics) -> BitMap | None:
        """The rows of a slice's base file that count no longer, found by the keys in its log files
        without merging these; None if the slice has to be merged whole. Takes and raises what `of`
        does."""
        version = merged.version

        def known() -> BitMap | None:
            kept = self._known(version, [])
            return self._replaced.get(version) if kept is None else kept.replaced

        def find() -> BitMap:
            replaced = _touched(merged).replaced
            self._remember(self._replaced, version, replaced)
            return replaced

        return self._found(merged, statistics, known, find)

    def _known(self, version: _Version, columns: Sequence[pa.Field]) -> LogRows | None:
        """The log rows that are kept; None if not known. Raises _MergedWhole if they cannot be
        merged alone."""
        with self._lock:
            kept = self._kept.get(version)
            if kept is not None:
                self._kept.move_to_end(version)
            elif version in self._refused:
                raise _MergedWhole(self._refused[version])
        return kept if kept is not None and kept.has(columns) else None

    def _found(
        self,
        merged: LogSlice,
        statistics: SliceStatistics,
        known: Callable[[], T | None],
        find: Callable[[], T],
    ) -> T | None:
        """What is known of a slice's log rows, or is found now; None if the slice has to be merged
        whole, for the reason in the statistics. Reasons that will not pass are remembered."""
        version = merged.version
        try:
            if (found := known()) is None:
                # Another thread may be merging the same slice.
                with self._merging[hash(version) % len(self._merging)]:
                    if (found := known()) is None:
                        found = find()
            return found
        except _MergedWhole as error:
            statistics.note = str(error)
            self._remember(self._refused, version, statistics.note)
        except FileNotFoundError:
            raise
        except (IndexServiceError, ParquetReadError, pa.ArrowException, OSError) as error:
            # Perhaps for the moment only, so that it is not remembered.
            statistics.note = f"its log rows cannot be merged alone: {error}"
            log.info("%s: %s", merged.plan.file_slice.name, statistics.note)
        return None

    def _keep(self, version: _Version, log_rows: LogRows) -> None:
        with self._lock:
            self._replaced.pop(version, None)
            before = self._kept.pop(version, None)
            self._bytes += log_rows.size - (0 if before is None else before.size)
            self._kept[version] = log_rows
            while self._bytes > self._most_bytes and self._kept:
                _, oldest = self._kept.popitem(last=False)
                self._bytes -= oldest.size

    def _remember(self, facts: dict[_Version, U], version: _Version, fact: U) -> None:
        with self._lock:
            if len(facts) >= _MOST_REMEMBERED and version not in facts:
                facts.clear()
            facts[version] = fact


@dataclass(frozen=True, slots=True)
class _Touched:
    """What a slice's log files touch.

    Attributes:
        footer: Of the base file.
        keys: The record keys in the log files.
        row_ids: The rows of the base file with one of these keys, in order…
        row_keys: … and the key of each.
    """

    footer: Footer
    keys: TouchedKeys
    row_ids: RowIds
    row_keys: pa.StringArray

    @property
    def replaced(self) -> BitMap:
        """The same rows."""
        return BitMap(self.row_ids.astype("uint32"))


def _touched(merged: LogSlice) -> _Touched:
    table, file_slice, base_file = merged.table, merged.plan.file_slice, merged.base_file
    if RECORD_KEY not in merged.query.table.names:
        raise _MergedWhole("its rows do not hold their record keys")
    footer = own_footer(table.storage, base_file)
    if footer is None:
        raise _MergedWhole("its rows cannot be read one by one")
    try:
        touched = table.touched_keys(file_slice)
    except LogKeysUnknown as error:
        raise _MergedWhole(f"the record keys in its log files are not known: {error}") from error
    if not log_rows_pay(footer.rows, len(set(touched.keys))):
        raise _MergedWhole("merging it whole costs less")
    keys = _texts(touched.keys)
    if touched.rows is not None and max(touched.rows, default=0) < footer.rows:
        row_ids, firsts = np.unique(np.array(touched.rows, np.int64), return_index=True)
        row_keys = keys.take(numbers_array(firsts))
    else:
        row_ids, row_keys = _rows_of_keys(merged, keys.unique())
    if pc.count_distinct(row_keys).as_py() < len(row_ids):
        raise _MergedWhole("its base file holds a record key twice")
    return _Touched(footer, touched, row_ids, row_keys)


def _merged_rows(merged: LogSlice, columns: pa.Schema) -> LogRows:
    table, base_file = merged.table, merged.base_file
    touched = _touched(merged)
    names = table.merged_columns(touched.footer.schema, columns.names)
    with refusals_named(base_file.path):
        rows, _ = touched.footer.read(
            row_source(table.storage, base_file.path), touched.row_ids, names, size=base_file.size
        )
    rows_merged = table.read_touched(
        merged.plan.file_slice,
        touched.keys.log_files,
        touched.row_keys,
        rows,
        columns.names,
        as_of=merged.instant,
        schema=merged.query.table,
    )
    batches = tuple(each for each in rows_merged if each.num_rows)
    return LogRows(touched.replaced, columns, batches)


def _texts(keys: Sequence[bytes]) -> pa.StringArray:
    try:
        return binary_array(keys).cast(pa.string())
    except pa.ArrowInvalid as error:
        raise _MergedWhole(f"the record keys in its log files are no texts: {error}") from error


def _rows_of_keys(merged: LogSlice, keys: pa.StringArray) -> tuple[RowIds, pa.StringArray]:
    """The rows of the base file with one of these keys, in order, and the key of each. They are
    found by an index on the keys if there is one."""
    plan, schema = merged.plan, merged.query.table
    record_keys = RecordKeys(pa.schema([schema.field(RECORD_KEY)]), {}, stored=True)
    entries = plan.known_entries
    planned = plan._replace(access=Access.INDEX, entries=entries, values={}, expected=None)
    condition = record_keys.narrowing(planned, keys)
    if condition is None:
        planned = planned._replace(access=Access.SCAN)
    query = Query(condition, condition, record_keys.columns, record_keys.columns, schema)
    statistics = SliceStatistics.of(planned)
    join = KeyJoin(keys, 1)
    for rows, batch, _ in merged.candidates(query, planned, statistics):
        join.add(record_keys.of(batch), positions(rows))
    key_positions, row_ids = join.found()
    return row_ids, keys.take(numbers_array(key_positions))
