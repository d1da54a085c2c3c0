"""Builds an index from a base file's columns, for all or part of its rows: on the local disk, or in
memory if the base file is small.

Reading and indexing overlap, unless the base file is small: a thread decodes the next batches while
the index type's builder indexes the last one. Memory does not depend on the base file's size: it
holds a few batches of bounded size and the builder's allowance.
"""

from collections import deque
from collections.abc import Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock
from typing import TypeVar

import pyarrow as pa

from hudi_index_service.build.entry.column_facts import Extremes, ValueKeys
from hudi_index_service.build.entry.parts import (
    WHOLE,
    Part,
    StagedPart,
    Staging,
    bounds_of,
    joined_extremes,
    joined_index,
)
from hudi_index_service.build.entry.worker import Scratch
from hudi_index_service.errors import NeedsSpark
from hudi_index_service.hudi.files.base_file import (
    read_columns,
    refuse_legacy_calendar,
    unread_columns,
)
from hudi_index_service.hudi.files.parquet_file import open_parquet
from hudi_index_service.hudi.snapshot import BaseFile
from hudi_index_service.index.contract import (
    BuiltIndex,
    ColumnSpec,
    ColumnStatistics,
    IndexBuilder,
    IndexType,
    StoredColumn,
)
from hudi_index_service.index.files.stored_values import (
    VALUES,
    ValuesWriter,
    joined_values,
    without_values,
)
from hudi_index_service.index.metadata.manifest import SkippedColumn
from hudi_index_service.index.metadata.requirements import indexed, stored_names
from hudi_index_service.index.metadata.segments.bounds import is_routed
from hudi_index_service.index.packed_file import pack
from hudi_index_service.storage.store import Storage

SMALL_BYTES = 2 * 2**20
"""The index of a base file of at most so many bytes is built in memory, if its type can do that: to
make and remove its files on the disk would take longer than to write them. Nor is it read ahead."""

_BATCHES_AHEAD = 2  # decoded and waiting, in addition to those being decoded and being indexed

Item = TypeVar("Item")

_END = object()


class RowCount:
    """Counts the rows that the tasks of a build index in this process. A task in another process
    has its own count, which is not reported here."""

    def __init__(self) -> None:
        self._lock = Lock()
        self.rows = 0

    def __reduce__(self) -> tuple[object, ...]:
        return (RowCount, ())

    def add(self, rows: int) -> None:
        """Adds rows to the count. Safe to call from several threads."""
        with self._lock:
            self.rows += rows


@dataclass(frozen=True, slots=True)
class Indexed:
    """A finished index, the columns' least and greatest values, the keys of their values, as far as
    they are routed, the packed file's members with stored values, the indexed columns, and what was
    left out."""

    built: BuiltIndex
    extremes: Mapping[str, Extremes]
    keys: Mapping[str, ValueKeys] = field(default_factory=dict)
    values: Mapping[str, Path | bytes] = field(default_factory=dict)
    columns: tuple[ColumnSpec, ...] = ()
    skipped: tuple[SkippedColumn, ...] = ()


class PartStaged(Exception):
    """This part is staged, but others are missing; the last one to be staged joins them."""


class BaseFileIndexer:
    """Indexes one base file.

    Args:
        memory_mb: The MiB that the builder may hold.
        batch_rows: The maximum number of rows read at a time.
        threads: The number of threads that the builder may use.
        indexed: The counter of indexed rows.
    """

    def __init__(
        self,
        storage: Storage,
        base_file: BaseFile,
        kind: IndexType,
        *,
        memory_mb: int,
        batch_rows: int,
        threads: int = 1,
        indexed: RowCount | None = None,
    ) -> None:
        self._storage = storage
        self._base_file = base_file
        self._kind = kind
        self._memory_mb = memory_mb
        self._batch_rows = batch_rows
        self._threads = threads
        self._row_count = indexed or RowCount()

    def index(self, columns: Sequence[ColumnSpec], scratch: Scratch, part: Part = WHOLE) -> Indexed:
        """Indexes the rows of a part, in a new folder below that of `scratch` or in memory. Columns
        that only Spark reads in this base file are left out.

        Raises:
            NeedsSpark: no column is left.
        """
        path = self._base_file.path
        with open_parquet(self._storage, path) as file:
            # Checked for all columns: reads of rows found by the index do not see this footer.
            refuse_legacy_calendar(file.metadata, source=path)
            schema = pa.schema([spec.field for spec in columns])
            reasons = unread_columns(file.schema_arrow, schema, source=path)
            read, skipped = self._without(columns, reasons) if reasons else (tuple(columns), ())
            batches = read_columns(
                file,
                pa.schema([spec.field for spec in read]),
                batch_rows=self._batch_rows,
                source=path,
                rows=part.rows(file.metadata.num_rows),
            )
            result = self.index_batches(batches, read, scratch, part)
            return replace(result, columns=read, skipped=skipped)

    def _without(
        self, columns: Sequence[ColumnSpec], reasons: Mapping[str, str]
    ) -> tuple[tuple[ColumnSpec, ...], tuple[SkippedColumn, ...]]:
        """The columns that can be indexed without those that have a reason, and what is skipped:
        also composite keys that need one of these."""
        left, skipped = [], []
        for spec in columns:
            if spec.name in reasons:
                skipped.append(SkippedColumn.of(spec, reasons[spec.name]))
                continue
            needed = {name: self._needed(spec, name) & reasons.keys() for name in spec.fields}
            lost = tuple(name for name in spec.fields if needed[name])
            if lost:
                other = min(needed[lost[0]])
                reason = f"Its key needs column {other}. {reasons[other]}"
                skipped.append(SkippedColumn.of(replace(spec, fields=lost), reason))
            if len(lost) < len(spec.fields):
                fields = tuple(name for name in spec.fields if name not in lost)
                left.append(replace(spec, fields=fields))
        if not indexed(left):
            raise NeedsSpark(next(iter(reasons.values())))
        return tuple(left), tuple(skipped)

    def _needed(self, spec: ColumnSpec, name: str) -> set[str]:
        """The columns that a field of a column is made of, if it is that of a composite key."""
        alone = StoredColumn.of(replace(spec, fields=(name,)), ColumnStatistics(0))
        return {each for key in self._kind.keys((alone,)) for each in key}

    def index_batches(
        self,
        batches: Generator[pa.RecordBatch, None, None],
        columns: Sequence[ColumnSpec],
        scratch: Scratch,
        part: Part = WHOLE,
    ) -> Indexed:
        """Indexes the rows of a part, given as batches of these columns in row order."""
        extremes = {spec.name: Extremes() for spec in columns}
        # Keys of parts are not collected: they would have to be staged and joined.
        own_columns = indexed(columns)
        routed = own_columns if part.is_whole else ()
        keys = {
            spec.name: ValueKeys()
            for spec in routed
            if is_routed(spec.type) and self._kind.holds_values(spec)
        }
        known = {spec.name: extremes[spec.name] for spec in own_columns}
        builder = self._builder(own_columns, scratch, part)
        values = self._values_writer(columns, scratch, part)
        observed = _observed(batches, known, keys)
        # To read a small file ahead takes longer than it saves.
        is_small = self._base_file.size <= SMALL_BYTES
        try:
            with (
                closing(observed) if is_small else read_ahead(observed, depth=_BATCHES_AHEAD)
            ) as ready:
                for batch in ready:
                    builder.add(_of(own_columns, batch))
                    if values is not None:
                        values.add(batch)
                    self._row_count.add(batch.num_rows)
            built = builder.finish()
            if values is None:
                return Indexed(built, extremes, keys)
            nulls = {name: ColumnStatistics(n) for name, n in values.null_counts.items()}
            built = replace(built, statistics={**nulls, **built.statistics})
            return Indexed(built, extremes, keys, values.finish())
        except BaseException:
            builder.abort()
            raise
        finally:
            if values is not None:
                values.close()

    def _in_memory(self, part: Part) -> bool:
        return part.is_whole and self._base_file.size <= SMALL_BYTES

    def _values_writer(
        self, columns: Sequence[ColumnSpec], scratch: Scratch, part: Part
    ) -> ValuesWriter | None:
        """The writer of stored values; None if no column has any."""
        names = stored_names(columns)
        if not names:
            return None
        path = None if self._in_memory(part) else scratch.folder / VALUES
        return ValuesWriter(pa.schema([(c.name, c.type) for c in columns if c.name in names]), path)

    def _builder(self, columns: Sequence[ColumnSpec], scratch: Scratch, part: Part) -> IndexBuilder:
        kind, memory_mb, threads = self._kind, self._memory_mb, self._threads
        if self._in_memory(part):
            builder = kind.memory_builder(columns, memory_mb=memory_mb, threads=threads)
            if builder is not None:
                return builder
        folder = scratch.folder / "index"
        folder.mkdir()
        number = part.number
        return kind.builder(columns, folder, memory_mb=memory_mb, part=number, threads=threads)

    def index_in_parts(
        self, columns: Sequence[ColumnSpec], scratch: Scratch, part: Part, staging: Staging
    ) -> Indexed:
        """The index of the whole base file, if this part was the last missing one.

        Raises:
            PartStaged: other parts are still missing.
            FileNotFoundError: another task has joined the parts and removed them.
        """
        work = scratch.folder
        result = self.index(columns, scratch, part)
        staged_part = self._stage(result, work, part, staging)
        parts = staging.complete(staged_part)
        if parts is None:
            raise PartStaged
        folder = work / "joined"
        folder.mkdir()
        indexes = [staging.fetch(each, work) for each in parts]
        files = self._kind.combine(list(map(without_values, indexes)), folder)
        values = joined_values(indexes, folder / VALUES)
        joined, extremes = joined_index(parts, files), joined_extremes(parts)
        return replace(result, built=joined, extremes=extremes, keys={}, values=values)

    def _stage(self, result: Indexed, work: Path, part: Part, staging: Staging) -> StagedPart:
        name = staging.data_name(part)
        built, extremes = result.built, result.extremes
        staged_part = StagedPart(
            number=part.number,
            of=part.of,
            base_file=self._base_file.path,
            length=self._base_file.size,
            rows=built.rows,
            data=pack({**built.files, **result.values}, work / name, first=VALUES),
            columns=tuple(
                StoredColumn.of(spec, built.statistics[spec.name]) for spec in result.columns
            ),
            bounds=bounds_of(extremes, result.columns),
            unknown=tuple(name for name, each in extremes.items() if each.unknown),
            versions=dict(built.versions),
            codec=built.codec,
        )
        staging.add(work / name, staged_part)
        return staged_part


def _of(columns: Sequence[ColumnSpec], batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with just these columns."""
    if len(columns) == batch.num_columns:
        return batch
    return batch.select([spec.name for spec in columns])


def _observed(
    batches: Generator[pa.RecordBatch, None, None],
    extremes: Mapping[str, Extremes],
    keys: Mapping[str, ValueKeys],
) -> Generator[pa.RecordBatch, None, None]:
    """The batches, each shown to what collects the columns' extremes and keys."""
    with closing(batches):
        for batch in batches:
            for name, extreme in extremes.items():
                extreme.add(batch.column(name))
            for name, key in keys.items():
                key.add(batch.column(name))
            yield batch


@contextmanager
def read_ahead(
    items: Generator[Item, None, None], *, depth: int
) -> Generator[Iterator[Item], None, None]:
    """The items of a generator, with up to `depth` items produced in advance.

    The generator runs only in the thread, and is closed there. Leaving the block ends it. An
    exception that it raises is raised in place of the next item.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="index-build-read") as pool:
        ahead = deque(pool.submit(next, items, _END) for _ in range(depth))

        def ready() -> Iterator[Item]:
            while (item := ahead.popleft().result()) is not _END:
                ahead.append(pool.submit(next, items, _END))
                yield item  # type: ignore[misc]  # not the end

        try:
            yield ready()
        finally:
            for each in ahead:
                each.cancel()
            pool.submit(items.close).result()
