"""Full-text search: the index, and the matcher for unindexed rows, compared with a plain search in
Python over the analyzer's tokens."""

import random
from collections.abc import Iterator
from functools import cache

import pyarrow as pa
import pytest
from pyroaring import BitMap

from hudi_index_service.index.contract import Answer, ColumnSpec
from hudi_index_service.index.factory import index_type
from hudi_index_service.index.lucene import jvm
from hudi_index_service.index.lucene.queries import analyzer_of
from hudi_index_service.predicate import evaluate
from hudi_index_service.predicate.expression import AnalyzedText, BoundColumn, Match, MatchMode, Not
from tests.index.conftest import BuildIndex, IndexedData, rows_where

ANALYZERS = ["standard", "english", "whitespace", "cjk"]
COLUMN = BoundColumn("c", pa.string())
WORDS = [
    "buying", "Buying", "bought", "a", "the", "new", "news", "car", "cars", "car's", "can't",
    "e.g.",
    "3.14", "1,000", "user@example.com", "state-of-the-art", "foo_bar", "ÄRGER", "straße", "naïve",
    "日本語", "東京都", "ภาษาไทย", "😀", "\u0130stanbul", "tag4242", "TAG4243", "tag-4242",
    "x" * 300,
]  # fmt: skip
SEARCHES = [
    "new", "NEW car", "car new", "buying a new car", "the", "", "!?", "tag4242", "日本", "can't",
    "new new", "naïve straße", "1,000", "x" * 90, "ภาษา", "state-of-the-art", "e.g. car", "😀",
]  # fmt: skip


def texts_of(seed: int, count: int = 120) -> list[str | None]:
    choose = random.Random(seed)
    joints = [" ", " ", " ", ", ", "\n", ".", "-", "\u3000"]
    texts: list[str | None] = [None, "", " ", "new car", "car new", "new, old car", "newcar"]
    for _ in range(count):
        words = choose.choices(WORDS, k=choose.randint(1, 6))
        texts.append("".join(word + choose.choice(joints) for word in words))
        texts.extend([None] * (choose.random() < 0.1))
    return texts


Tokens = list[tuple[str, int]]
"""Words and their positions."""


def tokens_of(analyzer: str, texts: list[str]) -> dict[str, Tokens]:
    """The analyzer's tokens for each text, as Lucene's own IndexWriter writes them."""
    jvm.attach()
    from org.apache.lucene.document import Document, Field, TextField
    from org.apache.lucene.index import (
        DirectoryReader,
        IndexWriter,
        IndexWriterConfig,
        MultiTerms,
        PostingsEnum,
    )
    from org.apache.lucene.store import ByteBuffersDirectory
    from org.apache.lucene.util import BytesRefIterator

    directory = ByteBuffersDirectory()
    writer = IndexWriter(directory, IndexWriterConfig(analyzer_of(analyzer)))
    for text in texts:
        document = Document()
        document.add(TextField("f", text, Field.Store.NO))
        writer.addDocument(document)
    writer.forceMerge(1)
    writer.close()
    found: dict[str, Tokens] = {text: [] for text in texts}
    terms = MultiTerms.getTerms(DirectoryReader.open(directory), "f").iterator()
    each = BytesRefIterator.cast_(terms)
    while (word := each.next()) is not None:
        rows = terms.postings(None, PostingsEnum.POSITIONS)
        while (row := rows.nextDoc()) != 0x7FFFFFFF:
            places = [rows.nextPosition() for _ in range(rows.freq())]
            found[texts[row]] += [(word.utf8ToString(), place) for place in places]
    return {text: sorted(set(each), key=lambda token: token[1]) for text, each in found.items()}


@cache
def edit_distance(left: str, right: str) -> int:
    """The edit distance: insertions, deletions, replacements and swaps of neighbors."""
    rows = [list(range(len(right) + 1))]
    for i, a in enumerate(left, 1):
        row = [i]
        for j, b in enumerate(right, 1):
            best = min(rows[-1][j] + 1, row[-1] + 1, rows[-1][j - 1] + (a != b))
            if i > 1 and j > 1 and a == right[j - 2] and left[i - 2] == b:
                best = min(best, rows[-2][j - 2] + 1)
            row.append(best)
        rows.append(row)
    return rows[-1][-1]


def matches(match: Match, has: Tokens, wanted: Tokens) -> bool:
    """Whether a text with these words matches, checked word by word."""
    words = {word for word, _ in has}
    match match.mode:
        case MatchMode.ALL:
            return bool(wanted) and all(word in words for word, _ in wanted)
        case MatchMode.ANY:
            return any(word in words for word, _ in wanted)
        case MatchMode.PHRASE:
            first = wanted[0][1] if wanted else 0
            places = set(has)
            return bool(wanted) and any(
                all((word, start + at - first) in places for word, at in wanted) for _, start in has
            )
        case MatchMode.PREFIX:
            prefix = match.text
            if match.words.analyzer != "whitespace":
                prefix = prefix.lower()
            return any(word.startswith(prefix) for word in words)
    return bool(wanted) and all(
        any(edit_distance(word, each) <= match.edits for each in words) for word, _ in wanted
    )


def search(analyzer: str, mode: MatchMode, text: str, edits: int = 0) -> Match:
    kind = index_type("lucene")
    words = kind.analyzed_text(ColumnSpec("c", pa.string(), (f"text:{analyzer}",)))
    assert isinstance(words, AnalyzedText)
    return Match(COLUMN, mode, text, words, edits)


def searches(analyzer: str) -> Iterator[Match]:
    for text in SEARCHES:
        yield search(analyzer, MatchMode.ALL, text)
        yield search(analyzer, MatchMode.ANY, text)
        yield search(analyzer, MatchMode.PHRASE, text)
        for edits in (0, 1, 2):
            yield search(analyzer, MatchMode.FUZZY, text, edits)
    for prefix in ("n", "new", "Car", "tag", "TAG42", "日", "x" * 90, "zzz"):
        yield search(analyzer, MatchMode.PREFIX, prefix)


@pytest.fixture(scope="module", params=ANALYZERS)
def analyzed(request: pytest.FixtureRequest, build_index: BuildIndex) -> tuple[str, IndexedData]:
    """Texts indexed with one analyzer, in several batches."""
    data = pa.table({"c": pa.array(texts_of(7), pa.string())})
    options = {"c": {"analyzer": request.param}}
    return request.param, build_index(data, batch_rows=64, options=options)


def test_the_index_and_the_matcher_agree_with_a_plain_search(
    analyzed: tuple[str, IndexedData],
) -> None:
    analyzer, indexed = analyzed
    values = indexed.data.column("c").to_pylist()
    leaves = list(searches(analyzer))
    tokens = tokens_of(analyzer, [*filter(None, values), "", *{leaf.text for leaf in leaves}])
    found = 0
    for leaf in leaves:
        wanted = tokens[leaf.text]
        expected = [
            None if text is None else matches(leaf, tokens[text], wanted) for text in values
        ]
        found += any(expected)
        assert evaluate(leaf, indexed.data).to_pylist() == expected, leaf
        few = indexed.data.slice(40, 30)  # the matcher builds a separate index of it
        assert evaluate(leaf, few).to_pylist() == expected[40:70], leaf
        assert indexed.answer(leaf) is Answer.EXACT
        rows = BitMap(row for row, truth in enumerate(expected) if truth)
        assert indexed.reader.row_ids(leaf) == rows, leaf
        not_rows = BitMap(row for row, truth in enumerate(expected) if truth is False)
        assert indexed.answer(Not(leaf)) is Answer.EXACT
        assert indexed.reader.row_ids(Not(leaf)) == not_rows, leaf
    assert found > 20, "the searches must find something"


def test_searches_with_another_analyzer_are_not_answered(build_index: BuildIndex) -> None:
    indexed = build_index(pa.table({"c": ["new car"]}), options={"c": {"analyzer": "english"}})
    assert indexed.answer(search("standard", MatchMode.ALL, "new")) is Answer.NONE
    keyword = build_index(pa.table({"c": ["new car"]}))
    assert keyword.answer(search("standard", MatchMode.ALL, "new")) is Answer.NONE


def test_text_is_searched_without_the_keyword_field(build_index: BuildIndex) -> None:
    data = pa.table({"c": ["new car", None, "old car"]})
    indexed = build_index(data, options={"c": {"analyzer": "standard", "keyword": "false"}})
    assert indexed.check(search("standard", MatchMode.ALL, "car")) is Answer.EXACT
    assert indexed.check(Not(search("standard", MatchMode.ALL, "new"))) is Answer.EXACT


@pytest.mark.parametrize("type", [pa.string(), pa.large_string()], ids=str)
def test_slices_chunks_and_long_texts_match_alike(
    type: pa.DataType, monkeypatch: pytest.MonkeyPatch
) -> None:
    leaf = search("standard", MatchMode.ALL, "new car")
    values = pa.array(texts_of(11), type)
    whole = evaluate(leaf, pa.table({"c": values}))
    for start in (0, 1, 63, 200):
        piece = pa.record_batch({"c": values.slice(start, 77)})
        assert evaluate(leaf, piece) == whole.slice(start, 77)
    chunks = pa.chunked_array([values[:10], values[10:10], values[10:]])
    assert evaluate(leaf, pa.table({"c": chunks})) == whole
    monkeypatch.setattr("hudi_index_service.index.lucene.full_text.BYTES_AT_ONCE", 512)
    assert evaluate(leaf, pa.table({"c": values})) == whole
    assert evaluate(leaf, pa.table({"c": pa.array([], type)})).to_pylist() == []
    assert evaluate(leaf, pa.table({"c": pa.nulls(3, type)})).to_pylist() == [None] * 3


def test_invalid_utf8_matches_alike_with_and_without_an_index(
    build_index: BuildIndex,
) -> None:
    broken = pa.array([b"new \xff car", b"\xff", b"new car", b"ne\xffw car"], pa.binary())
    texts = pa.Array.from_buffers(pa.string(), len(broken), broken.buffers())
    indexed = build_index(pa.table({"c": texts}), options={"c": {"analyzer": "standard"}})
    for leaf in (search("standard", MatchMode.ALL, text) for text in ("new car", "new", "w")):
        assert indexed.check(leaf) is Answer.EXACT
        assert rows_where(leaf, indexed.data) == indexed.reader.row_ids(leaf)
