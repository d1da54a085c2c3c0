"""What a read really did: for EXPLAIN ANALYZE, the log, and tests that count instead of timing."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter_ns

import pyarrow as pa
from hudi_index_parquet import ReadStats

from hudi_index_service.index.fetched import Fetched
from hudi_index_service.optimizer.plan import Access


@dataclass(slots=True)
class SliceStatistics:
    """One file slice's part of a read.

    Attributes:
        slice_name: The base file's path, or the file group's name.
        access: How it was read in the end.
        candidates: Row ids that the index gave; None where it was not asked.
        pages: Data pages read by row id.
        ranges: Ranges of bytes that these were read in.
        bytes_read: Bytes of the base file's columns and pages that were read, compressed. Log
            files are not counted.
        rows_checked: Rows that the residual looked at.
        rows_returned: Rows that it kept.
        index_requests: Requests for the index, its blocks and the page locations it keeps, that a
            remote store was sent; none for what is in the user's cache or open already.
        index_bytes: Bytes that came of these.
        opened: Index entries that were not open yet.
        lookup_ms: What asking the index took, entries' opening included, in milliseconds.
        ms: What reading the slice took, that included. Slices that are read at once delay each
            other.
        keys: Record keys that were looked for in the base file; None where none were asked for.
        note: Why the access differs from the plan, if it does.
    """

    slice_name: str
    access: Access
    candidates: int | None = None
    pages: int = 0
    ranges: int = 0
    bytes_read: int = 0
    rows_checked: int = 0
    rows_returned: int = 0
    index_requests: int = 0
    index_bytes: int = 0
    opened: int = 0
    lookup_ms: float = 0.0
    ms: float = 0.0
    keys: int | None = None
    note: str = ""

    def add_read(self, did: ReadStats) -> None:
        """Counts what the row reader did."""
        self.pages += did.pages
        self.ranges += did.ranges
        self.bytes_read += did.bytes

    def add_fetched(self, fetched: Fetched) -> None:
        """Counts what came of the index."""
        self.index_requests += fetched.requests
        self.index_bytes += fetched.bytes
        self.opened += fetched.opened

    @contextmanager
    def timed(self) -> Iterator[None]:
        """What the block takes is time of the slice's reading."""
        started = perf_counter_ns()
        try:
            yield
        finally:
            self.ms += (perf_counter_ns() - started) / 1e6

    def timing(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The same batches, whose making is time of the slice's reading: not what is done with
        them."""
        while True:
            with self.timed():
                batch = next(batches, None)
            if batch is None:
                return
            yield batch


@dataclass(slots=True)
class ReadStatistics:
    """A whole read. The sums are over the slices."""

    slices: list[SliceStatistics] = field(default_factory=list)

    def count(self, access: Access) -> int:
        """How many slices were read this way."""
        return sum(each.access is access for each in self.slices)

    @property
    def pages(self) -> int:
        """Data pages read by row id."""
        return sum(each.pages for each in self.slices)

    @property
    def bytes_read(self) -> int:
        """Bytes of base files read, compressed."""
        return sum(each.bytes_read for each in self.slices)

    @property
    def index_requests(self) -> int:
        """Requests for index data that a remote store was sent."""
        return sum(each.index_requests for each in self.slices)

    @property
    def index_bytes(self) -> int:
        """Bytes of index data that it sent."""
        return sum(each.index_bytes for each in self.slices)

    @property
    def rows_checked(self) -> int:
        """Rows that the residual looked at."""
        return sum(each.rows_checked for each in self.slices)

    @property
    def rows_returned(self) -> int:
        """Rows that it kept."""
        return sum(each.rows_returned for each in self.slices)
