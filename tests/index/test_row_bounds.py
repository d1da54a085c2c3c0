"""How close the bounds of a look-up's rows are. That they hold, `IndexedData.check` tests for every
leaf."""

import random
from dataclasses import replace
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_index_service.index.contract import Answer, Conjunction
from hudi_index_service.index.factory import index_type
from hudi_index_service.predicate import negation_normal_form, parse_predicate
from hudi_index_service.predicate.expression import And, Match, MatchMode, Not, Predicate
from tests.example_counts import examples
from tests.index.conftest import BuildIndex, IndexedData, rows_where
from tests.index.test_full_text import search as analyzed_search
from tests.index.test_full_text import texts_of

ROWS = 6_000
LEAF = 512  # points of a leaf of Lucene's tree


class _Fetched:
    """Blocks of which none are missing."""

    number = -1

    def fetch(self, block: int) -> None:
        raise AssertionError("no block is missing")


@pytest.fixture(scope="module")
def indexed(build_index: BuildIndex) -> IndexedData:
    """Columns of few and of many values, in several segments."""
    choose = random.Random(11)
    data = pa.table(
        {
            "state": [choose.choice(("new", "old", "odd", None)) for _ in range(ROWS)],
            "code": [f"{choose.choice('abcxyz')}{choose.randrange(ROWS):05}" for _ in range(ROWS)],
            "n": [None if choose.random() < 0.1 else choose.randrange(ROWS) for _ in range(ROWS)],
            "wide": pa.array([choose.randrange(50) for _ in range(ROWS)], pa.decimal128(38, 2)),
            "tags": [
                choose.choice((None, [], ["a"], ["a", "b"], ["b", None], ["a", "a"]))
                for _ in range(ROWS)
            ],
        }
    )
    built = build_index(data, batch_rows=2_000, memory_mb=1)
    assert sum(name.endswith(".si") for name in built.index.members) > 1
    return built


def leaf_of(indexed: IndexedData, where: str) -> Predicate:
    return negation_normal_form(parse_predicate(where, indexed.data.schema))


def bounds(indexed: IndexedData, leaf: Predicate) -> tuple[int, int]:
    """The bounds, checked to contain the true number."""
    assert indexed.check(leaf) is not Answer.NONE
    return indexed.reader.row_bounds(leaf)


@pytest.mark.parametrize(
    "where",
    [
        "state = 'new'",
        "state = 'none such'",
        "state <> 'new'",
        "state <=> 'new'",
        "NOT (state <=> 'new')",
        "state IN ('new', 'old', 'none such')",
        "state NOT IN ('new', 'old')",
        "state NOT IN ('new', NULL)",
        "state IS NULL",
        "state IS NOT NULL",
        "state > 'new'",
        "state <= 'odd'",
        "state LIKE 'o%'",
        "state LIKE '%d%'",
        "code LIKE 'a05%'",
        "code NOT LIKE 'a00%'",
        "code >= 'a00100'",
        "n = 17",
        "n <> 17",
        "n < 3000",
        "n >= 5990",
        "NOT (n <=> 17)",
        "n IN (1, 2, 3, 4)",
        "wide = 7",
        "wide > 20.5",
        "wide IN (1, 49, 50)",
    ],
)
def test_few_terms_and_numbers_are_counted_exactly(indexed: IndexedData, where: str) -> None:
    leaf = leaf_of(indexed, where)
    rows = len(rows_where(leaf, indexed.data))

    assert bounds(indexed, leaf) == (rows, rows)


def test_both_ends_of_a_range_are_counted_together(indexed: IndexedData) -> None:
    conjuncts = leaf_of(indexed, "n BETWEEN 1000 AND 1999")
    rows = len(rows_where(conjuncts, indexed.data))

    assert isinstance(conjuncts, And)
    assert bounds(indexed, conjuncts) == (rows, rows)


def test_without_its_leaves_the_end_cells_of_a_tree_are_uncertain(indexed: IndexedData) -> None:
    """This happens while some blocks are missing, since an estimate fetches none."""
    partly = replace(indexed.index, blocks=_Fetched())
    reader = index_type("lucene").open(partly, indexed.columns)
    segments = sum(name.endswith(".si") for name in indexed.index.members)
    for where in ("n < 3000", "n = 17", "n BETWEEN 1000 AND 4999", "n IN (5, 6)"):
        leaf = leaf_of(indexed, where)
        rows = len(rows_where(leaf, indexed.data))
        least, most = reader.row_bounds(leaf)
        assert least <= rows <= most
        assert 0 < most - least <= 2 * LEAF * segments
    reader.close()


def test_a_term_counts_as_several_rows(indexed: IndexedData) -> None:
    """To find the row of a term takes several times as long as to read one of a term's rows: a
    range of different texts takes more steps than one of numbers."""
    segments = sum(name.endswith(".si") for name in indexed.index.members)
    for where, most_of_rows, has_rows in (
        ("code >= 'b' AND code < 'c'", 1, False),
        ("code >= 'b' AND code < 'c'", 10, True),
        ("code LIKE '%7%'", 1, False),
        ("state >= 'new'", 1, True),
        ("n BETWEEN 1000 AND 1999", 1, True),
    ):
        leaf = leaf_of(indexed, where)
        rows = rows_where(leaf, indexed.data)
        most = most_of_rows * len(rows) + 2 * LEAF * segments
        assert (indexed.reader.candidates(leaf, most) is not None) is has_rows, where


def test_listed_terms_count_as_their_own_rows(build_index: BuildIndex) -> None:
    """Whatever rows other terms of the column have."""
    rows, listed = 20_000, ", ".join(f"'{number:05}'" for number in range(0, 20_000, 500))
    data = pa.table({"c": [f"{number:05}" for number in range(rows)]})
    indexed = build_index(data, batch_rows=rows)
    leaf = leaf_of(indexed, f"c IN ({listed})")
    assert indexed.reader.steps(leaf) == 40
    assert indexed.reader.candidates(leaf, 39) is None
    assert indexed.reader.candidates(leaf, 40) == rows_where(leaf, indexed.data)


def test_only_some_of_very_many_terms_are_counted(build_index: BuildIndex) -> None:
    rows = 20_000
    data = pa.table({"c": [f"{number:05}" for number in range(rows)]})
    indexed = build_index(data, batch_rows=rows)
    least, most = bounds(indexed, leaf_of(indexed, "c >= '05000' AND c < '15000'"))
    assert 0 < least < 10_000 < most < rows
    assert bounds(indexed, leaf_of(indexed, "c >= '00100'")) == (rows - 100, rows - 100)
    assert bounds(indexed, leaf_of(indexed, "c < '19990'")) == (rows - 10, rows - 10)
    least, most = bounds(indexed, leaf_of(indexed, "c LIKE '%77%'"))
    assert 0 < least < most < rows
    wanted = ", ".join(f"'{number:05}'" for number in range(0, rows, 20))
    least, most = bounds(indexed, leaf_of(indexed, f"c IN ({wanted})"))
    assert 0 < least <= rows / 20 < most == rows


def test_array_elements_are_counted_by_row(indexed: IndexedData) -> None:
    contains = leaf_of(indexed, "array_contains(tags, 'b')")
    rows = len(rows_where(contains, indexed.data))
    assert bounds(indexed, contains) == (rows, rows)
    others = Not(contains)
    least, most = bounds(indexed, others)
    # Which of the arrays with NULL also contain it is not known.
    assert most - least <= len(rows_where(contains, indexed.data))


def test_bounds_of_a_conjunction_are_within_those_of_its_conjuncts(indexed: IndexedData) -> None:
    conjuncts = leaf_of(indexed, "state = 'new' AND n < 5000")
    assert isinstance(conjuncts, And)
    together = Conjunction(conjuncts.operands)
    assert indexed.answer(together) is Answer.EXACT
    least, most = indexed.reader.row_bounds(together)
    rows = len(rows_where(conjuncts, indexed.data))
    assert least <= rows <= most
    assert most <= min(indexed.reader.row_bounds(each)[1] for each in conjuncts.operands)


@pytest.fixture(scope="module")
def texts(build_index: BuildIndex) -> IndexedData:
    data = pa.table({"c": pa.array(texts_of(5, 900), pa.string())})
    return build_index(data, batch_rows=300, options={"c": {"analyzer": "standard"}})


def search(text: str, mode: MatchMode = MatchMode.ALL) -> Match:
    return analyzed_search("standard", mode, text, edits=1)


def test_words_in_texts_are_counted(texts: IndexedData) -> None:
    car = len(rows_where(search("car"), texts.data))
    new = len(rows_where(search("new"), texts.data))
    assert bounds(texts, search("car")) == bounds(texts, search("Car!")) == (car, car)
    assert bounds(texts, search("car", MatchMode.PHRASE)) == (car, car)
    assert bounds(texts, search("new car"))[1] == min(car, new)
    assert bounds(texts, search("new car", MatchMode.PHRASE)) == (0, min(car, new))
    assert bounds(texts, search("new car", MatchMode.ANY)) == (max(car, new), car + new)
    assert bounds(texts, search("!?")) == (0, 0)
    assert bounds(texts, search("ca", MatchMode.PREFIX))[0] >= car
    assert bounds(texts, search("cat", MatchMode.FUZZY))[1] <= len(texts.data)
    nulls = texts.data.column("c").null_count
    assert bounds(texts, Not(search("car"))) == (len(texts.data) - nulls - car,) * 2


def test_a_repeated_word_is_counted_once(build_index: BuildIndex) -> None:
    """Every text has one word: counts of different words could be added."""
    data = pa.table({"c": ["car", "car", "home", None]})
    indexed = build_index(data, options={"c": {"analyzer": "standard"}})
    assert bounds(indexed, search("car CAR car", MatchMode.ANY)) == (2, 2)
    assert bounds(indexed, search("car home", MatchMode.ANY)) == (3, 3)
    assert bounds(indexed, search("car home")) == (0, 1)


@examples(40)
@given(
    literals=st.lists(st.integers(-5, ROWS + 5), min_size=2, max_size=5, unique=True),
    column=st.sampled_from(("n", "code")),
)
def test_bounds_hold_for_any_range_and_list(
    indexed: IndexedData, literals: list[int], column: str
) -> None:
    texts = [f"'{'abcxyz'[n % 6]}{abs(n):05}'" if column == "code" else str(n) for n in literals]
    for low, high in pairwise(sorted(texts)):
        for where in (f"{column} BETWEEN {low} AND {high}", f"{column} > {low}"):
            bounds(indexed, leaf_of(indexed, where))
    bounds(indexed, leaf_of(indexed, f"{column} IN ({', '.join(texts)})"))
    bounds(indexed, leaf_of(indexed, f"{column} NOT IN ({', '.join(texts)})"))
