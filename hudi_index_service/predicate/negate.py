"""Negation normal form: NOT only directly above a leaf, with the same three-valued meaning."""

from hudi_index_service.predicate.expression import (
    And,
    Compare,
    Constant,
    Not,
    Operator,
    Or,
    Predicate,
    conjunction,
    disjunction,
)


def negation_normal_form(predicate: Predicate) -> Predicate:
    """An equivalent predicate with NOT only above IN, LIKE, RLIKE, IS NULL, ``<=>`` and functions.

    Comparisons take the opposite operator instead: ``NOT (a < b)`` is ``a >= b``. That holds for
    NaN, too, which is above all other values, so that the order is total. Both are NULL if `a` is.
    """
    match predicate:
        case And(operands):
            return conjunction(negation_normal_form(operand) for operand in operands)
        case Or(operands):
            return disjunction(negation_normal_form(operand) for operand in operands)
        case Not(operand):
            return _negate(operand)
        case _:
            return predicate


def _negate(predicate: Predicate) -> Predicate:
    match predicate:
        case And(operands):
            return disjunction(_negate(operand) for operand in operands)
        case Or(operands):
            return conjunction(_negate(operand) for operand in operands)
        case Not(operand):
            return negation_normal_form(operand)
        case Constant(value):
            return Constant(None if value is None else not value)
        case Compare(column, operator, value) if operator is not Operator.EQ_NULL_SAFE:
            return Compare(column, operator.negated, value)
        case _:
            return Not(predicate)
