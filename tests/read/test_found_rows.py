"""The rows that look-ups found in many slices are read by one call, with the same result and the
same counts as slice by slice."""

from typing import Any

import pyarrow as pa
import pytest

from hudi_index_service.errors import SnapshotChanged, StorageFailed
from hudi_index_service.read import parallel
from hudi_index_service.read.scan import Scan
from hudi_index_service.read.slices import base_rows, found_rows, slice_reader
from hudi_index_service.read.statistics import ReadStatistics, SliceStatistics
from hudi_index_service.table import IndexedTable

pytestmark = pytest.mark.usefixtures("keeps_no_pages")


@pytest.fixture
def calls(recorded) -> list[int]:
    """The number of files of each call that reads several."""
    return recorded(found_rows, "read_files", lambda files, columns, **_: len(files))


def counts(statistics: ReadStatistics | None) -> list[tuple[Any, ...]]:
    assert statistics is not None

    def of_slice(each: SliceStatistics) -> tuple[Any, ...]:
        read = each.pages, each.ranges, each.bytes_read
        return each.slice_name, each.access, *read, each.rows_checked, each.rows_returned

    return [of_slice(each) for each in statistics.slices]


@pytest.mark.parametrize(
    ("name", "columns", "where", "expected_calls"),
    [
        ("hundred_base_files", ["id"], "id IN ('3', '77', '123', '160', '199')", [5]),
        ("hundred_base_files", ["amount"], "amount BETWEEN 20 AND 60 OR amount = 150", [22]),
        ("hundred_base_files", ["amount", "msg"], "amount < 90 AND msg = 'Buying car 1'", [45]),
        ("hundred_base_files", ["id"], "id = '77'", []),
        ("hundred_base_files", ["amount"], "amount < 0", []),
        ("seven_partitions", ["amount"], "amount BETWEEN 30 AND 200", [7]),
        ("seven_partitions", ["amount"], "amount > 30 AND (digit = '1' OR amount < 99)", [5]),
        ("null_partitions_hive_style", ["id"], "id LIKE '1%'", [8]),
        ("null_partitions", ["id"], "id LIKE '1%'", [8]),
        ("columns_added_and_widened", ["i"], "i IN (2, 12, 20, 30, 3000000000)", []),
    ],
)
def test_a_query_reads_its_rows_by_one_call(opened, calls, name, columns, where, expected_calls):
    assert_read_like_one_by_one(opened(name, columns), where)
    assert calls == expected_calls


def assert_read_like_one_by_one(table: IndexedTable, where: str) -> None:
    """Small files would rather be scanned, so the index is required."""
    scan = table.scan(where, use_index="require")
    rows, read = scan.to_arrow(), counts(scan.statistics)
    if not rows.num_rows:
        assert not any(each[-1] for each in read)
        return
    expected = one_by_one(scan)
    assert rows.cast(expected.schema).equals(expected)
    assert read == counts(scan.statistics)


def one_by_one(scan: Scan) -> pa.Table:
    """The rows, each slice's by calls of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(slice_reader, "in_calls", lambda found: [[each] for each in found])
        return pa.Table.from_batches(list(scan.to_batches()))


@pytest.mark.parametrize(
    ("patched", "most", "expected_calls"),
    [
        ((parallel, "WINDOW"), 4, [4, 4, 4, 4, 4, 2]),
        ((found_rows, "FIRST_PAGE"), 10, [5, 5, 5, 5, 2]),  # two rows of each file
        ((found_rows, "BATCH_BYTES"), 1, []),
    ],
)
def test_large_results_are_read_by_several_calls(
    opened, calls, monkeypatch, patched, most, expected_calls
):
    monkeypatch.setattr(*patched, most)
    table = opened("hundred_base_files", ["amount"])
    assert_read_like_one_by_one(table, "amount BETWEEN 20 AND 60 OR amount = 150")
    assert calls == expected_calls


def test_files_are_counted_by_the_columns_that_are_read(opened, calls, monkeypatch):
    """Of two columns, many more files fit into the bytes of a call than of all eight."""
    table = opened("hundred_base_files", ["id"])
    monkeypatch.setattr(found_rows, "BATCH_BYTES", 8_000)
    every = table.scan("amount > 30").to_arrow()
    of_all = list(calls)
    calls.clear()
    few = table.scan("amount > 30", columns=["amount"]).to_arrow()
    assert few.num_rows == every.num_rows > 0
    assert sum(calls) == sum(of_all) == 100
    assert 2 * len(calls) < len(of_all)


@pytest.mark.parametrize(
    ("name", "indexed", "where", "expected_calls"),
    [
        ("hundred_base_files", "id", "amount > 30 AND msg LIKE '%car%'", [100]),
        ("hundred_base_files", "id", "NOT amount > 30 OR msg IS NULL", [100]),
        ("seven_partitions", "id", "amount > 30 AND digit <> '1'", [6]),
        ("null_partitions_hive_style", "id", "ts >= 0", [9]),
        ("awkward_clustered_partitioned", "id", "ratio > 0 OR born < DATE'2000-01-01'", [3]),
        ("awkward_clustered_partitioned", "id", "name < 'm' OR seen IS NULL", [3]),
        ("awkward_clustered_partitioned", "id", "msg RLIKE 'a+'", []),
        ("columns_added_and_widened", "s", "i < 30", [1, 1]),
    ],
)
def test_small_files_without_an_index_are_read_by_one_call(
    opened, calls, name, indexed, where, expected_calls
):
    """Their rows are tested by the row reader, by a call for files with the same columns; what it
    cannot test is scanned one by one."""
    table = opened(name, [indexed])
    scan = table.scan(where)
    rows, read = scan.to_arrow(), counts(scan.statistics)
    assert scan.count() == rows.num_rows > 0
    assert calls == [*expected_calls, *expected_calls]
    expected = one_by_one(scan)
    assert repr(rows.to_pylist()) == repr(expected.to_pylist())  # NaN does not equal itself
    assert read == counts(scan.statistics)
    assert calls == [*expected_calls, *expected_calls]


def test_a_file_is_read_at_once_only_if_that_takes_little_memory(opened, calls, monkeypatch):
    scan = opened("hundred_base_files", ["id"]).scan("amount > 30 AND msg LIKE '%car%'")
    rows, whole = scan.to_arrow(), list(calls)
    monkeypatch.setattr(base_rows, "BATCH_BYTES", 1)
    assert scan.to_arrow().equals(rows)
    assert (whole, calls) == ([100], [100])


def test_rows_of_a_large_file_that_are_only_counted_are_tested_by_one_call(
    opened, calls, monkeypatch
):
    """That takes no memory; an AND of two columns, and what the row reader cannot test whole."""
    scan = opened("hundred_base_files", ["id"]).scan("amount > 30 AND msg LIKE '%car%'")
    number = scan.to_arrow().num_rows
    monkeypatch.setattr(base_rows, "is_small", lambda size: False)
    calls.clear()
    assert scan.count() == number
    read = counts(scan.statistics)
    assert calls == [100]
    assert scan.to_arrow().num_rows == number
    assert calls == [100]
    assert [each[-2:] for each in read] == [each[-2:] for each in counts(scan.statistics)]
    part = opened("hundred_base_files", ["id"]).scan("amount > 30 AND msg RLIKE 'car'")
    assert part.count() == part.to_arrow().num_rows > 0
    assert calls == [100]


def test_a_missing_or_damaged_file_is_named(own_table, calls, tmp_path):
    """The call for all fails; then each file is read alone, which names the one."""
    table, where = own_table("hundred_base_files", ["id"]), "id IN ('3', '77', '123')"
    assert table.scan(where, use_index="require").to_arrow().num_rows == 3
    (path,) = (tmp_path / "hundred_base_files" / "p038").glob("*.parquet")
    path.write_bytes(bytes(path.stat().st_size))
    with pytest.raises(StorageFailed, match=f"p038/{path.name}"):
        table.scan(where).to_arrow()
    path.unlink()
    with pytest.raises(SnapshotChanged, match=f"p038/{path.name}"):
        table.scan(where, use_index="require").to_arrow()
    assert calls == [3, 3, 3, 3]  # the last, planned again, too
