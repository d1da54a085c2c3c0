"""What is asked for little begins few slices: one at first, then some ahead of need."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyroaring import BitMap

from hudi_index_service.config import ReadSettings, Settings
from hudi_index_service.optimizer.plan import Access, QueryPlan, SlicePlan
from hudi_index_service.read.execution import Execution
from hudi_index_service.read.query import Query, bind_query
from hudi_index_service.read.statistics import SliceStatistics
from hudi_index_service.storage import Storage
from hudi_index_service.table.protocol import FileSlice, Snapshot

SCHEMA = pa.schema([("at", pa.int64())])


@dataclass(frozen=True)
class CountingReader:
    """Stands for the slice reader: slice number n has `rows[n]` rows.

    Attributes:
        begun: The slices that were begun.
    """

    rows: list[int]
    query: Query = field(default_factory=lambda: bind_query(None, None, SCHEMA, time_zone="UTC"))
    settings: Settings = field(default_factory=lambda: Settings(read=ReadSettings(parallelism=4)))
    limit: int | None = None
    begun: list[int] = field(default_factory=list)
    table: Any = field(default_factory=lambda: SimpleNamespace(storage=Storage("/")))

    def batches(self, plan: SlicePlan, statistics: SliceStatistics) -> Iterator[pa.RecordBatch]:
        number = int(plan.file_slice.file_id)
        self.begun.append(number)
        if self.rows[number] < 0:
            raise FileNotFoundError(plan.file_slice.name)
        for _ in range(self.rows[number]):
            yield pa.record_batch([pa.array([number])], schema=SCHEMA)

    def may_settle(self, plan: SlicePlan) -> bool:
        return False

    def settled_rows(self, plan: SlicePlan, statistics: SliceStatistics) -> BitMap | None:
        return None


def execution(*rows: int) -> tuple[Execution, CountingReader]:
    slices = tuple(
        SlicePlan(FileSlice("", str(number), None), Access.SCAN) for number in range(len(rows))
    )
    reader = CountingReader(list(rows))
    return Execution(QueryPlan(Snapshot("1", ()), None, slices), reader), reader  # type: ignore[arg-type]


def test_a_row_in_the_first_slice_is_enough() -> None:
    run, reader = execution(1, *[1] * 30)
    assert run.exists()
    assert reader.begun == [0]


def test_a_row_further_on_is_looked_for_ahead() -> None:
    run, reader = execution(0, 0, 0, 1, *[0] * 30)
    assert run.exists()
    assert set(range(4)) <= set(reader.begun) <= set(range(3 + 1 + 4))
    assert len(reader.begun) == len(set(reader.begun))


def test_no_row_anywhere() -> None:
    run, reader = execution(*[0] * 30)
    assert not run.exists()
    assert sorted(reader.begun) == list(range(30))
    assert not execution()[0].exists()


def test_a_limit_takes_the_first_rows_in_order() -> None:
    run, reader = execution(*[2] * 30)
    assert run.table(5).column("at").to_pylist() == [0, 0, 1, 1, 2]
    assert len(reader.begun) <= 3 + 4
    assert run.table(0).num_rows == 0
    assert run.table(100).num_rows == 60


def test_a_failure_on_the_way_is_raised() -> None:
    run, _ = execution(0, -1, 1)
    with pytest.raises(FileNotFoundError):
        run.exists()


def test_slices_that_are_skipped_are_not_begun() -> None:
    run, reader = execution(1, 1)
    skipped = run.plan.slices[0].skipped("for the test", "test")
    run.plan = QueryPlan(run.plan.snapshot, None, (skipped, run.plan.slices[1]))
    assert (run.exists(), run.count(), run.table().num_rows) == (True, 1, 1)
    assert set(reader.begun) == {1}
    assert run.statistics.count(Access.SKIP) == 3
