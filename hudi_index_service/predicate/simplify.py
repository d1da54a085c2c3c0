"""Shortens a predicate: drops conjuncts that others imply and merges overlapping ranges.

In `a > 5 AND a > 3` and in `a = 1 AND a IS NOT NULL` the second conjunct is dropped;
`a = 1 AND a IN (2)` is FALSE; `a BETWEEN 1 AND 11 OR a BETWEEN 10 AND 20` becomes
`a >= 1 AND a <= 20`. The result is TRUE for the same rows; NULL and FALSE may be swapped, as
negation normal form allows.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
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
            arms = united([each for each in parts if not isinstance(each, Constant)])
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
    equal = [(each, values) for each in stronger if (values := listed_values(each)) is not None]
    return _filter_values(equal, stronger) if equal else intersected(stronger)


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


def listed_values(predicate: Predicate) -> pa.Array | None:
    """The only values for which the predicate is TRUE; None if there may be others."""
    match predicate:
        case Compare(_, operator, value) if operator in _EQUAL:
            return pa.repeat(value, 1)
        case In(_, values):
            return values
    return None


def intersected(leaves: Sequence[Predicate]) -> list[Predicate] | None:
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


def united(arms: Sequence[Predicate]) -> Sequence[Predicate]:
    """The arms of an OR, with ranges of one column that overlap or meet merged, and without values
    that are in a range. The same object if nothing changes. Floating point is left unchanged."""
    by_column: dict[str, list[_Range]] = {}
    for arm in arms:
        arm_range = _range_of(arm)
        if arm_range is not None:
            by_column.setdefault(arm_range.column.name, []).append(arm_range)
    if not by_column:
        return arms
    instead: dict[int, Predicate | None] = {}
    for ranges in by_column.values():
        _unite(ranges, instead)
    for arm in arms:
        if isinstance(arm, Compare | In) and _is_in_range(arm, by_column):
            instead[id(arm)] = None
    if not instead:
        return arms
    remaining = (instead.get(id(arm), arm) for arm in arms)
    return [arm for arm in remaining if arm is not None]


@dataclass(slots=True)
class _Range:
    """A non-empty range of values between two ends, either of which may be missing.

    Attributes:
        low, high: The cuts, each with its leaf.
        arms: The arms of the OR that the range stands for.
    """

    column: BoundColumn
    low: tuple[_Cut, Compare] | None
    high: tuple[_Cut, Compare] | None
    arms: list[Predicate]

    def predicate(self) -> Predicate:
        """The predicate that is TRUE for the range's values."""
        ends = [end[1] for end in (self.low, self.high) if end is not None]
        return conjunction(ends) if ends else Not(IsNull(self.column))

    def holds(self, cut: _Cut) -> bool:
        """Whether the value after the cut is in the range."""
        return (self.low is None or self.low[0] <= cut) and (
            self.high is None or cut < self.high[0]
        )

    def add(self, other: "_Range") -> bool:
        """Merges a range that begins no lower, if they overlap or meet."""
        if self.high is not None and other.low is not None and other.low[0] > self.high[0]:
            return False
        if self.high is not None and (other.high is None or other.high[0] > self.high[0]):
            self.high = other.high
        self.arms += other.arms
        return True


def _unite(ranges: list[_Range], instead: dict[int, Predicate | None]) -> None:
    """Merges each run of ranges, and enters the replacements of its arms in `instead`."""
    merged: list[_Range] = []
    unbounded = [each for each in ranges if each.low is None]
    bounded = [each for each in ranges if each.low is not None]
    for each in unbounded + sorted(bounded, key=lambda item: item.low[0] if item.low else ()):
        if not merged or not merged[-1].add(each):
            merged.append(each)
    for each in merged:
        if len(each.arms) > 1:
            instead.update((id(arm), None) for arm in each.arms)
            instead[id(each.arms[0])] = each.predicate()
    ranges[:] = merged


def _range_of(arm: Predicate) -> _Range | None:
    """An arm as a range, with one end or with both on the same column."""
    leaves = arm.operands if isinstance(arm, And) else (arm,)
    low, high = list(_ends(leaves, _LOW)), list(_ends(leaves, _HIGH))
    if len(low) > 1 or len(high) > 1 or not low + high or len(low + high) != len(leaves):
        return None
    columns = {end.column.name: end.column for _, end in low + high}
    if len(columns) > 1 or any(pa.types.is_floating(end.value.type) for _, end in low + high):
        return None
    if low and high and low[0][0] >= high[0][0]:
        return None
    (column,) = columns.values()
    return _Range(column, low[0] if low else None, high[0] if high else None, [arm])


def _is_in_range(arm: Compare | In, by_column: Mapping[str, list[_Range]]) -> bool:
    """Whether the arm is TRUE only for listed values and each of them is in a range."""
    ranges, values = by_column.get(arm.column.name), listed_values(arm)
    if ranges is None or values is None:
        return False
    cuts = map(_before, values)
    return all(cut is not None and any(each.holds(cut) for each in ranges) for cut in cuts)


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
    before = _before(predicate.value)
    if before is None or predicate.operator not in _AFTER:
        return before
    is_nan, bound, _ = before
    if isinstance(bound, int) and not isinstance(bound, bool) and not is_nan:
        return is_nan, bound + 1, False  # dates, timestamps and unscaled decimals are integers, too
    return is_nan, bound, True


def _before(value: pa.Scalar) -> _Cut | None:
    bound = bound_of(value)
    if bound is not None:
        return False, bound, False
    if pa.types.is_floating(value.type):
        plain = value.as_py()
        if plain != plain:
            return True, 0.0, False
    return None
