"""Shortens a predicate: drops conjuncts that others imply.

In `a > 5 AND a > 3` and in `a = 1 AND a IS NOT NULL` the second conjunct is dropped;
`a = 1 AND a IN (2)` is FALSE. The result is TRUE for the same rows; NULL and FALSE may be swapped,
as negation normal form allows.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import pyarrow as pa

from hudi_index_service.arrow import FALSE
from hudi_index_service.predicate.evaluate import evaluate
from hudi_index_service.predicate.expression import (
    And,
    BoundColumn,
    Compare,
    Constant,
    In,
    IsNull,
    Match,
    Not,
    Operator,
    Or,
    Predicate,
    RLike,
    conjunction,
    disjunction,
)
from hudi_index_service.predicate.values import bound_of

_LOW = (Operator.GT, Operator.GE)
_HIGH = (Operator.LT, Operator.LE)
_AFTER = (Operator.GT, Operator.LE)
_EQUAL = (Operator.EQ, Operator.EQ_NULL_SAFE)

_Cut: TypeAlias = tuple[bool, Any, bool]
"""A position between values in Spark's order: whether the value is NaN, which is above all others;
the value; whether the position is after it. For types with steps it is always before a value."""


def simplified(predicate: Predicate) -> Predicate:
    """The shorter predicate, or the same object if there is nothing to drop.

    Args:
        predicate: In negation normal form.
    """
    match predicate:
        case And(operands):
            parts = [simplified(each) for each in operands]
            if any(isinstance(each, Constant) and each.value is not True for each in parts):
                return Constant(False)
            leaves = [leaf for each in parts for leaf in _flat(each)]
            conjuncts = _conjuncts(leaves)
            if conjuncts is None:
                return Constant(False)
            return predicate if _same(conjuncts, operands) else conjunction(conjuncts)
        case Or(operands):
            parts = [simplified(each) for each in operands]
            if any(isinstance(each, Constant) and each.value for each in parts):
                return Constant(True)
            arms = [each for each in parts if not isinstance(each, Constant)]
            return predicate if _same(arms, operands) else disjunction(arms)
    return predicate


def _flat(predicate: Predicate) -> Sequence[Predicate]:
    """The predicate's conjuncts without TRUE."""
    if isinstance(predicate, Constant):
        return ()
    return predicate.operands if isinstance(predicate, And) else (predicate,)


def _same(some: Sequence[Predicate], others: Sequence[Predicate]) -> bool:
    return len(some) == len(others) and all(a is b for a, b in zip(some, others, strict=True))


def _conjuncts(operands: Sequence[Predicate]) -> Sequence[Predicate] | None:
    """The remaining conjuncts; None if no row makes all of them TRUE."""
    by_column: dict[str, list[Predicate]] = {}
    for each in operands:
        column = _column(each)
        if column is not None:
            by_column.setdefault(column.name, []).append(each)
    if all(len(leaves) == 1 for leaves in by_column.values()):
        return operands
    result: list[Predicate] = []
    for each in operands:
        column = _column(each)
        leaves = [each] if column is None else by_column.pop(column.name, [])
        remaining = leaves if len(leaves) < 2 else _of_one_column(leaves)
        if remaining is None:
            return None
        result += remaining
    return result


def _column(predicate: Predicate) -> BoundColumn | None:
    leaf = predicate.operand if isinstance(predicate, Not) else predicate
    column: BoundColumn | None = getattr(leaf, "column", None)
    return column


def _of_one_column(leaves: list[Predicate]) -> list[Predicate] | None:
    null = next((each for each in leaves if isinstance(each, IsNull)), None)
    if null is not None:  # only NOT (a <=> 1) is TRUE for NULL, too
        return None if any(map(_is_false_of_null, leaves)) else [null]
    stronger = [each for each in leaves if not _is_not_null(each)]
    if not any(map(_is_false_of_null, stronger)):
        not_null = next(filter(_is_not_null, leaves), None)
        return stronger if not_null is None else [*stronger, not_null]
    equal = [(each, values) for each in stronger if (values := _listed_values(each)) is not None]
    return _filter_values(equal, stronger) if equal else _intersected(stronger)


def _is_not_null(predicate: Predicate) -> bool:
    return isinstance(predicate, Not) and isinstance(predicate.operand, IsNull)


def _is_false_of_null(predicate: Predicate) -> bool:
    """Whether the predicate is never TRUE for NULL."""
    if isinstance(predicate, Not):
        operand = predicate.operand  # <=> is the only comparison below a NOT
        return not isinstance(operand, Compare)
    return not isinstance(predicate, IsNull)


def _filter_values(
    equal: list[tuple[Predicate, pa.Array]], leaves: list[Predicate]
) -> list[Predicate] | None:
    """The values of the shortest list that make the other conjuncts TRUE, according to `evaluate`.
    Full text and patterns are kept: they are slower to evaluate than to look up.

    Args:
        equal: The leaves with their lists of values.
    """
    shortest, values = min(equal, key=lambda each: len(each[1]))
    column = _column(shortest)
    assert column is not None, "a leaf with values has a column"
    slow = [each for each in leaves if _is_slow(each)]
    others = [each for each in leaves if each is not shortest and not _is_slow(each)]
    if not others:
        return leaves
    rows = pa.record_batch([values], [column.name])
    remaining = values.filter(evaluate(conjunction(others), rows).fill_null(FALSE))
    if not len(remaining):
        return None
    if len(remaining) == len(values):
        return [shortest, *slow]
    if len(remaining) == 1:
        return [Compare(column, Operator.EQ, remaining[0]), *slow]
    return [In(column, remaining), *slow]


def _is_slow(predicate: Predicate) -> bool:
    return isinstance(predicate.operand if isinstance(predicate, Not) else predicate, Match | RLike)


def _listed_values(predicate: Predicate) -> pa.Array | None:
    """The only values for which the predicate is TRUE; None if there may be others."""
    match predicate:
        case Compare(_, operator, value) if operator in _EQUAL:
            return pa.repeat(value, 1)
        case In(_, values):
            return values
    return None


def _intersected(leaves: Sequence[Predicate]) -> list[Predicate] | None:
    """Conjuncts on one column, none a list of values, without those that others imply. The greatest
    lower and the least upper end remain, and the inequalities with values between them. None if no
    value is between the ends."""
    low = max(_ends(leaves, _LOW), key=lambda end: end[0], default=None)
    high = min(_ends(leaves, _HIGH), key=lambda end: end[0], default=None)
    if low is not None and high is not None and low[0] >= high[0]:
        return None
    conjuncts: list[Predicate] = []
    unequal: set[_Cut] = set()
    for each in leaves:
        cut = _cut(each)
        if cut is not None and isinstance(each, Compare) and each.operator is Operator.NE:
            beyond = (low is not None and cut < low[0]) or (high is not None and cut >= high[0])
            if beyond or cut in unequal:
                continue
            unequal.add(cut)
        elif cut is not None and not any(end is not None and each is end[1] for end in (low, high)):
            continue
        conjuncts.append(each)
    return conjuncts


def _ends(
    leaves: Iterable[Predicate], operators: tuple[Operator, ...]
) -> Iterator[tuple[_Cut, Compare]]:
    for each in leaves:
        if isinstance(each, Compare) and each.operator in operators:
            cut = _cut(each)
            if cut is not None:
                yield cut, each


def _cut(predicate: Predicate) -> _Cut | None:
    """The position at which a comparison cuts the values; None if it does not, or is unknown."""
    if not isinstance(predicate, Compare) or predicate.operator is Operator.EQ_NULL_SAFE:
        return None
    bound, is_after = bound_of(predicate.value), predicate.operator in _AFTER
    if bound is None:
        plain = predicate.value.as_py() if pa.types.is_floating(predicate.value.type) else None
        return None if plain == plain else (True, 0.0, is_after)
    if is_after and isinstance(bound, int) and not isinstance(bound, bool):
        return False, bound + 1, False  # dates, timestamps and unscaled decimals are integers, too
    return False, bound, is_after
