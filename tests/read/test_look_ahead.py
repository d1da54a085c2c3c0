"""Queries for few rows start few slices: one at first, then some ahead."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from hudi_index_service.config import ReadSettings, Settings
from hudi_index_service.hudi.snapshot import BaseFile, FileSlice, Snapshot
from hudi_index_service.optimizer.plan import Access, QueryPlan, SlicePlan
from hudi_index_service.read.execution import Execution
from hudi_index_service.read.parallel import Job
from hudi_index_service.read.query import Binding, Query
from hudi_index_service.read.slices.found_rows import FoundRows
from hudi_index_service.read.statistics import SliceStatistics
from hudi_index_service.storage.store import Storage

SCHEMA = pa.schema([("at", pa.int64())])


@dataclass(frozen=True)
class CountingReader:
    """Stand-in for the slice reader: slice number n has `rows_in[n]` rows.

    Attributes:
        started: The slices that were started.
    """

    rows_in: list[int]
    query: Query = field(default_factory=lambda: Binding(None, None, "UTC").to(SCHEMA))
    settings: Settings = field(default_factory=lambda: Settings(read=ReadSettings(parallelism=4)))
    limit: int | None = None
    started: list[int] = field(default_factory=list)
    table: Any = field(default_factory=lambda: SimpleNamespace(storage=Storage("/")))

    def rows_of(self, number: int) -> Iterator[pa.RecordBatch]:
        self.started.append(number)
        if self.rows_in[number] < 0:
            raise FileNotFoundError(str(number))
        for _ in range(self.rows_in[number]):
            yield pa.record_batch([pa.array([number])], schema=SCHEMA)

    def rows(self, found: FoundRows) -> Iterator[pa.RecordBatch]:
        return self.rows_of(int(found.plan.file_slice.file_id))

    def batches(self, plan: SlicePlan, statistics: SliceStatistics) -> Iterator[pa.RecordBatch]:
        return self.rows_of(int(plan.file_slice.file_id))

    def find(self, jobs: Sequence[Job]) -> list[FoundRows]:
        return [FoundRows(plan, statistics, self.query) for plan, statistics in jobs]

    def matching(self, group: Sequence[FoundRows]) -> list[pa.RecordBatch]:
        return [batch for each in group for batch in self.rows(each)]

    def exact_rows(self, jobs: Sequence[Job], **how: bool) -> list[FoundRows | None]:
        return [None] * len(jobs)

    exact_base_rows = exact_rows


def execution(*rows: int) -> tuple[Execution, CountingReader]:
    files = [BaseFile(str(number), "", str(number), "1", 1) for number in range(len(rows))]
    slices = tuple(SlicePlan(FileSlice("", each.file_id, each), Access.SCAN) for each in files)
    reader = CountingReader(list(rows))
    return Execution(QueryPlan(Snapshot("1", ()), None, slices), reader), reader


def test_exists_stops_at_a_row_in_the_first_slice():
    run, reader = execution(1, *[1] * 30)
    assert run.exists()
    assert reader.started == [0]


def test_exists_looks_ahead_until_a_row_is_found():
    run, reader = execution(0, 0, 0, 1, *[0] * 30)
    assert run.exists()
    assert set(range(4)) <= set(reader.started) <= set(range(3 + 1 + 4))
    assert len(reader.started) == len(set(reader.started))


def test_exists_starts_every_slice_if_no_row_matches():
    run, reader = execution(*[0] * 30)
    assert not run.exists()
    assert sorted(reader.started) == list(range(30))
    assert not execution()[0].exists()


def test_a_limit_takes_the_first_rows_in_order():
    run, reader = execution(*[2] * 30)
    assert run.table(5).column("at").to_pylist() == [0, 0, 1, 1, 2]
    assert len(reader.started) <= 3 + 4
    assert run.table(0).num_rows == 0
    assert run.table(100).num_rows == 60


def test_a_failure_before_the_first_row_is_raised():
    run, _ = execution(0, -1, 1)
    with pytest.raises(FileNotFoundError):
        run.exists()


def test_skipped_slices_are_not_started():
    run, reader = execution(1, 1)
    skipped = run.plan.slices[0].skipped("for the test", "test")
    run.plan = QueryPlan(run.plan.snapshot, None, (skipped, run.plan.slices[1]))
    assert (run.exists(), run.count(), run.table().num_rows) == (True, 1, 1)
    assert set(reader.started) == {1}
    assert run.statistics.count(Access.SKIP) == 1
