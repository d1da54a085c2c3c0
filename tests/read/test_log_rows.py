"""Slices with log files: their log rows are merged alone, and kept; an index finds other rows."""

import errno
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_index_service import IndexedTable, open_table
from hudi_index_service.config import ReadSettings, Settings
from hudi_index_service.errors import IndexRequired, NeedsSpark, RowIdsUnavailable
from hudi_index_service.hudi.files.log_file import LogKeysUnknown
from hudi_index_service.hudi.hudi_rs import slice_merger
from hudi_index_service.hudi.table import HudiTable
from hudi_index_service.index.metadata.segments import exclusion
from hudi_index_service.optimizer import decide
from hudi_index_service.optimizer.plan import Access
from hudi_index_service.read.slices.log_rows import LogRowsCache
from hudi_index_service.read.slices.open_slices import NO_ROW_FOUND
from tests.indexed import indexed
from tests.same_rows import assert_same_rows

UPDATED = "id = '51'"
"""The one row that has a newer version in a log file: 154 became 155."""


@pytest.fixture(scope="module")
def built(golden_index) -> Path:
    """Two base files of 10,000 rows, one of them below a log file."""
    return golden_index("three_pages_with_logs", ["id", "amount", "msg"])


@pytest.fixture
def table(built) -> Iterator[IndexedTable]:
    with open_table(built) as table:
        yield table


@pytest.fixture
def merges(recorded) -> list[str]:
    """How slices are merged: ``part`` or ``whole``."""
    made: list[str] = []
    recorded(HudiTable, "read_touched", lambda *_, **__: made.append("part"))
    recorded(HudiTable, "read_slice", lambda *_, **__: made.append("whole"))
    return made


def rows(table: IndexedTable, where: str, **options: Any) -> list[tuple[str, int]]:
    found = table.scan(where, columns=["id", "amount"], **options).to_arrow()
    return sorted(zip(found["id"].to_pylist(), found["amount"].to_pylist(), strict=True))


def test_log_rows_are_merged_once_and_the_other_rows_found_by_index(table, merges):
    assert rows(table, "id IN ('51', '53', '54')") == [("51", 155), ("53", 159), ("54", 162)]
    assert merges == ["part"]
    assert rows(table, UPDATED, use_index="require") == [("51", 155)]
    scan = table.scan("id IN ('51', '53')")
    assert (scan.count(), scan.exists()) == (2, True)
    assert rows(table, "amount BETWEEN 150 AND 156") == [("50", 150), ("51", 155), ("52", 156)]
    assert merges == ["part"]
    assert rows(table, "msg = 'Buying car 2' AND dt = '2026-01-02' AND amount < 400")
    assert merges == ["part", "part"]  # for another column


def test_a_row_of_the_base_file_that_was_updated_is_not_found_by_its_old_value(table):
    assert rows(table, "amount = 153") == []
    assert table.scan("amount = 153").count() == 0
    assert not table.scan("amount = 153").exists()
    assert rows(table, "amount = 155") == [("51", 155)]
    assert table.scan("amount = 155").count() == 1


def test_statistics_of_base_files_leave_the_log_rows(table, merges):
    scan = table.scan("amount > 1000000")
    explanation = scan.explain(analyze=True)
    assert [each.access for each in explanation.plan.slices].count(Access.LOGS) == 1
    read = [each.actual for each in explanation.slices or () if each.actual is not None]
    assert [each.log_rows for each in read if each.log_rows] == [1]
    assert scan.count() == 0
    assert "log rows only" in str(explanation)
    assert set(merges) == {"part"}


def test_log_rows_are_left_where_open_entries_find_no_row(golden, tmp_path, monkeypatch):
    path = golden("three_pages_with_logs").put(tmp_path / "t")
    monkeypatch.setattr(decide, "ASKED_WHILE_OPEN", 1)
    monkeypatch.setattr(exclusion, "_MOST_PAIRS", 0)  # segments exclude no file by a range
    where = "amount = 155 OR id = '50' AND amount BETWEEN 13 AND 14"
    with indexed(path, ["id", "amount"]) as table:
        for _ in range(2):  # now the entries are open
            assert rows(table, where) == [("51", 155)]
            assert table.scan(where).count() == 1
        plan = table.scan(where).planned().plan
    assert [each.access for each in plan.slices] == [Access.SKIP, Access.LOGS]
    assert plan.slices[0].rule == NO_ROW_FOUND


def test_a_row_exists_without_a_merge_if_no_log_file_replaces_it(table, merges):
    assert table.scan("id IN ('51', '53')").exists()
    assert table.scan("id = '53'").exists()
    assert merges == []
    assert table.scan("id = '51' AND amount = 155").exists()  # the log row alone
    assert merges == ["part"]
    assert not table.scan("amount = 153").exists()  # the row that it replaces
    assert table.scan("id = '53'").exists()
    assert merges == ["part"]


@pytest.mark.parametrize("run", ["count", "row_ids", "to_arrow"])
def test_log_rows_are_asked_for_once_a_slice(table, recorded, run):
    asked = recorded(LogRowsCache, "of", lambda self, merged, _: merged.plan.file_slice.name)
    getattr(table.scan("id IN ('51', '53')"), run)()
    assert len(asked) == len(set(asked)) == 1


def test_row_ids_leave_out_the_rows_in_log_files(table):
    found = table.scan("id IN ('51', '53', '54')").row_ids()
    assert sum(map(len, found.values())) == 2
    assert found.in_log_files == 1
    assert table.scan("id = '54'").row_ids().in_log_files == 0


def test_limits_count_both_kinds_of_rows(table):
    for limit in range(5):
        found = table.scan("id IN ('51', '53', '55')", limit=limit).to_arrow()
        assert found.num_rows == min(3, limit)
    assert table.scan("id LIKE '5%'", limit=700).to_arrow().num_rows == 700


def test_read_optimized_queries_ignore_log_files(table, merges):
    assert rows(table, UPDATED, query_type="read_optimized") == [("51", 153)]
    assert merges == []


def test_without_an_index_the_base_file_is_scanned(table, merges):
    assert rows(table, f"{UPDATED} AND ts >= 0", use_index="never") == [("51", 155)]
    assert rows(table, "amount = 153", use_index="never") == []
    assert table.scan().count() == 20_000
    assert set(merges) == {"part"}


def test_slices_with_many_log_rows_are_merged_whole(table, merges, monkeypatch):
    monkeypatch.setattr(decide, "MOST_TOUCHED", 0)
    for _ in range(2):
        scan = table.scan(UPDATED)
        assert (scan.count(), scan.statistics.slices[1].note) == (
            1,
            "merging it whole costs less",
        )
    assert merges == ["whole", "whole"]
    with pytest.raises(IndexRequired, match="merging it whole costs less"):
        rows(table, UPDATED, use_index="require")


def test_text_that_is_not_utf8_leaves_a_whole_merge_to_spark(golden, tmp_path, monkeypatch):
    path = golden("three_pages_with_logs").put(tmp_path / "t")
    for base_file in path.glob("*/*.parquet"):
        rows = pq.read_table(base_file, partitioning=None)
        texts = pa.array([b"\xff"] * len(rows), pa.binary()).cast(pa.string(), safe=False)
        broken = rows.set_column(rows.schema.get_field_index("msg"), "msg", texts)
        pq.write_table(broken, base_file, write_page_index=True, store_schema=False)
    monkeypatch.setattr(decide, "MOST_TOUCHED", -1)
    with open_table(path) as table, pytest.raises(NeedsSpark, match="non UTF-8 data"):
        table.scan("amount >= 0").to_arrow()


def test_unknown_keys_in_log_files_mean_a_whole_merge(table, merges, monkeypatch):
    def fail(self, file_slice):
        raise LogKeysUnknown("log at byte 0: a block of partial updates")

    monkeypatch.setattr(HudiTable, "touched_keys", fail)
    assert rows(table, UPDATED) == [("51", 155)]
    assert rows(table, "amount = 153") == []
    assert merges == ["whole", "whole"]
    with pytest.raises(RowIdsUnavailable, match="a block of partial updates"):
        table.scan(UPDATED).row_ids()


def test_rows_are_kept_within_their_budget(built, merges):
    settings = Settings(read=ReadSettings(log_rows_mb=1))
    with open_table(built, settings=settings) as table:
        assert rows(table, UPDATED) == rows(table, UPDATED)
        table._queries._log_rows._most_bytes = 1
        table._queries._log_rows._bytes = 0
        assert table.scan("amount = 155").to_arrow().num_rows == 1  # with all columns
        assert table.scan("amount = 155").to_arrow().num_rows == 1
    assert merges == ["part"] * 3


def test_threads_merge_a_slice_once(built, merges):
    with open_table(built) as table, ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda _: rows(table, UPDATED), range(16)))
    assert found == [[("51", 155)]] * 16
    assert merges == ["part"]


def test_full_disk_means_a_whole_merge(built, merges, monkeypatch):
    def fail(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(slice_merger.TimelineCopy, "holding", fail)
    with open_table(built) as table:
        assert rows(table, UPDATED) == [("51", 155)]
    assert merges == ["part", "whole"]


def test_compaction_ends_it(golden, tmp_path, merges):
    shape = golden("compacted_twice")
    path = shape.put(tmp_path, "updated")
    with indexed(path, ["name"]) as table:
        table.scan("name = 'x1'").to_arrow()
        before = len(merges)
        shape.put(path, "compacted again")
        table.build(strategy="all").raise_for_failures()
        plan = table.scan("name = 'x1'").explain(analyze=True).plan
    assert not any(each.file_slice.log_files for each in plan.slices)
    assert len(merges) == before


def test_damaged_index_entry(built, tmp_path, merges):
    path = shutil.copytree(built, tmp_path / "t")
    for data in path.glob(".hoodie/.index/lucene/**/*.pack"):
        data.write_bytes(data.read_bytes()[:-100])
    with open_table(path) as table:
        assert rows(table, "id IN ('51', '53', '54')") == [("51", 155), ("53", 159), ("54", 162)]
    assert merges == ["part"]


@pytest.mark.parametrize("name", ["with logs", "with logs, partitioned"])
def test_every_column_of_every_row(awkward, name, monkeypatch):
    path = awkward(name).path
    where = f"id IN ({', '.join(map(repr, map(str, range(25, 80))))})"
    monkeypatch.setattr(decide, "MOST_TOUCHED", 1.0)
    with open_table(path) as table:
        in_part = table.scan(where).to_arrow()
        scan = table.scan(where)
        assert_same_rows(scan.to_arrow(), in_part)
        assert any(each.log_rows for each in scan.statistics.slices)
    monkeypatch.setattr(decide, "MOST_TOUCHED", -1)
    with open_table(path) as table:
        assert_same_rows(in_part, table.scan(where).to_arrow())
