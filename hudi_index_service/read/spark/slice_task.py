"""Reads slices in a Spark task.

Only paths, plans and the query are sent to the task, which opens the table and the entries itself,
in the planned snapshot.
"""

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pyarrow as pa
from pyroaring import BitMap

from hudi_index_service.config import BuildSettings, ReadSettings, settings
from hudi_index_service.errors import NeedsSpark, Remedy, SnapshotChanged, TableFeatureUnsupported
from hudi_index_service.hudi import open_hudi_table
from hudi_index_service.hudi.files.base_file import column_bytes, present_columns
from hudi_index_service.hudi.files.parquet_file import open_parquet, row_group_rows
from hudi_index_service.hudi.snapshot import BaseFile
from hudi_index_service.optimizer.cost.pages import share_of_pages
from hudi_index_service.optimizer.plan import Access, SlicePlan
from hudi_index_service.read.base_file.kept_pages import keep_less_for_tasks
from hudi_index_service.read.execution import first_rows
from hudi_index_service.read.query import Query
from hudi_index_service.read.slices.log_rows import LogRowsCache
from hudi_index_service.read.slices.reader_pool import ReaderPool
from hudi_index_service.read.slices.slice_reader import SliceReader
from hudi_index_service.read.spark.parts import Part, RowGroup, Weight
from hudi_index_service.read.statistics import SliceStatistics
from hudi_index_service.storage.store import Storage

_SAMPLE_ROWS = 16
_NOTHING = RowGroup(0, 0.0)

# Rows of the slice may already be with Spark, so another reader cannot take over.
LATE_REMEDY = Remedy(
    "Use to_arrow() or to_batches() of a table that was opened with spark=<session with Hudi>, "
    'or Spark\'s own spark.read.format("hudi"), for this query.',
    command="Use `hudi-index sql`.",
)


@dataclass(frozen=True, slots=True)
class SliceTask:
    """The data that a process needs to read slices for a query. Make it by `of`.

    Attributes:
        packed: The plans of groups of slices, pickled one by one, so that a task unpacks only those
            that it reads.
    """

    storage: Storage
    query: Query
    instant: str
    read: ReadSettings
    build: BuildSettings
    index_required: bool
    limit: int | None
    packed: Sequence[bytes]

    @classmethod
    def of(
        cls, reader: SliceReader, groups: Iterable[Sequence[SlicePlan]], limit: int | None = None
    ) -> "SliceTask":
        """The task that does the work of `reader` in another process, for about `limit` rows at
        most, on groups of slices."""
        reader_settings = reader.settings
        return cls(
            storage=reader.table.storage,
            query=reader.query,
            instant=reader.instant,
            read=reader_settings.read,
            build=reader_settings.build,
            index_required=reader.index_required,
            limit=limit,
            packed=[pickle.dumps(tuple(each)) for each in groups],
        )

    def plans(self, group: int) -> Sequence[SlicePlan]:
        """The plans of a group of slices, by its number."""
        plans: Sequence[SlicePlan] = pickle.loads(self.packed[group])  # noqa: S301 - the driver's
        return plans

    def batches(
        self,
        parts: Iterable[Part],
        observe: Callable[[int, SliceStatistics], None] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """The rows of parts of slices, each of which is a group. Raises what `SliceReader.batches`
        raises.

        Args:
            observe: Called with a part's number and statistics after it has been read.

        Raises:
            SnapshotChanged: a file of the snapshot is gone.
            NeedsSpark: only Spark can read a slice, which its first rows did not show.
        """
        keep_less_for_tasks()

        def of_parts(reader: SliceReader) -> Iterator[pa.RecordBatch]:
            for part in parts:
                (plan,) = self.plans(part.slice_number)
                statistics = SliceStatistics.of(plan)
                try:
                    yield from statistics.timing(reader.batches(plan, statistics, part.rows))
                except TableFeatureUnsupported as error:
                    raise NeedsSpark(error.message, remedy=LATE_REMEDY) from error
                if observe is not None:
                    observe(part.number, statistics)

        with self.opened() as reader:
            yield from first_rows(of_parts(reader), self.limit)

    def weights(self, slices: Iterable[int], *, whole: float) -> list[Weight]:
        """The approximate size of slices, each of which is a group. Raises what `batches` raises.

        Args:
            whole: Up to this many bytes to be read, a slice is not read in parts.
        """
        with self.opened() as reader:
            return [_weight(reader, plan, whole) for each in slices for plan in self.plans(each)]

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


def numbers_in(batches: Iterable[pa.RecordBatch]) -> Iterator[int]:
    """The numbers in the only column of some batches, by which tasks know what to do."""
    return (number for batch in batches for number in batch.column(0).to_pylist())


def _weight(reader: SliceReader, plan: SlicePlan, whole: float) -> Weight:
    statistics = SliceStatistics.of(plan)
    exact: BitMap | None = None
    candidates: int | None = None
    if plan.access is Access.INDEX:
        (found,) = reader.exact_rows([(plan, statistics)])
        exact = None if found is None else found.rows
        candidates = statistics.candidates
    if candidates == 0:
        return Weight(0, None, [_NOTHING])
    # This also checks whether the slice can be read here at all.
    sample = next(replace(reader, limit=_SAMPLE_ROWS).batches(plan, statistics), None)
    row_bytes = sample.nbytes / sample.num_rows if sample is not None and sample.num_rows else None
    base_file = plan.file_slice.base_file
    if candidates is not None:
        size = base_file.size * share_of_pages(candidates, plan.total)
        if size <= whole:  # without opening the file
            return Weight(candidates, row_bytes, [RowGroup(plan.total, size)])
    groups = _row_groups(reader, base_file, candidates, exact)
    rows = sum(each.rows for each in groups)
    if plan.file_slice.log_files:
        # Reading a part would take merging all log rows, which takes as long as reading the slice.
        groups = [RowGroup(rows, sum(each.bytes for each in groups))]
        rows = 2 * rows  # log rows are not counted
    return Weight(rows if candidates is None else candidates, row_bytes, groups)


def _row_groups(
    reader: SliceReader, base_file: BaseFile, candidates: int | None, exact: BitMap | None
) -> list[RowGroup]:
    """The row groups of a base file.

    Args:
        candidates: The number of rows that the index finds; None if the file is scanned.
        exact: These rows, if they are known.
    """
    columns = reader.query.needed
    with open_parquet(reader.table.storage, base_file.path, base_file.size) as file:
        present = present_columns(file.schema_arrow, columns, source=base_file.path)
        groups = []
        for number, rows in enumerate(row_group_rows(file)):
            size, count = float(column_bytes(file, present, [number])), len(rows)
            if exact is not None:
                size *= share_of_pages(exact.range_cardinality(rows.start, rows.stop), count)
            elif candidates is not None:
                size *= share_of_pages(candidates * count / file.metadata.num_rows, count)
            groups.append(RowGroup(count, size))
    return groups or [_NOTHING]
