"""hudi-index-pylucene: Arrow batches in, row ids out."""

from pathlib import Path
from typing import Any

import lucene
import numpy as np
import pyarrow as pa
import pytest

from tests.native.lucene_index import (
    IndexField,
    attach,
    index_batches,
    new_indexer,
    open_directory,
    open_folder,
    row_ids,
    set_column,
    term,
)

SENDER = IndexField("sender", "KEYWORD", "sender")
MESSAGE = IndexField("message", "TEXT", "message")
AMOUNT = IndexField("amount", "LONG", "amount")


@pytest.fixture(autouse=True)
def _jvm() -> None:
    attach()


def nulls(column: str) -> IndexField:
    return IndexField(f"{column}.null", "NULLS", column)


def between(field: str, low: int, high: int) -> Any:
    from org.apache.lucene.document import LongPoint

    return LongPoint.newRangeQuery(field, low, high)


def one_column(name: str, array: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([array], names=[name])


def test_columns_of_a_batch_may_be_slices_with_different_offsets(tmp_path: Path) -> None:
    rows = 100
    senders = [None if i % 7 == 0 else f"user{i % 10}" for i in range(rows)]
    amounts = [None if i % 3 == 0 else i for i in range(rows)]
    for shift_sender, shift_amount in [(0, 13), (3, 0), (9, 8)]:
        folder = tmp_path / f"{shift_sender}-{shift_amount}"
        batch = pa.RecordBatch.from_arrays(
            [
                pa.array(["before"] * shift_sender + senders).slice(shift_sender),
                pa.array([None] * shift_amount + amounts, pa.int64()).slice(shift_amount),
            ],
            names=["sender", "amount"],
        )
        assert batch.column("sender").offset == shift_sender
        assert batch.column("amount").offset == shift_amount
        index_batches(folder, [SENDER, nulls("sender"), AMOUNT, nulls("amount")], [batch])

        index = open_folder(folder)
        assert row_ids(index, term("sender", "user3")) == [
            i for i in range(rows) if senders[i] == "user3"
        ]
        assert row_ids(index, term("sender.null", "1")) == list(range(0, rows, 7))
        assert row_ids(index, between("amount", 50, 59)) == [50, 52, 53, 55, 56, 58, 59]
        assert row_ids(index, term("amount.null", "1")) == list(range(0, rows, 3))
        assert row_ids(index, term("sender", "before")) == []


def test_arrays_without_data_or_validity_buffers(tmp_path: Path) -> None:
    indexer = new_indexer(tmp_path, [SENDER, nulls("sender")])
    offsets = np.zeros(4, np.int32)
    for field in (0, 1):
        indexer.setColumn(field, 0, offsets.ctypes.data, 0, False, 0)
    assert indexer.index(3) == 3
    for field in (0, 1):
        indexer.setColumn(field, 0, 0, 0, False, 0)
    assert indexer.index(0) == 3
    indexer.finish()

    index = open_folder(tmp_path)
    assert row_ids(index, term("sender", "")) == [0, 1, 2]
    assert row_ids(index, term("sender.null", "1")) == []


def test_long_token_is_truncated_between_characters_and_counted(tmp_path: Path) -> None:
    from org.apache.lucene.analysis.core import KeywordAnalyzer

    long = "ab" + "😀" * 10_000  # 40,002 bytes, one token
    column = pa.array([long, "short", "y" * 12_000])
    truncated = index_batches(
        tmp_path, [MESSAGE], [one_column("message", column)], analyzer=KeywordAnalyzer()
    )

    assert truncated == [1]
    index = open_folder(tmp_path)
    assert row_ids(index, term("message", "ab" + "😀" * 8191)) == [0]  # 32,766 bytes
    assert row_ids(index, term("message", "short")) == [1]
    assert row_ids(index, term("message", "y" * 12_000)) == [2]


def test_batch_without_all_columns_or_buffers_is_refused(tmp_path: Path) -> None:
    indexer = new_indexer(tmp_path, [SENDER, AMOUNT])
    senders, amounts = pa.array(["x"]), pa.array([1])
    set_column(indexer, 0, senders)
    with pytest.raises(lucene.JavaError, match="field amount has no column for this batch"):
        indexer.index(1)

    indexer.setColumn(1, 0, 0, 0, False, 0)
    with pytest.raises(lucene.JavaError, match="field amount needs the data buffer"):
        indexer.index(1)

    set_column(indexer, 1, amounts)
    assert indexer.index(1) == 1
    with pytest.raises(lucene.JavaError, match="field sender has no column for this batch"):
        indexer.index(1)  # the buffers of the last batch may be gone


def test_unknown_field_kind_is_refused(tmp_path: Path) -> None:
    from hudiindex import ArrowIndexer

    def indexer_of(names: list[str], kinds: list[int]) -> None:
        names_array, kinds_array = lucene.JArray("string")(names), lucene.JArray("int")(kinds)
        ArrowIndexer(open_directory(tmp_path), names_array, kinds_array, 64.0, 0, 1)

    with pytest.raises(lucene.JavaError, match="field x has the unknown kind 9"):
        indexer_of(["x"], [9])
    with pytest.raises(lucene.JavaError, match="1 field names but 2 kinds"):
        indexer_of(["x"], [0, 1])


def test_row_ids_never_write_beyond_the_buffer(tmp_path: Path) -> None:
    from hudiindex import RowIds

    amounts = pa.array(range(20_000), pa.int64())
    batches = [one_column("amount", amounts.slice(at, 9_000)) for at in (0, 9_000, 18_000)]
    index_batches(tmp_path, [AMOUNT], batches, segment_per_batch=True)

    index = open_folder(tmp_path)
    query = between("amount", 10, 19_989)
    for capacity in (0, 1, 4_096, 10_000, 19_979):
        buffer = np.full(20_000, 7, np.int32)
        found = RowIds.into(index, query, buffer.ctypes.data, capacity, 2**63 - 1)
        assert found == -1 - 19_980
        assert buffer[:capacity].tolist() == list(range(10, 10 + capacity))
        assert (buffer[capacity:] == 7).all()
    assert row_ids(index, query) == list(range(10, 19_990))


def test_terms_of_maximum_length_match_any_pattern(tmp_path: Path) -> None:
    from hudiindex import TermScan

    index_batches(tmp_path, [SENDER], [one_column("sender", pa.array(["ab", "abc", "é", "xyz"]))])
    query = TermScan("sender", lucene.JArray("string")(["=ab"]), 3)
    assert row_ids(open_folder(tmp_path), query) == [0, 1, 3]
    absent = TermScan("other", lucene.JArray("string")(["%"]), 3)
    assert row_ids(open_folder(tmp_path), absent) == []
