"""Estimates rows by ranges of values, joining the conjuncts on one column into one range."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

from hudi_index_service.optimizer.column_values import Values
from hudi_index_service.optimizer.estimates import selectivities
from hudi_index_service.optimizer.estimates.algebra import between
from hudi_index_service.optimizer.estimates.leaves import Estimate, Known, values_in
from hudi_index_service.optimizer.expected import RowEstimate
from hudi_index_service.predicate.expression import Compare, Operator
from hudi_index_service.predicate.fold import Condition
from hudi_index_service.predicate.values import bound_of

_UPWARDS = (Operator.GT, Operator.GE)
_DOWNWARDS = (Operator.LT, Operator.LE)

Part: TypeAlias = Condition | Estimate
"""A condition of a predicate, or the estimate of another part."""


@dataclass(frozen=True, slots=True)
class ValueRange:
    """A range of a column's values, as `bound_of` encodes them; None for an open end."""

    column: str
    low: Any = None
    low_included: bool = True
    high: Any = None
    high_included: bool = True

    def narrowed(self, operator: Operator, bound: Any) -> "ValueRange":
        """The values of the range for which a comparison is TRUE."""
        included = operator in (Operator.GE, Operator.LE)
        if operator in _UPWARDS:
            if self.low is None or (bound, not included) > (self.low, not self.low_included):
                return ValueRange(self.column, bound, included, self.high, self.high_included)
        elif self.high is None or (bound, included) < (self.high, self.high_included):
            return ValueRange(self.column, self.low, self.low_included, bound, included)
        return self

    @property
    def is_empty(self) -> bool:
        """Whether no value lies between its ends."""
        if self.low is None or self.high is None:
            return False
        both = self.low_included and self.high_included
        return bool(self.low > self.high or (self.low == self.high and not both))


def ranges(operands: Iterable[Part]) -> tuple[list[ValueRange], list[Part]]:
    """The ranges of some conjuncts, one per column, and the conjuncts that are no ranges."""
    by_column: dict[str, ValueRange] = {}
    others: list[Part] = []
    for each in operands:
        bound = bound_of(each.value) if isinstance(each, Compare) else None
        if isinstance(each, Compare) and bound is not None and _is_range(each.operator):
            name = each.column.name
            by_column[name] = by_column.get(name, ValueRange(name)).narrowed(each.operator, bound)
        else:
            others.append(each)
    return list(by_column.values()), others


def _is_range(operator: Operator) -> bool:
    return operator in _UPWARDS or operator in _DOWNWARDS


def range_rows(value_range: ValueRange) -> Estimate:
    """Estimates the rows whose value lies in a range."""
    if value_range.is_empty:
        return lambda statistics, total: RowEstimate(0, 0, 0)

    def rows(statistics: Known, total: int) -> RowEstimate:
        values = values_in(statistics, value_range.column, total)
        count = values.count
        if values.below is None:
            closed = value_range.low is not None and value_range.high is not None
            share = selectivities.CLOSED_RANGE if closed else selectivities.RANGE
            return RowEstimate(0, count * share, count)
        return _within(value_range, values)

    return rows


def _within(value_range: ValueRange, values: Values) -> RowEstimate:
    assert values.below is not None, "only of values whose bounds are known"
    least, greatest, count = values.least, values.greatest, values.count
    low, high, start, stop = value_range.low, value_range.high, 0.0, 1.0
    all_above = low is None or low < least or (value_range.low_included and low == least)
    all_below = high is None or high > greatest or (value_range.high_included and high == greatest)
    if all_above and all_below:
        return RowEstimate(count, count, count)
    if not all_above:
        if low > greatest or (low == greatest and not value_range.low_included):
            return RowEstimate(0, 0, 0)
        start = values.below(low, not value_range.low_included and not isinstance(low, bytes))
    if not all_below:
        if high < least or (high == least and not value_range.high_included):
            return RowEstimate(0, 0, 0)
        stop = values.below(high, value_range.high_included and not isinstance(high, bytes))
    return between(0, max((stop - start) * count, min(values.equal, 1.0)), count)
