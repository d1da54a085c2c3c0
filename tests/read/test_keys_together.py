"""Record keys are located in many slices at once, with the answers of a search without an index."""

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hudi_index_parquet import FileRows, read_files

from hudi_index_service import IndexedTable, open_table
from hudi_index_service.config import ReadSettings, Settings
from hudi_index_service.optimizer.plan import Access
from hudi_index_service.read.keys.tag_location import KEY, PARTITION, RequestedKeys
from hudi_index_service.read.statistics import ReadStatistics
from tests.golden.table import GoldenTable
from tests.indexed import indexed
from tests.read.key_locations import key_search

Golden = Callable[[str], GoldenTable]

WITHOUT_INDEX = Settings(read=ReadSettings(enabled=False))


def searched(table: IndexedTable, requested: pa.Table) -> tuple[pa.Table, ReadStatistics]:
    statistics = ReadStatistics()
    return key_search(table).answer(RequestedKeys.of(requested), statistics), statistics


def some_keys(dice: random.Random, *, partitioned: bool) -> pa.Table:
    """Present, absent, repeated and long keys, and NULL."""
    keys: list[str | None] = [str(dice.randrange(-20, 5_200)) for _ in range(dice.randrange(1, 30))]
    keys += [None, "x" * dice.choice([400, 40_000]), str(dice.randrange(3_000, 3_010)), ""]
    keys += dice.choices(keys, k=3)
    columns: dict[str, list[str | None]] = {KEY: keys}
    if partitioned:
        columns[PARTITION] = dice.choices(
            ["2026-01-01", "2026-01-02", "nowhere", None], k=len(keys)
        )
    return pa.table({name: pa.array(each, pa.string()) for name, each in columns.items()})


@pytest.mark.parametrize("using", ["lucene", "btree"])
@pytest.mark.parametrize("column", ["_hoodie_record_key", "id"])
def test_random_keys_are_located_as_without_an_index(
    golden: Golden, tmp_path: Path, using: str, column: str
) -> None:
    path = golden("keys_in_four_base_files").put(tmp_path)
    dice = random.Random(11)
    together = 0
    without = open_table(path, settings=WITHOUT_INDEX)
    with indexed(path, [column], using=using) as table, without:
        for number in range(24):
            requested = some_keys(dice, partitioned=number % 2 == 1)
            answer, read = searched(table, requested)
            assert answer.equals(searched(without, requested)[0])
            by_index = [each for each in read.slices if each.access is Access.INDEX]
            together += len(by_index)
            assert all(each.rows_returned <= (each.candidates or 0) for each in by_index)
    assert together > 20


@pytest.mark.parametrize("using", ["lucene", "btree"])
def test_slices_with_log_files_are_located_beside_the_others(
    golden: Golden, tmp_path: Path, using: str
) -> None:
    path = golden("half_compacted").put(tmp_path)
    without = open_table(path, settings=WITHOUT_INDEX)
    with indexed(path, ["id"], using=using) as table, without:
        keys = [str(number) for number in range(-3, 120, 4)]
        assert table.tag_location(keys).equals(without.tag_location(keys))


@pytest.mark.parametrize("using", ["lucene", "btree"])
def test_one_call_asks_the_entries_and_one_reads_the_keys(
    golden: Golden, tmp_path: Path, using: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = golden("keys_in_four_base_files").put(tmp_path)
    read = list[int]()

    def counting(files: list[FileRows], columns: list[str], **options: Any) -> object:
        read.append(len(files))
        return read_files(files, columns, **options)

    monkeypatch.setattr("hudi_index_service.read.keys.key_locator.read_files", counting)
    with indexed(path, ["_hoodie_record_key"], using=using) as table:
        keys = pa.table({KEY: ["1", "2", "4000", "4001", "3005"]})
        answer, statistics = searched(table, keys)
        assert answer.column("row_id").null_count == 0
        assert read == [4]
        assert sorted(each.rows_checked for each in statistics.slices) == [1, 1, 2, 2]
        assert sum(each.rows_returned for each in statistics.slices) == 6
        assert statistics.bytes_read > 0
        again, statistics = searched(table, keys)
        assert again.equals(answer)
        assert statistics.bytes_read == 0  # the pages of the key are kept


@pytest.mark.parametrize("using", ["lucene", "btree"])
def test_a_damaged_or_missing_entry_is_left_to_a_scan(
    golden: Golden, tmp_path: Path, using: str
) -> None:
    path = golden("keys_in_four_base_files").put(tmp_path / "table")
    requested = pa.table({KEY: [str(number) for number in range(0, 5_000, 400)]})
    with indexed(path, ["_hoodie_record_key"], using=using) as table:
        expected, _ = searched(table, requested)
        first, second, *_ = sorted((path / ".hoodie" / ".index" / using).rglob("*.pack"))
        first.write_bytes(bytes(first.stat().st_size))
        shutil.rmtree(second.parent)
        assert searched(table, requested)[0].equals(expected)
    with open_table(path) as again:
        assert searched(again, requested)[0].equals(expected)
