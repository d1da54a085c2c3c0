"""Reads slices in a Spark task.

Only paths, plans and the query are sent to the task, which opens the table and the entries itself,
in the planned snapshot.
"""

import pickle
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pyarrow as pa

from hudi_index_service.config import BuildSettings, ReadSettings, settings
from hudi_index_service.errors import NeedsSpark, Remedy, SnapshotChanged, TableFeatureUnsupported
from hudi_index_service.hudi import open_hudi_table
from hudi_index_service.hudi.files.parquet_file import open_parquet
from hudi_index_service.optimizer.plan import Access, SlicePlan
from hudi_index_service.read.query import Query
from hudi_index_service.read.slices.log_rows import LogRowsCache
from hudi_index_service.read.slices.reader_pool import ReaderPool
from hudi_index_service.read.slices.slice_reader import SliceReader
from hudi_index_service.read.statistics import SliceStatistics
from hudi_index_service.storage.store import Storage

_SAMPLE_ROWS = 16

# Rows of the slice may already be with Spark, so another reader cannot take over.
_LATE_REMEDY = Remedy(
    "Use to_arrow() or to_batches() of a table that was opened with spark=<session with Hudi>, "
    'or Spark\'s own spark.read.format("hudi"), for this query.',
    command="Use `hudi-index sql`.",
)


@dataclass(frozen=True, slots=True)
class SliceTask:
    """The data that a process needs to read slices for a query. Make it by `of`."""

    storage: Storage
    query: Query
    instant: str
    read: ReadSettings
    build: BuildSettings
    index_required: bool
    limit: int | None

    @classmethod
    def of(cls, reader: SliceReader, limit: int | None) -> "SliceTask":
        """The task that does the work of `reader` in another process, for at most `limit` rows."""
        reader_settings = reader.settings
        return cls(
            storage=reader.table.storage,
            query=reader.query,
            instant=reader.instant,
            read=reader_settings.read,
            build=reader_settings.build,
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
            plans: The slices' plans with their numbers.
            observe: Called with a slice's number and statistics after it has been read.

        Raises:
            SnapshotChanged: a file of the snapshot is gone.
            NeedsSpark: only Spark can read a slice, which its first rows did not show.
        """
        left = self.limit
        with self.opened() as reader:
            for number, plan in plans:
                if left == 0:
                    return
                statistics = _statistics(plan)
                try:
                    for batch in statistics.timing(reader.batches(plan, statistics)):
                        head = batch if left is None else batch.slice(0, left)
                        if head.num_rows:
                            yield head
                        if left is not None:
                            left -= head.num_rows
                            if left == 0:
                                break
                except TableFeatureUnsupported as error:
                    raise NeedsSpark(error.message, remedy=_LATE_REMEDY) from error
                if observe is not None:
                    observe(number, statistics)

    def weights(self, plans: Iterable[SlicePlan]) -> "Iterator[Weight]":
        """The approximate size of each slice's rows. Raises what `batches` raises."""
        with self.opened() as reader:
            for plan in plans:
                yield _weight(reader, plan)

    @contextmanager
    def opened(self) -> Iterator[SliceReader]:
        """The slice reader in this process, during the block.

        Raises:
            SnapshotChanged: a file of the snapshot is gone.
        """
        # Each host's own settings define the cache folders and the limits of a process.
        task_settings = settings().model_copy(update={"read": self.read, "build": self.build})
        pool = ReaderPool(self.storage, task_settings)
        try:
            yield SliceReader(
                open_hudi_table(self.storage.uri, self.storage.options),
                self.query,
                self.instant,
                pool,
                task_settings,
                limit=self.limit,
                index_required=self.index_required,
                log_rows=LogRowsCache(self.read.log_rows_mb * 2**20),
            )
        except FileNotFoundError as error:
            raise SnapshotChanged(f"A file of the snapshot was deleted: {error}.") from error
        finally:
            pool.close()


@dataclass(frozen=True, slots=True)
class Weight:
    """The maximum number of rows of a slice for the query (approximate for merged slices), and the
    bytes of one row in memory; None if no row was sampled."""

    rows: int
    row_bytes: float | None


def _weight(reader: SliceReader, plan: SlicePlan) -> Weight:
    statistics = _statistics(plan)
    rows: int | None = None
    if plan.access is Access.INDEX:
        reader.exact_rows(plan, statistics)
        rows = statistics.candidates
    if rows == 0:
        return Weight(0, None)
    # This also checks whether the slice can be read here at all.
    sample = next(replace(reader, limit=_SAMPLE_ROWS).batches(plan, statistics), None)
    if rows is None:
        rows = _rows(reader.table.storage, plan)
    row_bytes = sample.nbytes / sample.num_rows if sample is not None and sample.num_rows else None
    return Weight(rows, row_bytes)


def _rows(storage: Storage, plan: SlicePlan) -> int:
    """The number of rows of the base file; twice as many with log files, whose rows are not
    counted."""
    base_file = plan.file_slice.base_file
    if base_file is None:
        return 2**40
    with open_parquet(storage, base_file.path) as file:
        return int(file.metadata.num_rows) * (2 if plan.file_slice.log_files else 1)


def unpacked(plan: bytes) -> SlicePlan:
    """A plan that the driver pickled for a task."""
    slice_plan: SlicePlan = pickle.loads(plan)  # noqa: S301 - from the driver, not a table
    return slice_plan


def _statistics(plan: SlicePlan) -> SliceStatistics:
    return SliceStatistics(plan.file_slice.name, plan.access)
