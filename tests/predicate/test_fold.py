"""Walking through predicates: what a tree is follows from its leaves, whichever they are."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

from hudi_index_service.index.factory import index_type
from hudi_index_service.optimizer.estimates import leaf_rows
from hudi_index_service.optimizer.history.shape import query_shape
from hudi_index_service.predicate import negation_normal_form, parse_predicate
from hudi_index_service.predicate.bounds import ValueBounds, may_match
from hudi_index_service.predicate.evaluate import with_values
from hudi_index_service.predicate.expression import (
    And,
    BoundColumn,
    Constant,
    Leaf,
    Not,
    Predicate,
    Together,
)
from hudi_index_service.predicate.fold import conjuncts, fold
from hudi_index_service.read.spark.conditions import condition

SCHEMA = pa.schema([("a", pa.int64()), ("s", pa.string())])


def normal_form(where: str) -> Predicate:
    return negation_normal_form(parse_predicate(where, SCHEMA))


@pytest.mark.parametrize(
    ("where", "asked"),
    [
        ("a = 1 AND a = 2 OR a = 3", ["a = 1", "a = 3"]),
        ("(a = 1 OR a = 2) AND a = 3", ["a = 1", "a = 2", "a = 3"]),
        ("NOT (a IN (1, 2)) AND a = 3", ["NOT (a IN (1, 2))"]),
        ("FALSE AND a = 1", []),
        ("TRUE OR a = 1", []),
        ("CAST(NULL AS BOOLEAN) OR a = 3", ["a = 3"]),
    ],
)
def test_leaves_are_asked_until_the_answer_is_known(where: str, asked: list[str]) -> None:
    seen: list[str] = []

    def is_third(leaf: Predicate) -> bool:
        seen.append(str(leaf).replace("`", "").replace("L", ""))
        return seen[-1] in ("a = 3", "a = 2")

    fold(normal_form(where), is_third, all, any)
    assert seen == asked


def test_a_negated_constant_is_a_constant() -> None:
    """As NOT (part IN (…)) becomes with a partition's value."""
    for value, result in ((True, False), (False, True), (None, False)):
        assert fold(Not(Constant(value)), str, all, any) is result


def test_conjuncts_looked_up_together_are_a_leaf_only_if_asked_for() -> None:
    both = Together(conjuncts(normal_form("a > 1 AND a < 9")))
    predicate = And((both, normal_form("s = 'x'")))

    def count(**options: Any) -> int:
        return fold(predicate, lambda leaf: 1, sum_of, sum_of, **options)

    assert (count(), count(together=True)) == (3, 2)
    assert conjuncts(predicate) == (both, normal_form("s = 'x'"))
    assert conjuncts(both) == (both,)


def sum_of(numbers: Iterable[int]) -> int:
    return sum(numbers)


@dataclass(frozen=True, slots=True)
class SoundsLike(Leaf):
    """An operator that only the tree knows."""

    text: str


def test_a_new_operator_narrows_nothing() -> None:
    leaf: Any = SoundsLike(BoundColumn("s", pa.string()), "x")
    for each in (leaf, Not(leaf), And((leaf, leaf))):
        assert each.columns() == {"s"}
        assert may_match(each, lambda column: ValueBounds(least=b"a", greatest=b"b"))
        assert query_shape(each).count("sounds_like(s, ?)") == 1
        assert condition(each) is None
    for name in ("lucene", "btree"):
        assert index_type(name).answer(leaf, ()).value == "none"
    estimate = leaf_rows(leaf)({}, 9)
    assert (estimate.least, estimate.most) == (0, 9)


def test_the_values_of_a_partition_are_put_in_once_for_all_its_slices() -> None:
    def within(text: str) -> Predicate:
        return with_values(normal_form("(s = 'x' OR a > 1) AND a < 9"), {"s": pa.scalar(text)})

    assert within("x") is within("x")
    assert str(within("x")) == "((TRUE) OR (`a` > 1L)) AND (`a` < 9L)"
    assert str(within("y")) == "((FALSE) OR (`a` > 1L)) AND (`a` < 9L)"
