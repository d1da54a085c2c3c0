"""Record keys are located in many slices at once, with the answers of a search without an index."""

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_index_service import open_table
from hudi_index_service.config import ReadSettings, Settings
from hudi_index_service.optimizer.plan import Access
from hudi_index_service.read.keys import key_locator
from hudi_index_service.read.keys.tag_location import KEY, PARTITION
from tests.golden.table import GoldenTable
from tests.read.key_locations import search

Golden = Callable[[str], GoldenTable]

WITHOUT_INDEX = Settings(read=ReadSettings(enabled=False))


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
def test_random_keys_are_located_as_without_an_index(golden_index, using, column):
    path = golden_index("keys_in_four_base_files", [column], using=using)
    dice = random.Random(11)
    together = 0
    with open_table(path) as table, open_table(path, settings=WITHOUT_INDEX) as without:
        for number in range(24):
            requested = some_keys(dice, partitioned=number % 2 == 1)
            answer, read = search(table, requested)
            assert answer.equals(search(without, requested)[0])
            by_index = [each for each in read.slices if each.access is Access.INDEX]
            together += len(by_index)
            assert all(each.rows_returned <= (each.candidates or 0) for each in by_index)
    assert together > 20


@pytest.mark.parametrize("using", ["lucene", "btree"])
def test_slices_with_log_files_are_located_beside_the_others(golden_index, using):
    path = golden_index("half_compacted", ["id"], using=using)
    with open_table(path) as table, open_table(path, settings=WITHOUT_INDEX) as without:
        keys = [str(number) for number in range(-3, 120, 4)]
        assert table.tag_location(keys).equals(without.tag_location(keys))


@pytest.mark.parametrize("using", ["lucene", "btree"])
def test_one_call_asks_the_entries_and_one_reads_the_keys(golden_index, using, recorded):
    path = golden_index("keys_in_four_base_files", ["_hoodie_record_key"], using=using)
    read = recorded(key_locator, "read_files", lambda files, columns, **_: len(files))
    with open_table(path) as table:
        keys = pa.table({KEY: ["1", "2", "4000", "4001", "3005"]})
        answer, statistics = search(table, keys)
        assert answer.column("row_id").null_count == 0
        assert read == [4]
        assert sorted(each.rows_checked for each in statistics.slices) == [1, 1, 2, 2]
        assert sum(each.rows_returned for each in statistics.slices) == 6
        assert statistics.bytes_read > 0
        again, statistics = search(table, keys)
        assert again.equals(answer)
        assert statistics.bytes_read == 0  # the pages of the key are kept


@pytest.mark.parametrize("using", ["lucene", "btree"])
def test_a_damaged_or_missing_entry_is_left_to_a_scan(own_table, using):
    requested = pa.table({KEY: [str(number) for number in range(0, 5_000, 400)]})
    with own_table("keys_in_four_base_files", ["_hoodie_record_key"], using=using) as table:
        path = Path(table.uri)
        expected, _ = search(table, requested)
        first, second, *_ = sorted((path / ".hoodie" / ".index" / using).rglob("*.pack"))
        first.write_bytes(bytes(first.stat().st_size))
        shutil.rmtree(second.parent)
        assert search(table, requested)[0].equals(expected)
    with open_table(path) as again:
        assert search(again, requested)[0].equals(expected)
