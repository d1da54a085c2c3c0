"""Estimates what a count by the index alone would read, to decide if reading rows is cheaper.

The index alone looks up every conjunct completely. For a range or pattern on text it reads each
matching term, which takes long if another conjunct leaves few rows to read.
"""

from hudi_index_service.optimizer.cost.constants import Constants
from hudi_index_service.optimizer.decide import may_count_by_rows, rows_pay_for_count
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


def prefer_scan_for_count(
    predicate: Predicate, lookups: Lookups, columns: int, constants: Constants
) -> bool:
    """Whether reading the rows of the most selective other conjunct, or all rows without one, is
    cheaper than reading the terms of ranges and patterns on text.

    Args:
        predicate: In negation normal form.
        columns: The number of columns read to check a row.
    """
    operands = predicate.operands if isinstance(predicate, And) else (predicate,)
    if not may_count_by_rows(lookups.total) or not any(map(_is_list_of_terms, operands)):
        return False
    groups = joined(operands, lookups.answers, lookups.keys)
    terms, fewest = 0, lookups.total
    for each in groups:
        if _is_list_of_terms(each.operands[0] if isinstance(each, And) else each):
            terms += lookups.estimate(each)
        elif not isinstance(each, Or):
            fewest = min(fewest, lookups.estimate(each))
    return rows_pay_for_count(terms, fewest, lookups.total, columns, constants)


def has_list_of_terms(predicate: Predicate) -> bool:
    """Whether a part of the predicate is looked up by reading many terms."""
    return any(map(_is_list_of_terms, predicate.leaves()))


def _is_list_of_terms(predicate: Predicate) -> bool:
    match predicate:
        case Compare(column, operator):
            equal = operator in (Operator.EQ, Operator.EQ_NULL_SAFE, Operator.NE)
            return not equal and is_string(value_type(column))
        case Like() | RLike():
            return True
    return False
