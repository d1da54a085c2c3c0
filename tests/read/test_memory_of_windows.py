"""What a query holds at a time is a window of slices and a portion of rows, however large the table
is."""

import gc
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyroaring import BitMap

from hudi_index_service import IndexedTable, open_table
from hudi_index_service.config import Settings
from hudi_index_service.hudi.snapshot import BaseFile, FileSlice, Snapshot
from hudi_index_service.optimizer.plan import Access, QueryPlan, SlicePlan
from hudi_index_service.read import parallel
from hudi_index_service.read.execution import Execution
from hudi_index_service.read.parallel import WINDOW, Job
from hudi_index_service.read.query import Binding, Query
from hudi_index_service.read.slices.found_rows import FoundRows
from hudi_index_service.read.slices.slice_reader import SliceReader

ALL = "amount >= 0 OR amount IS NULL"
SLICES, ROWS = 1_000, 1_000_000


def held() -> int:
    """The slices of which look-ups, or what they have found, are in memory."""
    gc.collect()
    return sum(isinstance(each, FoundRows) for each in gc.get_objects())


@pytest.mark.parametrize("use_index", ["require", "auto", "never"])
def test_a_stream_holds_what_was_found_in_a_window(golden_index, monkeypatch, use_index):
    monkeypatch.setattr(parallel, "WINDOW", 4)
    before = held()
    with open_table(golden_index("hundred_base_files", ["id", "amount"])) as table:
        scan = table.scan(ALL, use_index=use_index)
        most = max(held() for _ in islice(scan.to_batches(), 3, None, 20)) - before
    assert 0 < most <= 2 * 4  # this window and the one before it
    assert held() == before


@pytest.mark.parametrize("method", ["count", "exists", "row_ids", "to_arrow"])
def test_a_query_that_has_ended_holds_no_slice(own_table, method):
    table: IndexedTable = own_table("hundred_base_files", ["id", "amount"])
    before = held()
    getattr(table.scan(ALL, use_index="require"), method)()
    assert held() == before


@dataclass(frozen=True)
class EverySecondRow:
    """Stands in for the slice reader: every second row of each slice matches."""

    query: Query
    settings: Settings
    table: Any
    limit: int | None = None
    batches_of = SliceReader.batches_of

    def find(self, jobs: Sequence[Job]) -> list[FoundRows]:
        return [
            FoundRows(plan, statistics, self.query, BitMap(range(0, ROWS, 2)))
            for plan, statistics in jobs
        ]

    def rows(self, found: FoundRows) -> Iterator[pa.RecordBatch]:
        assert found.rows is not None
        yield pa.record_batch([pa.nulls(len(found.rows), pa.int64())], ["at"])


def test_a_billion_rows_are_read_window_by_window():
    files = [BaseFile(str(number), "", str(number), "1", 1) for number in range(SLICES)]
    slices = tuple(SlicePlan(FileSlice("", each.file_id, each), Access.INDEX) for each in files)
    query = Binding(None, None, "UTC").to(pa.schema([("at", pa.int64())]))
    table = SimpleNamespace(storage=SimpleNamespace(is_local=True))
    reader: Any = EverySecondRow(query, Settings(), table)
    run = Execution(QueryPlan(Snapshot("1", ()), None, slices), reader)
    before, rows, most = held(), 0, 0
    for number, batch in enumerate(run.batches()):
        rows += batch.num_rows
        if number % 200 == 199:
            most = max(most, held() - before)
    assert rows == SLICES * ROWS // 2
    assert 0 < most <= 2 * WINDOW
