"""Slices read in another process: what a Spark task is told, and how it goes about it.

Paths, plans and the query cross the border, nothing that is open: a task opens the table and the
entries anew, in the snapshot that was planned.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pyarrow as pa

from hudi_index_service.config import BuildSettings, ReadSettings, Settings, settings
from hudi_index_service.errors import NeedsSpark, SnapshotChanged, TableFeatureUnsupported
from hudi_index_service.optimizer.plan import Access, SlicePlan
from hudi_index_service.read.query import Query
from hudi_index_service.read.reader_pool import ReaderPool
from hudi_index_service.read.slice_reader import SliceReader
from hudi_index_service.read.statistics import SliceStatistics
from hudi_index_service.storage import Storage
from hudi_index_service.table import HudiTable, open_hudi_table
from hudi_index_service.table.parquet_file import open_parquet

_SAMPLE_ROWS = 16

# Rows of the slice may be in Spark's hands already: it is too late for another reader.
_LATE_REMEDY = (
    "Take to_arrow() or to_batches() of a table that was opened with spark=<session with Hudi>, "
    'or Spark\'s own spark.read.format("hudi"), for this query.'
)


@contextmanager
def opened_table(
    storage: Storage, read: ReadSettings, build: BuildSettings
) -> Iterator[tuple[HudiTable, ReaderPool, Settings]]:
    """What reads a snapshot's slices in a task, for the length of the block.

    Raises:
        SnapshotChanged: a file of the snapshot is gone.
    """
    # Where caches lie, and what one process may take, is for each host to say.
    chosen = settings().model_copy(update={"read": read, "build": build})
    pool = ReaderPool(storage, chosen)
    try:
        yield open_hudi_table(storage.uri, storage.options), pool, chosen
    except FileNotFoundError as error:
        raise SnapshotChanged(f"A file of the snapshot went: {error}.") from error
    finally:
        pool.close()


@dataclass(frozen=True, slots=True)
class SliceTask:
    """What a process needs to read slices for a query. Make it by `of`."""

    storage: Storage
    query: Query
    instant: str
    read: ReadSettings
    build: BuildSettings
    index_required: bool
    limit: int | None

    @classmethod
    def of(cls, reader: SliceReader, limit: int | None) -> "SliceTask":
        """What another process needs to do what `reader` does, for at most `limit` rows."""
        chosen = reader.settings
        return cls(
            storage=reader.table.storage,
            query=reader.query,
            instant=reader.instant,
            read=chosen.read,
            build=chosen.build,
            index_required=reader.index_required,
            limit=limit,
        )

    def batches(
        self,
        plans: Iterable[tuple[int, SlicePlan]],
        observe: Callable[[int, SliceStatistics], None] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """The slices' rows, at most `limit`. Raises what `SliceReader.batches` raises.

        Args:
            plans: Each with its number.
            observe: Called with a slice's number and what was read of it, once it has been read.

        Raises:
            SnapshotChanged: a file of the snapshot is gone.
            NeedsSpark: what the first rows of a slice did not show: Spark has to read it.
        """
        left = self.limit
        with self._opened() as reader:
            for number, plan in plans:
                if left == 0:
                    return
                statistics = _statistics(plan)
                try:
                    for batch in statistics.timing(reader.batches(plan, statistics)):
                        some = batch if left is None else batch.slice(0, left)
                        if some.num_rows:
                            yield some
                        if left is not None:
                            left -= some.num_rows
                            if left == 0:
                                break
                except TableFeatureUnsupported as error:
                    raise NeedsSpark(error.message, remedy=_LATE_REMEDY) from error
                if observe is not None:
                    observe(number, statistics)

    def weights(self, plans: Iterable[SlicePlan]) -> "Iterator[Weight]":
        """About what the rows of each slice weigh. Raises what `batches` raises."""
        with self._opened() as reader:
            for plan in plans:
                yield _weight(reader, plan)

    @contextmanager
    def _opened(self) -> Iterator[SliceReader]:
        with opened_table(self.storage, self.read, self.build) as (table, pool, chosen):
            yield SliceReader(
                table,
                self.query,
                self.instant,
                pool,
                chosen,
                limit=self.limit,
                index_required=self.index_required,
            )


@dataclass(frozen=True, slots=True)
class Weight:
    """How many rows a slice has for the query, at most (merged slices: about), and what one of them
    takes in memory, in bytes; None where no row was at hand."""

    rows: int
    row_bytes: float | None


def _weight(reader: SliceReader, plan: SlicePlan) -> Weight:
    statistics = _statistics(plan)
    rows: int | None = None
    if plan.access is Access.INDEX:
        reader.settled_rows(plan, statistics)
        rows = statistics.candidates
    if rows == 0:
        return Weight(0, None)
    # Also tells whether the slice can be read here at all.
    sample = next(replace(reader, limit=_SAMPLE_ROWS).batches(plan, statistics), None)
    if rows is None:
        rows = _rows(reader.table.storage, plan)
    row_bytes = sample.nbytes / sample.num_rows if sample is not None and sample.num_rows else None
    return Weight(rows, row_bytes)


def _rows(storage: Storage, plan: SlicePlan) -> int:
    """The rows of the base file; with log files, which are not counted, twice as many."""
    base_file = plan.file_slice.base_file
    if base_file is None:
        return 2**40
    with open_parquet(storage, base_file.path) as file:
        return int(file.metadata.num_rows) * (2 if plan.file_slice.log_files else 1)


def _statistics(plan: SlicePlan) -> SliceStatistics:
    return SliceStatistics(plan.file_slice.name, plan.access)
