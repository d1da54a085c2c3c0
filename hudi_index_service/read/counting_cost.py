"""Whether rows are counted sooner by reading some of them than by the index alone.

The index alone looks every conjunct up whole. That takes long for a range or a pattern of texts,
each term of which is gone through, where another conjunct leaves few rows to be read.
"""

from hudi_index_service.optimizer.cost.constants import Constants
from hudi_index_service.optimizer.cost.pages import PAGE_ROWS, pages_holding
from hudi_index_service.predicate.comparison import is_string, value_type
from hudi_index_service.predicate.expression import (
    And,
    Compare,
    Like,
    Operator,
    Or,
    Predicate,
    RLike,
)
from hudi_index_service.read.row_ids import Lookups, joined

_TERM = 15  # steps that a term takes which is found by going through all terms
_MANY = 100_000  # rows, from which on it is worth while to think about it


def is_read_sooner(predicate: Predicate, lookups: Lookups, columns: int, known: Constants) -> bool:
    """Whether the rows of the conjunct that has the fewest, or all if the others have none, are had
    sooner than the terms of ranges and patterns of texts.

    Args:
        predicate: In negation normal form.
        columns: How many are read to check a row.
    """
    operands = predicate.operands if isinstance(predicate, And) else (predicate,)
    if lookups.total < _MANY or not any(map(_is_list_of_terms, operands)):
        return False
    groups = joined(operands, lookups)
    terms, fewest = 0, lookups.total
    for each in groups:
        if _is_list_of_terms(each.operands[0] if isinstance(each, And) else each):
            terms += lookups.estimate(each)
        elif not isinstance(each, Or):
            fewest = min(fewest, lookups.estimate(each))
    pages = columns * pages_holding(fewest, lookups.total / PAGE_ROWS)
    picking = pages * known.row_steps + fewest * columns * known.value_ms / known.step_ms
    return _TERM * terms > min(picking, known.scan_steps(lookups.total, columns))


def _is_list_of_terms(predicate: Predicate) -> bool:
    match predicate:
        case Compare(column, operator):
            equal = operator in (Operator.EQ, Operator.EQ_NULL_SAFE, Operator.NE)
            return not equal and is_string(value_type(column))
        case Like() | RLike():
            return True
    return False
