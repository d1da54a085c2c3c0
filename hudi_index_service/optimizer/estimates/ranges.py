"""Estimates rows by ranges of values, joining the conjuncts on one column into one range."""

from collections.abc import Iterable
from typing import Any, NamedTuple, TypeAlias

from hudi_index_service.optimizer.column_values import Values
from hudi_index_service.optimizer.estimates import selectivities
from hudi_index_service.optimizer.estimates.algebra import between
from hudi_index_service.optimizer.estimates.leaves import Estimate, Known, values_in
from hudi_index_service.optimizer.expected import RowEstimate
from hudi_index_service.predicate.expression import Compare, Operator
from hudi_index_service.predicate.fold import Condition
from hudi_index_service.predicate.values import bound_of

_UPWARDS = (Operator.GT, Operator.GE)
_RANGES = (*_UPWARDS, Operator.LT, Operator.LE)
_INCLUSIVE = (Operator.GE, Operator.LE)

Part: TypeAlias = Condition | Estimate
"""A condition of a predicate, or the estimate of another part."""


class ValueRange(NamedTuple):
    """A range of a column's values, as `bound_of` encodes them. Each end says whether it belongs to
    the range; None for an open end."""

    column: str
    low: tuple[Any, bool] | None
    high: tuple[Any, bool] | None


def ranges(operands: Iterable[Part]) -> tuple[list[ValueRange], list[Part]]:
    """The ranges of some conjuncts, one per column, and the other conjuncts. Where an end has
    several, as in no simplified predicate, the first one counts as such."""
    ends: dict[str, dict[bool, tuple[Any, bool]]] = {}
    others: list[Part] = []
    for each in operands:
        if isinstance(each, Compare) and each.operator in _RANGES:
            bound, of_column = bound_of(each.value), ends.setdefault(each.column.name, {})
            if bound is not None and (upwards := each.operator in _UPWARDS) not in of_column:
                of_column[upwards] = bound, each.operator in _INCLUSIVE
                continue
        others.append(each)
    found = [ValueRange(name, each.get(True), each.get(False)) for name, each in ends.items()]
    return [each for each in found if each.low or each.high], others


def range_rows(value_range: ValueRange) -> Estimate:
    """Estimates the rows whose value lies in a range."""

    def rows(statistics: Known, total: int) -> RowEstimate:
        values = values_in(statistics, value_range.column, total)
        count = values.count
        if values.below is None:
            closed = value_range.low and value_range.high
            share = selectivities.CLOSED_RANGE if closed else selectivities.RANGE
            return RowEstimate(0, count * share, count)
        return _within(value_range, values)

    return rows


def _within(value_range: ValueRange, values: Values) -> RowEstimate:
    assert values.below is not None, "only of values whose bounds are known"
    least, greatest, count = values.least, values.greatest, values.count
    low, low_included = value_range.low or (None, False)
    high, high_included = value_range.high or (None, False)
    all_above = low is None or low < least or (low_included and low == least)
    all_below = high is None or high > greatest or (high_included and high == greatest)
    if all_above and all_below:
        return RowEstimate(count, count, count)
    start, stop = 0.0, 1.0
    if not all_above:
        if low > greatest or (low == greatest and not low_included):
            return RowEstimate(0, 0, 0)
        start = values.below(low, not low_included and not isinstance(low, bytes))
    if not all_below:
        if high < least or (high == least and not high_included):
            return RowEstimate(0, 0, 0)
        stop = values.below(high, high_included and not isinstance(high, bytes))
    return between(0, max((stop - start) * count, min(values.equal, 1.0)), count)
