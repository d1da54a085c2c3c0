"""Counting: without listing rows where an entry knows their number; by reading rows where that is
faster than walking all terms of a text range."""

import pytest

from hudi_index_service import open_table
from hudi_index_service.index.btree.reader import BTreeReader
from hudi_index_service.index.lucene.reader import LuceneReader
from hudi_index_service.optimizer import rules
from hudi_index_service.optimizer.cost.reading_steps import ReadingSteps
from hudi_index_service.optimizer.decide import Counting, cheapest_count
from hudi_index_service.read.slices.cheaper_reads import CheaperReads
from hudi_index_service.read.slices.slice_entries import SliceEntries

TOTAL = 1_000_000
READING = ReadingSteps(page=20_000, row=13, lookup=4_500, scan=5_000_000)


@pytest.mark.parametrize(
    ("steps", "cheapest"),
    [
        ([10_000], Counting.INDEX),
        ([10_000, 900_000], Counting.INDEX),
        ([40, 6_000_000], Counting.ROWS),  # forty rows are read and tested
        ([300_000, 2_000_000], Counting.INDEX),  # to read so many rows takes as long as a scan
        ([300_000, 6_000_000], Counting.SCAN),
        ([6_000_000], Counting.SCAN),
        ([4_999_999], Counting.SCAN),  # a look-up costs something by itself
    ],
)
def test_count_reads_rows_where_look_ups_take_longer(steps, cheapest):
    assert cheapest_count(steps, READING, TOTAL, 2) is cheapest


@pytest.mark.parametrize("using", ["lucene", "btree"])
@pytest.mark.parametrize(
    "where",
    [
        "msg = 'Buying car 2'",
        "msg <> 'Buying car 2'",
        "msg IN ('Buying car 2', 'Buying car 3', 'none')",
        "amount BETWEEN 100 AND 2000",
        "amount < 100",
        "NOT (amount <=> 153)",
        "msg IS NOT NULL",
    ],
)
def test_rows_of_one_look_up_are_counted_without_listing_them(
    golden_index, monkeypatch, using, where
):
    """In two base files of 10,000 rows."""
    path = golden_index("three_pages_with_logs", ["amount", "msg"], using=using)

    def listed(*_, **__):
        raise AssertionError("row ids are listed")

    with open_table(path) as table:
        scan, never = (
            table.scan(where, use_index=use_index, query_type="read_optimized")
            for use_index in ("auto", "never")
        )
        expected = never.count()
        for reader in (LuceneReader, BTreeReader):
            monkeypatch.setattr(reader, "row_ids", listed)
            monkeypatch.setattr(reader, "candidates", listed)
        assert scan.count() == expected > 0
        assert scan.statistics.rows_returned == expected
        assert scan.statistics.rows_checked == 0


def test_one_of_many_small_files_decides_how_all_are_counted(golden_index, monkeypatch, recorded):
    path = golden_index("hundred_base_files", ["id", "amount"])
    with open_table(path) as table:
        scan = table.scan("amount >= 50 OR id = '7'")
        expected = table.scan("amount >= 50 OR id = '7'", use_index="require").count()  # opens all
        decided = recorded(CheaperReads, "counting", lambda *_: None)
        assert scan.count() == expected
        assert len(decided) == 1


def test_of_many_small_files_no_entry_is_asked_whether_a_scan_pays(
    golden_index, monkeypatch, recorded
):
    monkeypatch.setattr(rules, "index_pays", lambda *_: True)  # of files with two rows, it does not
    path = golden_index("hundred_base_files", ["id", "amount"])
    with open_table(path) as table:
        table.scan("amount IS NOT NULL", use_index="require").to_arrow()  # opens all entries
        asked = recorded(SliceEntries, "row_bounds", lambda *_: None)
        scan = table.scan("amount >= 50", columns=["id"])
        assert scan.to_arrow().num_rows == scan.count()
        assert asked == []
