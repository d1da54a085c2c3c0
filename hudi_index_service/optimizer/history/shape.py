"""The shape of a query: its columns and operators, without its literals.

Queries that differ only in literals or in the order of conditions have the same shape:
``b <= 7 AND a = 'x' AND b > 5`` has the shape ``a = ? AND b BETWEEN ? AND ?``.
"""

import re
from collections import defaultdict
from collections.abc import Iterable

from hudi_index_service.predicate.expression import (
    And,
    BoundColumn,
    Compare,
    In,
    IsNull,
    Leaf,
    Like,
    Match,
    Not,
    Operator,
    Or,
    Predicate,
    RLike,
)

_LOWER = (Operator.GT, Operator.GE)
_UPPER = (Operator.LT, Operator.LE)
_STRICT = {Operator.GE: Operator.GT, Operator.LE: Operator.LT}

_PLAIN = re.compile(r"\w+(\.\w+)*")

_MOST_ARMS = 32  # of one AND or OR that a shape includes


def query_shape(predicate: Predicate | None) -> str:
    """The shape of a predicate in negation normal form, as text; "TRUE" for None.

    It is canonical: operands are sorted, equal ones appear once, and both ends of a range are one
    BETWEEN. Inclusive and exclusive bounds are the same. Patterns differ only in whether they begin
    with text and whether they are a prefix alone. The number of values of an IN is left out.
    """
    return "TRUE" if predicate is None else _shape(predicate)


def _shape(predicate: Predicate) -> str:
    match predicate:
        case And(operands):
            return _joined(" AND ", _with_ranges(operands))
        case Or(operands):
            return _joined(" OR ", map(_arm, operands))
        case Not(operand):
            return f"NOT ({_shape(operand)})"
        case Compare(column, operator):
            return f"{_name(column)} {_STRICT.get(operator, operator).value} ?"
        case In(column):
            return f"{_name(column)} IN (?)"
        case IsNull(column):
            return f"{_name(column)} IS NULL"
        case Like(column):
            return f"{_name(column)} LIKE {_pattern(predicate)}"
        case RLike(column):
            return f"{_name(column)} RLIKE ?"
        case Match(column, mode):
            return f"{mode.value}({_name(column)}, ?)"
        case Leaf(column):
            name = re.sub(r"(?<!^)(?=[A-Z])", "_", type(predicate).__name__).lower()
            return f"{name}({_name(column)}, ?)"
    return "?"  # a constant


def _pattern(like: Like) -> str:
    if like.is_prefix_only:
        return "?%"
    return "?" if like.prefix else "%?"


def _with_ranges(operands: Iterable[Predicate]) -> list[str]:
    """The shapes of conjuncts, with both ends of a range joined."""
    others: list[str] = []
    ends: defaultdict[str, set[str]] = defaultdict(set)
    for each in operands:
        if isinstance(each, Compare) and each.operator in _LOWER + _UPPER:
            ends[_name(each.column)].add(">" if each.operator in _LOWER else "<")
        else:
            others.append(_arm(each))
    for column, operators in ends.items():
        both = len(operators) == 2
        others.append(f"{column} BETWEEN ? AND ?" if both else f"{column} {operators.pop()} ?")
    return others


def _name(column: BoundColumn) -> str:
    return column.name if _PLAIN.fullmatch(column.name) else str(column)


def _arm(predicate: Predicate) -> str:
    shape = _shape(predicate)
    return f"({shape})" if isinstance(predicate, And | Or) else shape


def _joined(word: str, arms: Iterable[str]) -> str:
    parts = sorted(set(arms))
    return word.join(parts if len(parts) <= _MOST_ARMS else [*parts[:_MOST_ARMS], "…"])
