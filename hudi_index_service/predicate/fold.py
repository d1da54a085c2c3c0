"""Walks through predicates: the one place that knows how TRUE of a tree follows from its leaves."""

from collections.abc import Callable, Iterable
from typing import TypeAlias, TypeVar, assert_never

from hudi_index_service.predicate.expression import (
    And,
    AnyLeaf,
    Compare,
    Constant,
    Leaf,
    Not,
    Operator,
    Or,
    Predicate,
    Together,
    conjunction,
    disjunction,
)

Condition: TypeAlias = AnyLeaf | Not | Together
"""What is decided as a whole: a leaf, its negation, or conjuncts that are looked up together."""

Result = TypeVar("Result")


def fold(
    predicate: Predicate,
    of_leaf: Callable[[Condition], Result],
    all_of: Callable[[Iterable[Result]], Result],
    any_of: Callable[[Iterable[Result]], Result],
    *,
    together: bool = False,
) -> Result:
    """What holds of a predicate in negation normal form, from what holds of its leaves.

    Only TRUE is tracked: a row makes AND true iff it makes every operand true, and OR iff any. So
    TRUE is the AND of no operand, and FALSE, like NULL, the OR of none.

    Args:
        of_leaf: Returns the result of a leaf, or of NOT above a leaf.
        all_of, any_of: Join the results of operands, in order. These are computed when asked for,
            so that whoever has seen enough computes no more.
        together: Whether `of_leaf` is also asked for each `Together`, instead of its operands.
    """

    def of(each: Predicate) -> Result:
        match each:
            case Constant(value):
                return all_of(()) if value else any_of(())
            case Not(Constant(value)):
                return all_of(()) if value is False else any_of(())
            case Together() if together:
                return of_leaf(each)
            case Not() | Leaf():
                return of_leaf(each)
            case And(operands):
                return all_of(map(of, operands))
            case Or(operands):
                return any_of(map(of, operands))
            case _:
                assert_never(each)

    return of(predicate)


def conjuncts(predicate: Predicate) -> tuple[Predicate, ...]:
    """The operands of an AND; of others, the predicate itself."""
    if isinstance(predicate, And) and not isinstance(predicate, Together):
        return predicate.operands
    return (predicate,)


def negation_normal_form(predicate: Predicate) -> Predicate:
    """An equivalent predicate with NOT only above IN, LIKE, RLIKE, IS NULL, ``<=>`` and functions.

    Comparisons take the opposite operator instead: ``NOT (a < b)`` is ``a >= b``. That holds for
    NaN, too, which is above all other values, so that the order is total. Both are NULL if `a` is.
    """
    return _normal_form(predicate, negated=False)


def _normal_form(predicate: Predicate, *, negated: bool) -> Predicate:
    match predicate:
        case And(operands) | Or(operands):
            join = conjunction if isinstance(predicate, And) is not negated else disjunction
            return join(_normal_form(operand, negated=negated) for operand in operands)
        case Not(operand):
            return _normal_form(operand, negated=not negated)
        case Constant(value):
            return Constant(not value) if negated and value is not None else predicate
        case Compare(column, operator, value) if operator is not Operator.EQ_NULL_SAFE:
            return Compare(column, operator.negated, value) if negated else predicate
        case Leaf():
            return Not(predicate) if negated else predicate
        case _:
            assert_never(predicate)
