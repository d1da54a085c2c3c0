"""The rows that look-ups found in many slices are read by one call, with the same result and the
same counts as slice by slice."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_index_service import open_table
from hudi_index_service.errors import SnapshotChanged, StorageFailed
from hudi_index_service.read import parallel
from hudi_index_service.read.slices import found_rows
from hudi_index_service.read.statistics import ReadStatistics, SliceStatistics
from hudi_index_service.table import IndexedTable
from tests.golden.table import GoldenTable
from tests.indexed import indexed

pytestmark = pytest.mark.usefixtures("keeps_no_pages")

Opened = Callable[[str, list[str]], IndexedTable]


@pytest.fixture
def opened(
    golden: Callable[[str], GoldenTable], tmp_path: Path, request: pytest.FixtureRequest
) -> Opened:
    """A golden table with an index on some columns."""

    def opened(name: str, columns: list[str]) -> IndexedTable:
        table = open_table(golden(name).put(tmp_path / name))
        request.addfinalizer(table.close)
        return indexed(table, columns)

    return opened


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of files of each call that reads several."""
    files: list[int] = []
    read_files = found_rows.read_files

    def counting(some: Any, columns: Any, **options: Any) -> Any:
        files.append(len(some))
        return read_files(some, columns, **options)

    monkeypatch.setattr(found_rows, "read_files", counting)
    return files


def counts(statistics: ReadStatistics | None) -> list[tuple[Any, ...]]:
    assert statistics is not None

    def of_slice(each: SliceStatistics) -> tuple[Any, ...]:
        read = each.pages, each.ranges, each.bytes_read
        return each.slice_name, each.access, *read, each.rows_checked, each.rows_returned

    return [of_slice(each) for each in statistics.slices]


def one_by_one(
    table: IndexedTable, where: str, columns: list[str] | None
) -> tuple[pa.Table, list[tuple[Any, ...]]]:
    """The rows of a query that reads slice by slice, and what it read of each."""
    scan = table.scan(where, columns=columns, use_index="require")
    batches = list(scan.to_batches())
    return pa.Table.from_batches(batches), counts(scan.statistics)


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
def test_a_query_reads_its_rows_by_one_call(
    opened: Opened,
    calls: list[int],
    name: str,
    columns: list[str],
    where: str,
    expected_calls: list[int],
) -> None:
    assert_read_like_one_by_one(opened(name, columns), where)
    assert calls == expected_calls


def assert_read_like_one_by_one(
    table: IndexedTable, where: str, columns: list[str] | None = None
) -> None:
    """Small files would rather be scanned, so the index is required."""
    scan = table.scan(where, columns=columns, use_index="require")
    rows, read = scan.to_arrow(), counts(scan.statistics)
    if not rows.num_rows:
        assert not any(each[-1] for each in read)
        return
    expected, expected_read = one_by_one(table, where, columns)
    assert rows.cast(expected.schema).equals(expected)
    assert read == expected_read


@pytest.mark.parametrize(
    ("patched", "most", "expected_calls"),
    [
        ((parallel, "WINDOW"), 4, [4, 4, 4, 4, 4, 2]),
        ((found_rows, "FIRST_PAGE"), 10, [5, 5, 5, 5, 2]),  # two rows of each file
        ((found_rows, "BATCH_BYTES"), 1, []),
    ],
)
def test_large_results_are_read_by_several_calls(
    opened: Opened,
    calls: list[int],
    monkeypatch: pytest.MonkeyPatch,
    patched: tuple[Any, str],
    most: int,
    expected_calls: list[int],
) -> None:
    monkeypatch.setattr(*patched, most)
    table = opened("hundred_base_files", ["amount"])
    assert_read_like_one_by_one(table, "amount BETWEEN 20 AND 60 OR amount = 150")
    assert calls == expected_calls


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
        ("columns_added_and_widened", "s", "i < 30", []),
    ],
)
def test_small_files_without_an_index_are_read_by_one_call(
    opened: Opened,
    calls: list[int],
    name: str,
    indexed: str,
    where: str,
    expected_calls: list[int],
) -> None:
    """Their rows are tested by the row reader; what it cannot test, and files with other columns,
    are scanned one by one."""
    table = opened(name, [indexed])
    scan = table.scan(where)
    rows, read = scan.to_arrow(), counts(scan.statistics)
    assert scan.count() == rows.num_rows > 0
    assert calls == [*expected_calls, *expected_calls]
    one_by_one = pa.Table.from_batches(list(scan.to_batches()))
    assert repr(rows.to_pylist()) == repr(one_by_one.to_pylist())  # NaN does not equal itself
    assert read == counts(scan.statistics)
    assert calls == [*expected_calls, *expected_calls]


def test_files_with_other_columns_are_read_alone(opened: Opened, calls: list[int]) -> None:
    table = opened("columns_added_and_widened", ["i"])
    assert_read_like_one_by_one(table, "i IN (2, 12, 20, 30, 3000000000)", ["i"])
    assert calls == []


def test_a_missing_or_damaged_file_is_named(
    opened: Opened, calls: list[int], tmp_path: Path
) -> None:
    """The call for all fails; then each file is read alone, which names the one."""
    table, where = opened("hundred_base_files", ["id"]), "id IN ('3', '77', '123')"
    assert table.scan(where, use_index="require").to_arrow().num_rows == 3
    (path,) = (tmp_path / "hundred_base_files" / "p038").glob("*.parquet")
    path.write_bytes(bytes(path.stat().st_size))
    with pytest.raises(StorageFailed, match=f"p038/{path.name}"):
        table.scan(where).to_arrow()
    path.unlink()
    with pytest.raises(SnapshotChanged, match=f"p038/{path.name}"):
        table.scan(where, use_index="require").to_arrow()
    assert calls == [3, 3, 3]
