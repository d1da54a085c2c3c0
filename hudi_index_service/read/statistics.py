"""Statistics of a read, for EXPLAIN ANALYZE, the log, and tests that count instead of timing."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter_ns
from typing import Self

import pyarrow as pa
from hudi_index_parquet import ReadStats

from hudi_index_service.index.files.opened_file import Fetched
from hudi_index_service.optimizer.plan import NOT_COVERED, Access, SlicePlan


@dataclass(slots=True)
class SliceStatistics:
    """The statistics of one file slice.

    Attributes:
        slice_name: The base file's path, or the file group's name.
        access: The access that was used in the end.
        candidates: The number of row ids from the index; None if it was not used.
        pages: The number of data pages read by row id.
        kept_pages: Those of these pages that were kept in memory, and not read from the file.
        ranges: The number of byte ranges in which the others were read.
        bytes_read: Compressed bytes of the columns and pages that were read, without log files.
        rows_checked: The number of rows that the residual checked, or that a scan ruled out by
            a condition where its values lie.
        rows_returned: The number of rows that it kept.
        index_requests: Requests to a remote store for the index, its blocks and the page locations
            in it; none for data that is open or in the user's cache.
        index_bytes: Bytes that these requests returned.
        opened: The number of index entries that had to be opened.
        lookup_ms: Milliseconds of index look-ups, including the opening of entries.
        ms: Milliseconds of reading the slice, including look-ups. Slices that are read in parallel
            delay each other.
        log_rows: The number of log rows that were checked; None if none were merged alone.
        stored: Whether rows were read from values that an entry stores, not from the base file.
        keys: The number of record keys searched in the base file; None if none were, or if the read
            is not a search for keys.
        note: Why the access differs from the plan, if it does.
    """

    slice_name: str
    access: Access
    candidates: int | None = None
    pages: int = 0
    kept_pages: int = 0
    ranges: int = 0
    bytes_read: int = 0
    rows_checked: int = 0
    rows_returned: int = 0
    index_requests: int = 0
    index_bytes: int = 0
    opened: int = 0
    lookup_ms: float = 0.0
    ms: float = 0.0
    log_rows: int | None = None
    stored: bool = False
    keys: int | None = None
    note: str = ""
    _is_timed: bool = field(default=False, repr=False, compare=False)

    @classmethod
    def of(cls, plan: SlicePlan) -> Self:
        """The statistics of a slice that is not read yet."""
        return cls(plan.file_slice.name, plan.access)

    def add_read(self, stats: ReadStats) -> None:
        """Adds the counts of the row reader."""
        self.pages += stats.pages
        self.kept_pages += stats.kept
        self.ranges += stats.ranges
        self.bytes_read += stats.bytes

    def add_fetched(self, fetched: Fetched) -> None:
        """Adds the counts of index data fetched."""
        self.index_requests += fetched.requests
        self.index_bytes += fetched.bytes
        self.opened += fetched.opened

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Adds the duration of the block to the slice's time, unless a block around it does."""
        if self._is_timed:
            yield
            return
        started, self._is_timed = perf_counter_ns(), True
        try:
            yield
        finally:
            self._is_timed = False
            self.ms += (perf_counter_ns() - started) / 1e6

    def timing(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The same batches; adds the time of producing them to the slice's time, but not the time
        of the consumer."""
        while True:
            with self.timed():
                batch = next(batches, None)
            if batch is None:
                return
            yield batch


class _Sum:
    """The sum of a number over the slices that were read."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, read: "ReadStatistics", owner: type) -> int:
        return sum(getattr(each, self._name) for each in read.begun.values())


@dataclass(slots=True)
class ReadStatistics:
    """The statistics of a whole read. Its pages, bytes, rows and requests are the sums of those of
    its slices, see `SliceStatistics`.

    Attributes:
        plans: The plans of all slices, in order.
        begun: The statistics of the slices that were read, by position. Those of skipped slices are
            made when they are asked for.
        reached: The number of slices that were read or passed over.
    """

    pages = _Sum()
    kept_pages = _Sum()
    bytes_read = _Sum()
    rows_checked = _Sum()
    rows_returned = _Sum()
    index_requests = _Sum()
    index_bytes = _Sum()

    plans: Sequence[SlicePlan] = ()
    begun: dict[int, SliceStatistics] = field(default_factory=dict)
    reached: int = 0

    def start(self, plans: Sequence[SlicePlan]) -> None:
        """Forgets an earlier read; none of these slices has been read."""
        self.plans, self.begun, self.reached = plans, {}, 0

    def begin(self, number: int) -> SliceStatistics:
        """New statistics of a slice, which is read next."""
        self.reached = max(self.reached, number + 1)
        self.begun[number] = begun = SliceStatistics.of(self.plans[number])
        return begun

    @property
    def slices(self) -> list[SliceStatistics]:
        """The statistics of the slices, in order, without those not reached."""
        return [
            self.begun.get(number) or SliceStatistics.of(each)
            for number, each in enumerate(self.plans[: self.reached])
        ]

    @property
    def left_out(self) -> int:
        """The number of slices that the query left out, though rows of theirs may match."""
        return sum(each.rule == NOT_COVERED for each in self.plans)

    def count(self, access: Access) -> int:
        """The number of slices with this access."""
        count = sum(each.access is access for each in self.begun.values())
        if access is not Access.SKIP:
            return count
        return count + self.reached - len(self.begun)
