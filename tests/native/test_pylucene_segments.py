"""Segments written field by field equal those of Lucene's own IndexWriter."""

import random
import string
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lucene
import pyarrow as pa
import pytest

from tests.native.lucene_index import (
    IndexField,
    attach,
    index_batches,
    open_directory,
    open_folder,
    row_ids,
)

SENDER = IndexField("sender", "KEYWORD", "sender")
MESSAGE = IndexField("message", "TEXT", "message")
AMOUNT = IndexField("amount", "LONG", "amount")
NULL_AMOUNT = IndexField("amount.null", "NULLS", "amount")

Postings = list[tuple[int, int, list[int]]]
"""Row, frequency (1 where none is stored) and positions."""


@pytest.fixture(autouse=True)
def _jvm() -> None:
    attach()


def terms_of(folder: Path, field: str) -> dict[bytes, Postings]:
    """All postings of a field, in the order of its terms."""
    from org.apache.lucene.index import MultiTerms, PostingsEnum
    from org.apache.lucene.util import BytesRefIterator

    reader = open_folder(folder).getIndexReader()
    terms = MultiTerms.getTerms(reader, field)
    found: dict[bytes, Postings] = {}
    if terms is None:
        return found
    each = terms.iterator()
    following = BytesRefIterator.cast_(each)  # JCC omits `next` from TermsEnum
    while (value := following.next()) is not None:
        name = bytes(b & 0xFF for b in value.bytes[value.offset : value.offset + value.length])
        rows = each.postings(None, PostingsEnum.POSITIONS)
        found[name] = []
        while (row := rows.nextDoc()) != 0x7FFFFFFF:
            positions = [rows.nextPosition() for _ in range(rows.freq())]
            found[name].append((row, rows.freq(), positions))
    return found


def write_by_lucene(folder: Path, rows: pa.RecordBatch) -> None:
    """Writes the same rows with Lucene's IndexWriter, one document at a time."""
    from org.apache.lucene.analysis.standard import StandardAnalyzer
    from org.apache.lucene.document import Document, Field, LongPoint, StringField, TextField
    from org.apache.lucene.index import IndexWriter, IndexWriterConfig
    from org.apache.lucene.util import BytesRef

    writer = IndexWriter(open_directory(folder), IndexWriterConfig(StandardAnalyzer()))
    for row in rows.to_pylist():
        document = Document()
        if row["sender"] is not None:
            value = BytesRef(lucene.JArray("byte")(row["sender"].encode()))
            document.add(StringField("sender", value, Field.Store.NO))
        if row["message"] is not None:
            document.add(TextField("message", row["message"], Field.Store.NO))
        if row["amount"] is not None:
            document.add(LongPoint("amount", row["amount"]))
        else:
            document.add(StringField("amount.null", "1", Field.Store.NO))
        writer.addDocument(document)
    writer.forceMerge(1)
    writer.close()


def random_rows(dice: random.Random, count: int) -> pa.RecordBatch:
    """NULLs, repeated and unique values, repeated words in a row, terms with common prefixes."""
    words = ["a", "new", "New", "car", "carpet", "it's", "3.5", "naïve", "日本語", "x" * 300, "-"]

    def message() -> str | None:
        kind = dice.random()
        if kind < 0.1:
            return None
        most = 1_000 if kind > 0.99 else 12
        return " ".join(dice.choice(words) for _ in range(dice.randrange(most)))

    def sender() -> str | None:
        kind = dice.random()
        if kind < 0.1:
            return None
        shared = "a long beginning that many values have in common"
        cut = dice.choice([0, 7, 8, 9, 16, len(shared)])
        return shared[:cut] + dice.choice(["", "\0", "\0\0", "ä", str(dice.randrange(count))])

    return pa.RecordBatch.from_pydict(
        {
            "sender": [sender() for _ in range(count)],
            "message": [message() for _ in range(count)],
            "amount": [
                None if dice.random() < 0.1 else dice.choice([0, -1, 2**63 - 1, -(2**63), i % 97])
                for i in range(count)
            ],
        }
    )


@pytest.mark.parametrize(
    ("seed", "threads", "count"), [(1, 1, 3_000), (3, 2, 1_000), (4, 4, 1_000), (5, 99, 1_000)]
)
def test_segments_equal_those_of_lucene(
    tmp_path: Path, seed: int, threads: int, count: int
) -> None:
    from org.apache.lucene.document import LongPoint
    from org.apache.lucene.index import CheckIndex

    rows = random_rows(random.Random(seed), count)
    ours, lucenes = tmp_path / "ours", tmp_path / "lucene"
    batches = [rows.slice(0, 700), rows.slice(700)]
    index_batches(ours, [SENDER, MESSAGE, AMOUNT, NULL_AMOUNT], batches, threads=threads)
    write_by_lucene(lucenes, rows)

    for field in ("sender", "message", "amount.null"):
        terms = terms_of(ours, field)
        assert terms == terms_of(lucenes, field)
        assert list(terms) == sorted(terms)
    for low, high in [(0, 0), (-1, 50), (2**63 - 1, 2**63 - 1), (-(2**63), -1), (10, 96)]:
        query = LongPoint.newRangeQuery("amount", low, high)
        assert row_ids(open_folder(ours), query) == row_ids(open_folder(lucenes), query)
    assert CheckIndex(open_directory(ours)).checkIndex().clean


def test_parts_with_equal_segment_names_are_refused(tmp_path: Path) -> None:
    from hudiindex import SegmentList
    from org.apache.lucene.store import Directory

    senders = pa.RecordBatch.from_pydict({"sender": ["a"]})
    directories = []
    for part in ("one", "two"):
        index_batches(tmp_path / part, [SENDER], [senders])
        directories.append(open_directory(tmp_path / part))
    with pytest.raises(lucene.JavaError, match="parts with segments of the same name"):
        SegmentList.join(lucene.JArray("object")(directories, Directory), open_directory(tmp_path))


def ascii_texts(dice: random.Random) -> Iterator[str]:
    """Every ASCII character between letters, between digits and alone; and random ASCII texts."""
    for number in range(128):
        c = chr(number)
        yield from (
            c,
            f"a{c}B",
            f"1{c}2",
            f"a{c}1",
            f"a{c} b",
            f"a {c}b",
            f"1{c}",
            f"{c}1",
            f"{c}{c}",
        )
        yield from (f"a{c}{c}b", f"a{c}.b", f"1.{c}2", f"don{c}t", f"x_{c}y")
    usual = string.ascii_letters + string.digits + " .,:;'_-\n"
    for _ in range(2_000):
        yield "".join(dice.choice(usual) for _ in range(dice.randrange(30)))
    yield from ("w" * 255, "w" * 256, "w" * 600 + " end", "W" * 255 + ".W")


def test_fast_path_splits_ascii_text_as_the_standard_analyzer(tmp_path: Path) -> None:
    from org.apache.lucene.analysis.standard import StandardAnalyzer

    texts = list(ascii_texts(random.Random(5)))
    index_batches(tmp_path / "ours", [MESSAGE], [pa.RecordBatch.from_pydict({"message": texts})])
    # Only StandardAnalyzer itself takes the fast path, a wrapper does not.
    by_analyzer = tmp_path / "analyzer"
    index_batches(
        by_analyzer,
        [MESSAGE],
        [pa.RecordBatch.from_pydict({"message": texts})],
        analyzer=wrapped(StandardAnalyzer()),
    )
    assert terms_of(tmp_path / "ours", "message") == terms_of(by_analyzer, "message")


def wrapped(analyzer: Any) -> Any:
    from java.util import HashMap
    from org.apache.lucene.analysis.miscellaneous import PerFieldAnalyzerWrapper

    return PerFieldAnalyzerWrapper(analyzer, HashMap())


@pytest.mark.parametrize("threads", [1, 2])
def test_terms_with_a_common_prefix_of_thousands_of_bytes(tmp_path: Path, threads: int) -> None:
    """Sorting them must not need a stack as deep as their common prefix."""
    names = [f"{'x' * 32_700}{number:04}" for number in range(64)]
    rows = pa.RecordBatch.from_pydict({"sender": names[::-1], "message": ["a"] * 64})
    index_batches(tmp_path, [SENDER, MESSAGE], [rows], threads=threads)
    found = terms_of(tmp_path, "sender")
    assert list(found) == [name.encode() for name in names]
    assert [rows for ((rows, *_),) in found.values()] == list(range(64))[::-1]


RANKED = IndexField("message", "RANKED_TEXT", "message")


@pytest.mark.parametrize("threads", [1, 2])
def test_ranked_fields_have_lucenes_norms(tmp_path: Path, threads: int) -> None:
    from org.apache.lucene.index import CheckIndex, DirectoryReader

    rows = random_rows(random.Random(6), 2_000)
    ours, lucenes = tmp_path / "ours", tmp_path / "lucene"
    fields = [SENDER, RANKED, IndexField("plain", "TEXT", "message")]
    index_batches(ours, fields, [rows], threads=threads)
    write_by_lucene(lucenes, rows)

    def norms(folder: Path, field: str) -> dict[int, int]:
        (leaf,) = DirectoryReader.open(open_directory(folder)).leaves()
        values, found = leaf.reader().getNormValues(field), {}
        while values is not None and (row := values.nextDoc()) != 0x7FFFFFFF:
            found[row] = values.longValue()
        return {row: norm for row, norm in found.items() if norm}

    assert norms(ours, "message") == norms(lucenes, "message")
    assert norms(ours, "plain") == {}
    assert terms_of(ours, "message") == terms_of(lucenes, "message") == terms_of(ours, "plain")
    assert CheckIndex(open_directory(ours)).checkIndex().clean
