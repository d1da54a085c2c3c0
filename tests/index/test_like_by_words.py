"""LIKE and RLIKE on a column of which only the words are indexed: candidates by a word that must be
there. No value that fits may be missing, whatever the text."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_index_service.index.contract import Answer
from hudi_index_service.predicate import parse_predicate
from hudi_index_service.predicate.expression import Column, Like, Not, RLike
from hudi_index_service.predicate.like import parse_like
from hudi_index_service.predicate.regex import parse_regex
from tests.index.conftest import BuildIndex, IndexedData, rows_where

COLUMN = Column("c", pa.string())
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
def test_without_such_a_run_nothing_is_narrowed(words: IndexedData, pattern: str) -> None:
    assert words.answer(like(pattern)) is Answer.NONE


def test_expressions_are_narrowed_likewise(words: IndexedData) -> None:
    for pattern in ("tag4[0-9]+", "^a tag", "tag4242$", "(xx)+tag"):
        assert words.check(RLike(COLUMN, pattern, parse_regex(pattern))) is Answer.SUPERSET
    assert words.answer(RLike(COLUMN, "[a-z]+", parse_regex("[a-z]+"))) is Answer.NONE


def test_other_analyzers_do_not_keep_words_as_they_are(build_index: BuildIndex) -> None:
    options = {"c": {"analyzer": "english", "keyword": "false"}}
    indexed = build_index(pa.table({"c": ["buying cars"]}), options=options)
    assert indexed.answer(like("%buying%")) is Answer.NONE


@settings(derandomize=True, deadline=None, max_examples=30, database=None)
@given(
    texts=st.lists(
        st.lists(
            st.one_of(
                st.sampled_from(["abc", "ABC", "1abc", "abc9", " ", "_", "."]), st.text(max_size=3)
            ),
            max_size=6,
        ).map("".join),
        min_size=1,
        max_size=40,
    )
)
def test_no_text_that_fits_is_missed(build_index: BuildIndex, texts: list[str]) -> None:
    texts = [text.encode("utf-8", "ignore").decode() for text in texts]
    indexed = build_index(pa.table({"c": texts}), options=WORDS_ONLY)
    for pattern in ("%abc%", "abc%", "%1abc", "%ABC%", "%abc_"):
        assert indexed.check(like(pattern)) is Answer.SUPERSET


def test_where_texts_reach_them(words: IndexedData) -> None:
    leaf = parse_predicate("c LIKE '%tag4242%'", words.data.schema)
    assert words.reader.row_ids(leaf) >= rows_where(leaf, words.data)
