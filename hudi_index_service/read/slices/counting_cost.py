"""Estimates what a count by the index alone would read, to decide if reading rows is cheaper.

The index alone looks up every conjunct completely. For a range or pattern on text it reads each
matching term, which takes long if another conjunct leaves few rows to read.
"""

from collections.abc import Callable, Sequence

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


def prefer_scan_for_count(
    groups: Sequence[Predicate],
    steps: Callable[[Predicate], int],
    total: int,
    columns: int,
    constants: Constants,
) -> bool:
    """Whether reading the rows of the most selective other conjunct, or all rows without one, is
    cheaper than reading the terms of ranges and patterns on text.

    Args:
        groups: The conjuncts of a predicate, as they are looked up.
        steps: Returns the approximate steps of a look-up.
        total: The number of rows of the base file.
        columns: The number of columns read to check a row.
    """
    if not may_count_by_rows(total) or not any(map(_is_list_of_terms, groups)):
        return False
    terms, fewest = 0, total
    for each in groups:
        if _is_list_of_terms(each):
            terms += steps(each)
        elif not isinstance(each, Or):
            fewest = min(fewest, steps(each))
    return rows_pay_for_count(terms, fewest, total, columns, constants)


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
        case And((Compare() | Like() | RLike() as first, *_)):
            return _is_list_of_terms(first)
    return False
