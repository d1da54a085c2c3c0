"""A sample of a build: indexes some rows of some base files for real, in a temporary folder, and
measures time and size. Nothing is written to the table.

Each column is indexed alone, and the columns of a composite key by one key. Together they take the
same space, and about the same time.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from pathlib import Path
from time import perf_counter
from typing import Self, TypeVar

import pyarrow as pa

from hudi_index_service.build.entry.indexing import BaseFileIndexer
from hudi_index_service.build.entry.worker import Scratch, prepare_worker
from hudi_index_service.config import BuildSettings
from hudi_index_service.errors import BuildFailed, IndexServiceError
from hudi_index_service.hudi.files.base_file import read_columns
from hudi_index_service.hudi.files.parquet_file import BATCH_BYTES, open_parquet, row_group_rows
from hudi_index_service.hudi.snapshot import BaseFile
from hudi_index_service.index.contract import ColumnSpec, ColumnStatistics, FileRange, StoredColumn
from hudi_index_service.index.factory import index_type
from hudi_index_service.index.files.stored_values import ValuesWriter
from hudi_index_service.index.metadata.requirements import indexed
from hudi_index_service.storage.store import Storage

_PIECES = 4
ROWS = 65_536
"""Rows of a piece. With fewer, values that repeat seldom look unique, and Java is still cold."""

T = TypeVar("T")

Columns = tuple[ColumnSpec, ...]
"""Columns that are indexed together: one, or those of a composite key."""


def indexed_together(name: str, columns: Columns) -> tuple[Columns, ...]:
    """The columns of an entry of an index type, in groups that are indexed together."""
    group_of = {each.name: frozenset([each.name]) for each in columns}
    stored = [StoredColumn.of(each, ColumnStatistics(0)) for each in indexed(columns)]
    for key in index_type(name).keys(stored):
        group = frozenset().union(*(group_of[each] for each in key))
        group_of.update(dict.fromkeys(group, group))
    groups = dict.fromkeys(group_of[each.name] for each in columns)
    return tuple(tuple(each for each in columns if each.name in group) for group in groups)


@dataclass(frozen=True, slots=True)
class Rate:
    """An amount per byte of base file.

    Attributes:
        mean: The amount.
        error: Two standard errors of it; None if they are unknown, with a single measurement.
    """

    mean: float
    error: float | None

    @classmethod
    def of(cls, bytes: Sequence[float], amounts: Sequence[float]) -> Self:
        """The rate of some measured amounts, and how far it may be off if they are a random sample
        (the ratio estimator; Cochran, Sampling Techniques, section 6.4)."""
        total, count = sum(bytes), len(bytes)
        if not total:
            return cls(0.0, None)
        mean = sum(amounts) / total
        if count < 2:
            return cls(mean, None)
        squares = sum((y - mean * x) ** 2 for x, y in zip(bytes, amounts, strict=True))
        return cls(mean, 2 * sqrt(squares * count / (count - 1)) / total)

    @classmethod
    def sum(cls, rates: Iterable["Rate"]) -> Self:
        """The sum of rates whose errors may go the same way."""
        rates = tuple(rates)
        errors = [each.error for each in rates if each.error is not None]
        mean = sum(each.mean for each in rates)
        return cls(mean, sum(errors) if errors and len(errors) == len(rates) else None)


@dataclass(frozen=True, slots=True)
class Cost:
    """Rates of an entry, or of one of its columns: seconds on one core, and bytes of the index."""

    seconds: Rate
    index_bytes: Rate

    @classmethod
    def of(cls, measured: Sequence[tuple[float, float, float]]) -> Self:
        """The cost by what indexing some base files, or some rows of them, took: the bytes of the
        base file (of some rows, their share), seconds, and bytes of the index."""
        bytes = [each[0] for each in measured]
        seconds, index_bytes = [each[1] for each in measured], [each[2] for each in measured]
        return cls(Rate.of(bytes, seconds), Rate.of(bytes, index_bytes))


@dataclass(frozen=True, slots=True)
class Piece:
    """Consecutive rows of a base file.

    Attributes:
        row_groups: The rows of each row group of the file.
    """

    base_file: BaseFile
    rows: range
    row_groups: tuple[range, ...]

    def decoded_rows(self, end: int, *, whole_groups: bool) -> int:
        """The rows that are decoded to read the piece up to row `end`: Arrow decodes a row group
        from its start, and fetches it whole from a remote store."""
        groups = [
            each for each in self.row_groups if each.start < end and each.stop > self.rows.start
        ]
        last = groups[-1].stop if whole_groups else end
        return last - groups[0].start


class Sample:
    """Rows of a table's base files, spread over files of all sizes and over the rows within them.

    Args:
        base_files: The base files to be indexed; each counts once.
    """

    def __init__(
        self, storage: Storage, base_files: Iterable[BaseFile], settings: BuildSettings
    ) -> None:
        self._storage = storage
        self._base_files = tuple({each.path: each for each in base_files}.values())
        self._settings = settings
        self._costs: dict[tuple[str, Columns], Cost] = {}

    @property
    def rows(self) -> int:
        """The number of sampled rows, at most: fewer are read of a column with large values."""
        return sum(len(piece.rows) for piece in self._pieces)

    def cost(self, index_type: str, columns: Columns) -> Cost:
        """The cost of a column in an index, or of columns that are indexed together; measured once.

        Raises:
            NativeModuleMissing, WorkerMemoryTooSmall: the index cannot be built in this process.
            PermissionDenied, StorageFailed, NeedsSpark, FileNotFoundError: a base file cannot be
                read.
            BuildFailed: these rows cannot be indexed.
            OSError: nothing can be written to the folder for temporary files.
        """
        key = (index_type, columns)
        if key not in self._costs:
            self._costs[key] = self._measured(index_type, columns)
        return self._costs[key]

    def values(self, column: pa.Field) -> Iterator[pa.Array]:
        """The column's values in each piece of the sample. Raises what `cost` raises if a base file
        cannot be read."""
        for piece in self._pieces:
            batches, _ = self._read(piece, pa.schema([column]))
            yield pa.concat_arrays([batch.column(0) for batch in batches])

    def _measured(self, name: str, columns: Columns) -> Cost:
        kind = index_type(name)
        kind.check_runtime()
        prepare_worker(self._settings.memory_mb, runs_jvm=kind.runs_jvm)
        measured = []
        for number, piece in enumerate(self._pieces):
            schema = pa.schema([each.field for each in columns])
            batches, read_seconds = self._read(piece, schema)
            if number == 0:  # the first time takes longer: Java compiles, and libraries are loaded
                self._index(name, piece, batches, columns)
            started = perf_counter()
            built = self._index(name, piece, batches, columns)
            seconds = perf_counter() - started + read_seconds
            rows = sum(batch.num_rows for batch in batches)
            share = piece.base_file.size * rows / piece.row_groups[-1].stop
            measured.append((share, seconds, built))
        return Cost.of(measured)

    def _index(
        self, name: str, piece: Piece, batches: Sequence[pa.RecordBatch], columns: Columns
    ) -> int:
        """Indexes the batches, and stores their values if the columns have to be. Returns the size
        of both in bytes."""
        if not indexed(columns):
            return _stored_size(batches, columns)
        indexer = BaseFileIndexer(
            self._storage,
            piece.base_file,
            index_type(name),
            memory_mb=self._settings.memory_mb,
            batch_rows=self._settings.batch_rows,
        )
        try:
            with Scratch() as scratch:
                result = indexer.index_batches((each for each in batches), columns, scratch)
                return sum(map(_size, (*result.built.files.values(), *result.values.values())))
        except (IndexServiceError, OSError):
            raise
        except Exception as error:  # native libraries may raise anything
            names = ", ".join(each.name for each in columns)
            raise BuildFailed(
                f"{piece.base_file.path}: {names} cannot be indexed by {name}: "
                f"{type(error).__name__}: {error}"
            ) from error

    def _read(self, piece: Piece, columns: pa.Schema) -> tuple[list[pa.RecordBatch], float]:
        """The rows of a piece, as far as they fit into memory well, and the seconds that reading
        them takes in a build, which skips none."""
        started = perf_counter()
        with open_parquet(self._storage, piece.base_file.path, piece.base_file.size) as file:
            batches: list[pa.RecordBatch] = []
            end, remaining = piece.rows.start, BATCH_BYTES
            for batch in read_columns(
                file,
                columns,
                batch_rows=self._settings.batch_rows,
                source=piece.base_file.path,
                rows=piece.rows,
            ):
                end += batch.num_rows
                if batch.nbytes > remaining:
                    fitting = batch.num_rows * remaining // batch.nbytes
                    batches.append(batch.slice(0, max(1, fitting)))
                    break
                batches.append(batch)
                remaining -= batch.nbytes
        seconds = perf_counter() - started
        rows = sum(batch.num_rows for batch in batches)
        decoded = piece.decoded_rows(end, whole_groups=not self._storage.is_local)
        return batches, seconds * rows / decoded

    @cached_property
    def _pieces(self) -> tuple[Piece, ...]:
        files = _spread(sorted(self._base_files, key=lambda each: (each.size, each.path)), _PIECES)
        per_file = -(-_PIECES // max(1, len(files)))
        pieces = []
        for position, base_file in enumerate(files):
            with open_parquet(self._storage, base_file.path, base_file.size) as file:
                groups = tuple(row_group_rows(file))
            total = groups[-1].stop if groups else 0
            if total > ROWS:
                for number in range(per_file):
                    start = total * (position * per_file + number) // (len(files) * per_file)
                    rows = range(start, min(start + ROWS, total))
                    pieces.append(Piece(base_file, rows, groups))
            elif total:
                pieces.append(Piece(base_file, range(total), groups))
        return tuple(pieces)


def _spread(items: Sequence[T], most: int) -> list[T]:
    """Up to `most` of the items, evenly spread, the first and the last among them."""
    if len(items) <= most:
        return list(items)
    return [items[(len(items) - 1) * number // (most - 1)] for number in range(most)]


def _size(file: Path | FileRange | bytes) -> int:
    if isinstance(file, bytes):
        return len(file)
    return file.length if isinstance(file, FileRange) else file.stat().st_size


def _stored_size(batches: Sequence[pa.RecordBatch], columns: Columns) -> int:
    """The size of the values of columns that are stored and not indexed."""
    writer = ValuesWriter(pa.schema([(each.name, each.type) for each in columns]), None)
    try:
        for batch in batches:
            writer.add(batch)
        return sum(map(_size, writer.finish().values()))
    finally:
        writer.close()
