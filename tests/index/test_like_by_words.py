"""LIKE and RLIKE on a column with only its words indexed: candidates by a word that every match
contains. No matching value may be missed, whatever the text."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

from hudi_index_service.index.contract import Answer
from hudi_index_service.index.lucene.search import OpenPhrase
from hudi_index_service.index.lucene.words import phrase_by_words
from hudi_index_service.predicate.expression import BoundColumn, Like, Not, RLike
from hudi_index_service.predicate.like import parse_like
from hudi_index_service.predicate.regex import parse_regex
from tests.example_counts import examples
from tests.index.conftest import BuildIndex, IndexedData

COLUMN = BoundColumn("c", pa.string())
WORDS_ONLY = {"c": {"analyzer": "standard", "keyword": "false"}}
RUN = "x" * 250 + "tag4242" + "y" * 300
TEXTS = [
    None, "", "tag4242", "a tag4242 b", "TAG4242", "xtag42427", "tag 4242", "tag-4242", "tag_4242_",
    "(tag4242)", "tag4242.5", "é tag4242é", "日本tag4242", "tag4242\u0301", "1\ufe0f\u20e3tag4242",
    "tag4242\ufe0f\u20e3", "\U0001f600tag4242", "can't tag4242's", "\u212aag4242", "ta\u00adg4242",
    RUN, "a " + RUN, "x" * 251 + "tag4242", "x" * 254 + " tag4242", "tag424", "other",
    "\u0e20tag4242\u0e20", "\u30abtag4242\u30ab", "\uac00tag4242", "t\u200dag4242", "tag4242\x00",
]  # fmt: skip


def like(pattern: str) -> Like:
    return Like(COLUMN, pattern, "\\", parse_like(pattern))


@pytest.fixture(scope="module")
def words(build_index: BuildIndex) -> IndexedData:
    data = pa.table({"c": pa.array([*TEXTS, *["filler"] * 500])})
    return build_index(data, batch_rows=200, options=WORDS_ONLY)


@pytest.mark.parametrize(
    "pattern",
    [
        "%tag4242%",
        "tag4242%",
        "%tag4242",
        "tag4242",
        "%TAG4242%",
        "% tag4242 %",
        "%ag42_2%",
        "%xxx%",
    ],
)
def test_like_is_narrowed_by_its_longest_run_of_letters_and_digits(
    words: IndexedData, pattern: str
) -> None:
    assert words.check(like(pattern)) is Answer.SUPERSET
    assert len(words.reader.row_ids(like(pattern))) < len(TEXTS)
    assert words.answer(Not(like(pattern))) is Answer.NONE


@pytest.mark.parametrize("pattern", ["%", "%a%", "a_b%", "%é%", "", "% %", "%_%"])
def test_like_without_a_usable_run_is_not_narrowed(words: IndexedData, pattern: str) -> None:
    assert words.answer(like(pattern)) is Answer.NONE


def test_regexes_are_narrowed_likewise(words: IndexedData) -> None:
    for pattern in ("tag4[0-9]+", "^a tag", "tag4242$", "(xx)+tag"):
        assert words.check(RLike(COLUMN, pattern, parse_regex(pattern))) is Answer.SUPERSET
    assert words.answer(RLike(COLUMN, "[a-z]+", parse_regex("[a-z]+"))) is Answer.NONE


def test_like_is_not_narrowed_by_words_of_other_analyzers(build_index: BuildIndex) -> None:
    options = {"c": {"analyzer": "english", "keyword": "false"}}
    indexed = build_index(pa.table({"c": ["buying cars"]}), options=options)
    assert indexed.answer(like("%buying%")) is Answer.NONE


BOTH = {"c": {"analyzer": "standard"}}


@pytest.fixture(scope="module")
def both(build_index: BuildIndex) -> IndexedData:
    """Words and whole values."""
    data = pa.table({"c": pa.array([*TEXTS, *SPACED, *(f"filler{i}" for i in range(500))])})
    return build_index(data, batch_rows=200, options=BOTH)


SPACED = [
    "x tag4242", "tag4242 x", "x\ttag4242\ny", "tag4242 \u0301x", "x\u0301 tag4242", "x tag4242 ",
    "\u200d tag4242", "tag4242 \u200d", "4242\ufe0f\u20e3 tag4242", "# tag4242", "x  tag4242",
    "\U0001f468\u200d tag4242", "x Tag4242", "x tag4242y", "a tag4242's", "tag4242 tag4242",
    "\u30ab tag4242 \u30ab", "\u0e20 tag4242", "x\u00a0tag4242",
    " " + "tag4242" * 40, "\ufeff tag4242",
]  # fmt: skip


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("%tag4242%", None),
        ("%ag42_2%", None),
        ("%TAG4242%", None),
        ("%g4242 %tag%", None),
        ("% tag4242", None),
        ("% tag4242 %", None),
        ("tag4242 %", None),
        ("%\ttag4242\n%", None),
        ("% 4242%", None),
        ("%no such word%", BitMap()),
    ],
)
def test_words_give_candidates_beside_whole_values(
    both: IndexedData, pattern: str, expected: BitMap | None
) -> None:
    """Counting enumerates the values; reading uses the words, which are fewer."""
    leaf = like(pattern)
    assert both.check(leaf) is Answer.EXACT
    candidates = both.reader.candidates(leaf, None)
    assert candidates is not None
    assert len(candidates) < 70
    if expected is not None:
        assert candidates == expected
    assert both.check(Not(leaf)) is Answer.EXACT


def test_candidates_have_the_word_in_any_case(both: IndexedData) -> None:
    assert both.reader.row_ids(like("%TAG4242%")) == BitMap([TEXTS.index("TAG4242")])
    found = both.reader.candidates(like("%TAG4242%"), None)
    assert found is not None
    assert {TEXTS.index("tag4242"), TEXTS.index("TAG4242")} <= set(found)


def test_a_word_between_white_space_is_looked_up_whole(both: IndexedData) -> None:
    found = both.reader.candidates(like("% tag4242"), None)
    assert found is not None
    assert TEXTS.index("xtag42427") not in found


def test_regexes_beside_whole_values_give_supersets(both: IndexedData) -> None:
    for pattern in ("tag4[0-9]+", "g4242$", "(x )+tag4242"):
        leaf = RLike(COLUMN, pattern, parse_regex(pattern))
        assert both.check(leaf) is Answer.SUPERSET


def texts_of(pieces: list[str], most: int) -> st.SearchStrategy[list[str]]:
    """Texts made of these pieces and of any characters."""
    piece = st.one_of(st.sampled_from(pieces), st.text(max_size=3))
    text = st.lists(piece, max_size=most).map("".join)
    as_utf8 = text.map(lambda text: text.encode("utf-8", "ignore").decode())
    return st.lists(as_utf8, min_size=1, max_size=40)


@examples(15)
@given(texts_of(["abc", "ABC", "9", " ", "\t", "_", ".", "'", "\u0301", "\u200d"], 8))
def test_no_word_between_white_space_is_missed(build_index: BuildIndex, texts: list[str]) -> None:
    indexed = build_index(pa.table({"c": texts}), options=BOTH)
    for pattern in ("% abc %", "abc %", "% abc", "abc", "%\tabc%", "%abc9%", "% 9%", "%_abc%"):
        indexed.check(like(pattern))


@examples(30)
@given(texts_of(["abc", "ABC", "1abc", "abc9", " ", "_", "."], 6))
def test_no_matching_text_is_missed(build_index: BuildIndex, texts: list[str]) -> None:
    indexed = build_index(pa.table({"c": texts}), options=WORDS_ONLY)
    for pattern in ("%abc%", "abc%", "%1abc", "%ABC%", "%abc_"):
        assert indexed.check(like(pattern)) is Answer.SUPERSET


@pytest.mark.parametrize(
    ("pattern", "words", "prefix"),
    [
        ("buying new%", ("buying",), "new"),
        ("Buying  NEW\tcar %", ("buying", "new", "car"), None),
        ("%x y z%", ("y",), "z"),
        ("% y z %", ("y", "z"), None),
        ("a b-c d e%", ("a",), "b"),
        ("a \u00e9 b c%", ("b",), "c"),
        ("a _ b%", ("a",), None),
        ("new%", (), "new"),
        ("%new", (), None),
        ("x" * 255 + " b c%", ("b",), "c"),
    ],
)
def test_a_like_pattern_becomes_a_phrase_of_whole_words(
    both: IndexedData, pattern: str, words: tuple[str, ...], prefix: str | None
) -> None:
    found = phrase_by_words(both.columns[0], parse_like(pattern))
    expected = OpenPhrase("t.standard.c", words, prefix) if words or prefix else None
    assert found == expected


def test_narrowing_rows_keeps_those_with_the_phrase(build_index: BuildIndex) -> None:
    texts = ["buying new car", "new buying", "buying a new car", "buying newer cars", None, "boat"]
    numbered = [f"buying n{i:03} x" for i in range(100)]  # more than are enumerated
    indexed = build_index(pa.table({"c": texts + numbered}), batch_rows=3, options=BOTH)
    every = BitMap(range(len(texts) + len(numbered)))

    def left(pattern: str, rows: BitMap = every) -> BitMap:
        found, answer = indexed.reader.narrowed(like(pattern), rows)
        assert answer is Answer.SUPERSET
        assert indexed.check(like(pattern)) is Answer.EXACT
        return found

    assert left("buying new%") == BitMap([0, 3])
    assert left("buying new%", BitMap([1, 3, 5])) == BitMap([3])
    assert left("buying new %") == BitMap([0])
    assert left("buying n%") == BitMap([0, 1, 2, 3, *range(6, 106)])  # too many words match
    assert left("new%") == BitMap([0, 1, 2, 3])
    assert left("nothing%") == BitMap()
    assert left("n%") == every
