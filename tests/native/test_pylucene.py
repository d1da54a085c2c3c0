"""hudi-index-pylucene: Arrow batches in, row ids out."""

import threading
from collections.abc import Sequence
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

MAX_TERM_LENGTH = 32_766

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


def everything() -> Any:
    from org.apache.lucene.search import MatchAllDocsQuery

    return MatchAllDocsQuery()


def one_column(name: str, array: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([array], names=[name])


def test_search_by_keyword_word_number_and_null(tmp_path: Path) -> None:
    rows = pa.RecordBatch.from_pydict(
        {
            "sender": ["UserA", "UserB", None, "UserA"],
            "message": ["Summer is coming", "Buying a new car", "", None],
            "amount": [-5, None, 2**63 - 1, 7],
        }
    )
    fields = [SENDER, nulls("sender"), MESSAGE, nulls("message"), AMOUNT, nulls("amount")]
    assert index_batches(tmp_path, fields, [rows]) == [0] * 6

    index = open_folder(tmp_path)
    assert row_ids(index, term("sender", "UserA")) == [0, 3]
    assert row_ids(index, term("sender.null", "1")) == [2]
    assert row_ids(index, term("message", "buying")) == [1]
    assert row_ids(index, term("message.null", "1")) == [3]
    assert row_ids(index, between("amount", -5, 7)) == [0, 3]
    assert row_ids(index, between("amount", 2**63 - 1, 2**63 - 1)) == [2]
    assert row_ids(index, term("amount.null", "1")) == [1]
    assert row_ids(index, term("sender", "nobody")) == []


def test_phrase_matches_words_in_order(tmp_path: Path) -> None:
    from org.apache.lucene.search import PhraseQuery

    rows = pa.array(["buying a new car", "a car, new", None, "the new car"])
    index_batches(tmp_path, [MESSAGE], [one_column("message", rows)])

    phrase = PhraseQuery("message", lucene.JArray("string")(["new", "car"]))
    assert row_ids(open_folder(tmp_path), phrase) == [0, 3]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_strings_are_found_by_their_utf8_bytes(tmp_path: Path, kind: pa.DataType) -> None:
    values = ["", "a", "ä", "é", "e\u0301", "日本語", "😀", "\U0010ffff", "\ufffd", "a\0b", " a"]
    values.append("\U0001f469\u200d\U0001f467")  # a family: two emoji with a joiner
    column = pa.array([*values, None, *values], kind)
    index_batches(tmp_path, [SENDER, nulls("sender")], [one_column("sender", column)])

    index = open_folder(tmp_path)
    for row, value in enumerate(values):
        assert row_ids(index, term("sender", value)) == [row, len(values) + 1 + row]
    assert row_ids(index, term("sender.null", "1")) == [len(values)]


def test_keyword_ranges_follow_the_order_of_utf8_bytes(tmp_path: Path) -> None:
    from org.apache.lucene.search import TermRangeQuery

    # UTF-16 puts the emoji (a surrogate pair) before U+FF5E; UTF-8, like Spark, puts it after.
    index_batches(tmp_path, [SENDER], [one_column("sender", pa.array(["z", "\uff5e", "😀"]))])

    beyond = TermRangeQuery.newStringRange("sender", "\uff5e", None, False, True)
    assert row_ids(open_folder(tmp_path), beyond) == [2]


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


def test_rows_with_only_nulls_keep_their_row_ids(tmp_path: Path) -> None:
    rows = pa.RecordBatch.from_pydict(
        {
            "sender": pa.array([None, None, "x", None], pa.string()),
            "amount": pa.array([None, None, 1, None], pa.int64()),
        }
    )
    index_batches(tmp_path, [SENDER, AMOUNT], [rows])

    index = open_folder(tmp_path)
    assert row_ids(index, everything()) == [0, 1, 2, 3]
    assert row_ids(index, term("sender", "x")) == [2]


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


def test_doc_ids_are_row_positions_across_segments(tmp_path: Path) -> None:
    random = np.random.default_rng(7)
    amounts = random.integers(0, 1000, 20_000)
    senders = [f"user{i}" for i in random.integers(0, 50, len(amounts))]
    table = pa.table({"sender": senders, "amount": amounts})
    index_batches(
        tmp_path,
        [SENDER, AMOUNT],
        table.to_batches(max_chunksize=777),
        segment_per_batch=True,
    )

    index = open_folder(tmp_path)
    assert index.getIndexReader().leaves().size() == 26
    assert row_ids(index, everything()) == list(range(len(amounts)))
    for user in ("user0", "user17", "user49"):
        assert row_ids(index, term("sender", user)) == [
            i for i, sender in enumerate(senders) if sender == user
        ]
    expected = np.flatnonzero((amounts >= 100) & (amounts <= 300)).tolist()
    assert row_ids(index, between("amount", 100, 300)) == expected


def test_long_keyword_is_truncated_and_counted(tmp_path: Path) -> None:
    fits = "x" * MAX_TERM_LENGTH
    cut_in_a_character = "x" * (MAX_TERM_LENGTH - 1) + "😀 and more"
    column = pa.array(["short", fits, fits + "y", cut_in_a_character])
    truncated = index_batches(tmp_path, [SENDER], [one_column("sender", column)])

    assert truncated == [2]
    index = open_folder(tmp_path)
    assert row_ids(index, term("sender", fits)) == [1, 2]
    assert row_ids(index, term("sender", cut_in_a_character.encode()[:MAX_TERM_LENGTH])) == [3]
    assert row_ids(index, everything()) == [0, 1, 2, 3]


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


@pytest.mark.parametrize("name", ["StandardAnalyzer", "WhitespaceAnalyzer", "SimpleAnalyzer"])
def test_analyzers_split_words_longer_than_255_characters(tmp_path: Path, name: str) -> None:
    from org.apache.lucene.analysis import core, standard

    analyzer = getattr(core, name, None) or getattr(standard, name)
    column = pa.array(["first " + "z" * 100_000 + " last", "next"])
    truncated = index_batches(
        tmp_path, [MESSAGE], [one_column("message", column)], analyzer=analyzer()
    )

    assert truncated == [0]
    index = open_folder(tmp_path)
    assert row_ids(index, term("message", "z" * 255)) == [0]
    assert row_ids(index, term("message", "last")) == [0]
    assert row_ids(index, term("message", "next")) == [1]


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
        found = RowIds.into(index, query, buffer.ctypes.data, capacity)
        assert found == -1 - 19_980
        assert buffer[:capacity].tolist() == list(range(10, 10 + capacity))
        assert (buffer[capacity:] == 7).all()
    assert row_ids(index, query) == list(range(10, 19_990))


def among(index: Any, query: Any, rows: Sequence[int]) -> list[int]:
    from hudiindex import RowIds

    candidates = np.array(rows, np.uint32)
    found = RowIds.among(
        index, query, candidates.ctypes.data, len(candidates), candidates.ctypes.data
    )
    return list(candidates[:found].tolist())


def test_candidate_rows_are_checked_against_a_query(tmp_path: Path) -> None:
    from org.apache.lucene.search import PhraseQuery

    senders = pa.array([f"user{i % 10}" for i in range(10_000)])
    batches = [one_column("sender", senders.slice(at, 2_500)) for at in range(0, 10_000, 2_500)]
    index_batches(tmp_path / "s", [SENDER], batches, segment_per_batch=True)
    index = open_folder(tmp_path / "s")
    rows = [0, 3, 13, 2_499, 2_500, 2_503, 7_777, 9_993, 9_999]
    assert among(index, term("sender", "user3"), rows) == [3, 13, 2_503, 9_993]
    assert among(index, term("sender", "nobody"), rows) == []
    assert among(index, everything(), rows) == rows
    assert among(index, everything(), []) == []

    texts = pa.array(["new car", "car new", None, "a new car", "new", "car"])
    index_batches(tmp_path / "t", [MESSAGE], [one_column("message", texts)])
    phrase = PhraseQuery("message", lucene.JArray("string")(["new", "car"]))
    assert among(open_folder(tmp_path / "t"), phrase, [0, 1, 2, 3, 5]) == [0, 3]


def test_cost_of_a_term_is_an_upper_bound(tmp_path: Path) -> None:
    from hudiindex import RowIds
    from org.apache.lucene.search import MatchNoDocsQuery

    senders = pa.array([f"user{i % 10}" for i in range(10_000)])
    batches = [one_column("sender", senders.slice(at, 2_500)) for at in range(0, 10_000, 2_500)]
    index_batches(tmp_path, [SENDER], batches, segment_per_batch=True)

    index = open_folder(tmp_path)
    assert RowIds.cost(index, term("sender", "user3")) == 1_000
    assert RowIds.cost(index, term("sender", "nobody")) == 0
    assert RowIds.cost(index, MatchNoDocsQuery()) == 0
    assert RowIds.cost(index, everything()) == 10_000


def test_threads_search_after_attaching(tmp_path: Path) -> None:
    index_batches(tmp_path, [SENDER], [one_column("sender", pa.array(["a", "b", "a"]))])
    index = open_folder(tmp_path)
    found: list[list[int]] = []

    def search() -> None:
        attach()
        found.append(row_ids(index, term("sender", "a")))

    threads = [threading.Thread(target=search) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[0, 2]] * 4
