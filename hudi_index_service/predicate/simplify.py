"""A shorter predicate that is TRUE for the same rows: without conjuncts that others imply, and with
one range instead of several that overlap.

Of `a > 5 AND a > 3` the second is left out, of `a = 1 AND a IS NOT NULL` too; `a = 1 AND a IN (2)`
is FALSE; `a BETWEEN 1 AND 11 OR a BETWEEN 10 AND 20` is `a >= 1 AND a <= 20`. Only what makes rows
TRUE is kept the same: NULL and FALSE may be swapped, as negation normal form allows.
"""

from collections.abc import Sequence

import pyarrow as pa

from hudi_index_service.predicate.evaluate import evaluate
from hudi_index_service.predicate.expression import (
    And,
    Column,
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
from hudi_index_service.predicate.ranges import intersected, listed_values, united


def simplified(predicate: Predicate) -> Predicate:
    """The shorter predicate, or the same object where there is nothing to leave out.

    Args:
        predicate: In negation normal form.
    """
    match predicate:
        case And(operands):
            known = [simplified(each) for each in operands]
            if any(isinstance(each, Constant) and each.value is not True for each in known):
                return Constant(False)
            left = [leaf for each in known for leaf in _flat(each)]
            kept = _conjuncts(left)
            if kept is None:
                return Constant(False)
            return predicate if _same(kept, operands) else conjunction(kept)
        case Or(operands):
            known = [simplified(each) for each in operands]
            if any(isinstance(each, Constant) and each.value for each in known):
                return Constant(True)
            arms = united([each for each in known if not isinstance(each, Constant)])
            return predicate if _same(arms, operands) else disjunction(arms)
    return predicate


def _flat(predicate: Predicate) -> Sequence[Predicate]:
    """Its conjuncts, of which TRUE is none."""
    if isinstance(predicate, Constant):
        return ()
    return predicate.operands if isinstance(predicate, And) else (predicate,)


def _same(some: Sequence[Predicate], others: Sequence[Predicate]) -> bool:
    return len(some) == len(others) and all(a is b for a, b in zip(some, others, strict=True))


def _conjuncts(operands: Sequence[Predicate]) -> Sequence[Predicate] | None:
    """Those that are left; None if no row makes all of them TRUE."""
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
        kept = leaves if len(leaves) < 2 else _of_one_column(leaves)
        if kept is None:
            return None
        result += kept
    return result


def _column(predicate: Predicate) -> Column | None:
    leaf = predicate.operand if isinstance(predicate, Not) else predicate
    column: Column | None = getattr(leaf, "column", None)
    return column


def _of_one_column(leaves: list[Predicate]) -> list[Predicate] | None:
    null = next((each for each in leaves if isinstance(each, IsNull)), None)
    if null is not None:  # which NOT (a <=> 1) is TRUE for, and nothing else
        return None if any(map(_is_false_of_null, leaves)) else [null]
    stronger = [each for each in leaves if not _is_not_null(each)]
    if not any(map(_is_false_of_null, stronger)):
        not_null = next(filter(_is_not_null, leaves), None)
        return stronger if not_null is None else [*stronger, not_null]
    equal = [each for each in stronger if listed_values(each)]
    return _of_listed(equal, stronger) if equal else intersected(stronger)


def _is_not_null(predicate: Predicate) -> bool:
    return isinstance(predicate, Not) and isinstance(predicate.operand, IsNull)


def _is_false_of_null(predicate: Predicate) -> bool:
    """Whether it is TRUE for no NULL."""
    if isinstance(predicate, Not):
        compared = predicate.operand  # <=> is the one comparison that NOT stands above
        return not isinstance(compared, Compare)
    return not isinstance(predicate, IsNull)


def _of_listed(equal: list[Predicate], leaves: list[Predicate]) -> list[Predicate] | None:
    """Of the shortest list the values that make all others TRUE, by the one compiler of predicates;
    and full text and patterns, which take longer to try than to look up."""
    shortest = min(equal, key=lambda each: len(listed_values(each)))
    column, values = _column(shortest), listed_values(shortest)
    assert column is not None, "a leaf with values has a column"
    slow = [each for each in leaves if _is_slow(each)]
    others = [each for each in leaves if each is not shortest and not _is_slow(each)]
    if not others:
        return leaves
    rows = pa.record_batch([pa.array(values, values[0].type)], [column.name])
    truth = evaluate(conjunction(others), rows).to_pylist()
    left = tuple(value for value, true in zip(values, truth, strict=True) if true)
    if not left:
        return None
    if len(left) == len(values):
        return [shortest, *slow]
    if len(left) == 1:
        return [Compare(column, Operator.EQ, left[0]), *slow]
    return [In(column, left), *slow]


def _is_slow(predicate: Predicate) -> bool:
    return isinstance(predicate.operand if isinstance(predicate, Not) else predicate, Match | RLike)
