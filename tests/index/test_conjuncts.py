"""Conjuncts on one column, answered by one look-up: the same rows as by one look-up each."""

from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from pyroaring import BitMap

from hudi_index_service.index.contract import Answer, Conjunction
from hudi_index_service.index.lucene.lookup import known_lookup
from hudi_index_service.index.lucene.search import (
    Points,
    Terms,
)
from hudi_index_service.predicate import negation_normal_form, parse_predicate
from hudi_index_service.predicate.bounds import above_prefix
from hudi_index_service.predicate.expression import And, ArrayContains, BoundColumn, Predicate
from tests.index.conftest import BuildIndex, IndexedData, rows_where

ROWS = pa.table(
    {
        "a": pa.array([*range(-3, 12), None, 2**63 - 1, -(2**63)], pa.int64()),
        "d": pa.array([*(v / 2 for v in range(14)), float("nan"), -0.0, None, float("inf")]),
        "s": pa.array(
            ["", "2024-01-01", "2024-01-31", "2024-02-01", "2024-02", "b", "ba", "b\uffff", "B",
             "c", "é", "😀", None, "2023", "a", "bb", "b\x00", "2024-01-31x"]
        ),
        "b": pa.array(
            [b"", b"a", b"a\0", b"ab", b"a\xff", b"a\xff\xff", b"b", b"\xff", b"\xff\xff", b"\xfe",
             None, b"a\xfe", b"\xffa", b"\xff\xff\xff", *[b"c"] * 4]
        ),
        "many": pa.array([[1, 9], [5], [], None, [1], [9], *[[i] for i in range(12)]]),
    }
)  # fmt: skip


@pytest.fixture(scope="module")
def rows(build_index: BuildIndex) -> IndexedData:
    return build_index(ROWS, batch_rows=5)


@pytest.fixture(scope="module")
def any_rows(build_any: BuildIndex) -> IndexedData:
    return build_any(ROWS, batch_rows=5)


def conjuncts(where: str) -> And:
    predicate = negation_normal_form(parse_predicate(where, ROWS.schema))
    assert isinstance(predicate, And)
    return predicate


@pytest.mark.parametrize(
    "where",
    [
        "a BETWEEN 2 AND 5",
        "a >= 2 AND a < 5",
        "a > 2 AND a > 3 AND a <= 9 AND a < 100",
        "a IN (1, 2, 3, 40) AND a > 1",
        "a = 2 AND a = 2",
        "a > -9223372036854775808 AND a <= 9223372036854775807",
        "d > 1 AND d <= 6.5",
        "d >= 0 AND d <= 0",
        "d > 3 AND d <= cast('nan' AS double)",
        "s BETWEEN '2024-01-01' AND '2024-01-31'",
        "s > '2024-01-01' AND s < '2024-02'",
        "s LIKE '2024-%' AND s < '2024-02'",
        "s LIKE 'b%' AND s > 'b' AND s LIKE 'b%'",
        "s IN ('b', 'c', '') AND s >= 'b'",
        "s = 'b' AND s LIKE 'b%'",
        "s <=> 'b' AND s >= 'a'",
        "s >= '' AND s < 'é'",
    ],
)
def test_one_look_up_answers_conjuncts_on_one_column_exactly(
    any_rows: IndexedData, where: str
) -> None:
    predicate = conjuncts(where)
    assert any_rows.check(predicate) is Answer.EXACT
    assert rows_where(predicate, any_rows.data), "an empty result would match anything"


@pytest.mark.parametrize(
    "where",
    [
        "a > 5 AND a < 5",
        "a >= 6 AND a <= 5",
        "a = 1 AND a = 2",
        "a IN (1, 2) AND a > 2",
        "s > 'b' AND s <= 'b'",
        "s LIKE 'b%' AND s LIKE 'c%'",
        "s LIKE 'b%' AND s > 'c'",
        "s IN ('a', 'b') AND s IN ('c', 'd')",
        "s < ''",
        "s < '' AND s > 'a'",
    ],
)
def test_contradictory_conjuncts_need_no_search(rows: IndexedData, where: str) -> None:
    predicate = negation_normal_form(parse_predicate(where, ROWS.schema))
    assert rows.check(predicate) is Answer.EXACT
    assert rows.reader.row_ids(predicate) == BitMap()
    found = known_lookup(predicate, {column.name: column for column in rows.columns})
    assert found is not None
    if isinstance(predicate, And):
        assert found.search in (Points("n.a", ()), Terms("k.s", ()))


@pytest.mark.parametrize(
    "where",
    [
        "a > 1 AND d > 1",
        "a > 1 AND a <> 2",
        "a > 1 AND a IS NOT NULL",
        "a > 1 AND NOT a IN (2, 3)",
        "s > 'a' AND s LIKE '%b%'",
        "array_contains(many, 1) AND array_contains(many, 9)",
    ],
)
def test_other_conjuncts_are_answered_one_by_one(any_rows: IndexedData, where: str) -> None:
    together = Answer.EXACT if any_rows.kind.name == "copied" else Answer.NONE
    assert any_rows.check(conjuncts(where)) is together


@pytest.mark.parametrize(
    "where",
    [
        "a > 1 AND d > 1",
        "a BETWEEN 1 AND 9 AND s = 'b'",
        "s IN ('b', 'c', 'ba') AND d < 6 AND a > 0",
        "array_contains(many, 1) AND array_contains(many, 9)",
        "a = 1 AND a = 2 AND d > 0",
        "a IS NOT NULL AND d IS NULL",
    ],
)
def test_conjuncts_on_several_columns_are_looked_up_together(rows: IndexedData, where: str) -> None:
    predicate = Conjunction(conjuncts(where).operands)
    if "IS NOT NULL" in where:  # a complement
        assert rows.answer(predicate) is Answer.NONE
        return
    assert rows.check(predicate) is Answer.EXACT
    many = rows.kind.together([rows.reader] * 3)
    assert many is not None
    counts = many.counts(predicate, np.arange(3, dtype=np.int32))
    assert counts is not None
    assert counts.tolist() == [len(rows_where(predicate, rows.data))] * 3


def test_conjuncts_that_enumerate_terms_are_looked_up_alone(rows: IndexedData) -> None:
    for where in ("a > 1 AND s LIKE 'b%'", "a > 1 AND s > 'b'", "a > 1 AND s LIKE '%b'"):
        assert rows.answer(Conjunction(conjuncts(where).operands)) is Answer.NONE


def test_different_elements_of_an_array_may_match_each_conjunct(build_any: BuildIndex) -> None:
    indexed = build_any(pa.table({"many": pa.array([[1, 9], [5], [1]])}))
    column = BoundColumn("many", pa.list_(pa.int64()))
    both = And(tuple(ArrayContains(column, pa.scalar(value)) for value in (1, 9)))
    assert indexed.check(both) is (Answer.EXACT if indexed.kind.name == "copied" else Answer.NONE)
    each = [indexed.reader.row_ids(leaf) for leaf in both.operands]
    assert each[0] & each[1] == rows_where(both, indexed.data) == BitMap([0])


def test_one_superset_conjunct_makes_the_whole_a_superset(build_index: BuildIndex) -> None:
    term = "x" * 32_766
    indexed = build_index(pa.table({"s": [term, term + "a", term + "b", "x", None, "y", "w"]}))
    for where in (
        f"s > '{term}' AND s < 'y'",
        f"s >= '{term}b' AND s <= 'y'",
        f"s = '{term}a' AND s > 'x'",
        "s >= 'x' AND s < 'y'",
        "s LIKE 'x%' AND s < 'y'",
    ):
        predicate = negation_normal_form(parse_predicate(where, indexed.data.schema))
        assert indexed.check(predicate) is Answer.SUPERSET
        assert isinstance(predicate, And)
        apart = [indexed.reader.row_ids(leaf) for leaf in predicate.operands]
        assert indexed.reader.row_ids(predicate) == BitMap.intersection(*apart)


def test_above_prefix_is_the_next_key_after_all_with_it() -> None:
    assert above_prefix(b"a") == b"b"
    assert above_prefix(b"a\xff") == b"b"
    assert above_prefix(b"\xff\xff") is None
    assert above_prefix(b"") is None


def test_all_combinations_of_conjuncts_are_exact(any_rows: IndexedData) -> None:
    texts = {
        "a": ["a > 1", "a >= 2", "a < 8", "a <= 9", "a = 4", "a IN (3, 4, 5)", "a <=> 3"],
        "d": ["d > 1", "d >= 1.5", "d < 6", "d <= 5.5", "d = 2", "d IN (2, 2.5)"],
        "s": ["s > '2'", "s >= '2024'", "s < 'c'", "s <= 'bb'", "s LIKE '2024%'", "s LIKE 'b%'"],
        "b": ["b > X'61'", "b >= X'61FF'", "b < X'FF'", "b <= X'FFFF'", "b IN (X'62', X'FF')"],
    }
    predicates: list[Predicate] = [
        conjuncts(" AND ".join(some))
        for leaves in texts.values()
        for some in [*product(leaves, leaves), *product(leaves[::2], repeat=3)]
    ]
    for each in predicates:
        assert any_rows.check(each) is Answer.EXACT
