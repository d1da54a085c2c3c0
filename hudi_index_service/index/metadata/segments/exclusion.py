"""Which base files of a segment may have rows for which a predicate is TRUE.

The answer is no only if it is proved; see `predicate.bounds.may_match`, which decides the same for
one file. Statistics are compared for all files at once. Then `=`, IN and narrow ranges of numbers
are looked up in the column's run.
"""

import logging
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from functools import reduce
from itertools import starmap
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_index_service.index.metadata.documents import UNREADABLE
from hudi_index_service.index.metadata.segments.bounds import (
    ByteBounds,
    ColumnBounds,
    Mask,
    NumberBounds,
    exact_key,
    is_routed,
)
from hudi_index_service.index.metadata.segments.run import Run
from hudi_index_service.index.metadata.segments.segment import ColumnKey
from hudi_index_service.index.metadata.segments.segment_file import SegmentFile, Statistics
from hudi_index_service.index.number_encoding import NumberRange, encode_range
from hudi_index_service.index.routed import Routed, either
from hudi_index_service.index.stored_column import arrow_type_name, is_number
from hudi_index_service.predicate.bounds import prefix_of
from hudi_index_service.predicate.expression import (
    BoundColumn,
    Compare,
    In,
    IsNull,
    Like,
    Not,
    Operator,
    Predicate,
)
from hudi_index_service.predicate.fold import Condition, fold
from hudi_index_service.predicate.values import bound_of

log = logging.getLogger(__name__)

_VALUES_A_FILE = 2
"""The run is not searched for more values than this for each base file: every file is likely to
hold one of them."""

_MOST_PAIRS = 2**17
"""The maximum number of pairs of a run that are read for one range."""

_EQUALITIES = (Operator.EQ, Operator.EQ_NULL_SAFE)
_RANGES = (*_EQUALITIES, Operator.LT, Operator.LE, Operator.GT, Operator.GE)


@dataclass(frozen=True, slots=True)
class Exclusion:
    """Compares predicates with the facts of one segment.

    Attributes:
        columns: The columns whose facts may be used.
    """

    segment: SegmentFile
    columns: Collection[ColumnKey]

    def may_match(self, predicate: Predicate) -> Mask:
        """For each base file of the segment, whether a row may match.

        Args:
            predicate: In negation normal form.
        """
        return fold(predicate, self._condition, self._all_of, self._any_of).may

    def _all_of(self, parts: "Iterable[_Part]") -> "_Part":
        """Where all conjuncts may be TRUE; those that limit a column of numbers to a narrow range
        are also looked up in the column's run."""
        may, ranges = self._all(), dict[BoundColumn, NumberRange]()
        for part in parts:
            may &= part.may
            if not may.any():
                return _Part(may)
            if part.numbers is not None:
                column, numbers = part.numbers
                known = ranges.get(column, numbers)
                ranges[column] = NumberRange(
                    max(known.low, numbers.low), min(known.high, numbers.high)
                )
        return _Part(reduce(np.logical_and, starmap(self._between, ranges.items()), may))

    def _any_of(self, parts: "Iterable[_Part]") -> "_Part":
        return _Part(reduce(np.logical_or, (part.may for part in parts), self._all(False)))

    def _condition(self, leaf: Condition) -> "_Part":
        match leaf:
            case Not(IsNull(column)) | Not(In(column) | Like(column)):
                statistics = self._statistics(column)
                return _Part(self._all() if statistics is None else statistics.may_be_value)
            case IsNull(column) | Compare(column) | In(column) | Like(column):
                statistics = self._statistics(column)
                if statistics is None:
                    return _Part(self._all())
                may = ~statistics.is_known | self._leaf(leaf, statistics)
                return _Part(may, _numbers(leaf))
        return _Part(self._all())

    def _all(self, truth: bool = True) -> Mask:
        return np.full(self.segment.document.files, truth)

    def _statistics(self, column: BoundColumn) -> Statistics | None:
        key = self._key(column)
        return None if key is None else self.segment.statistics(key)

    def _key(self, column: BoundColumn) -> ColumnKey | None:
        """The column's key in the segment; None if its facts must not be used."""
        for in_millis in (False, True):
            key = column.name, arrow_type_name(column.type, in_millis=in_millis)
            if key in self.columns and key in self.segment.columns:
                return key
        return None

    def _leaf(self, leaf: Predicate, statistics: Statistics) -> Mask:
        bounds = statistics.bounds
        match leaf:
            case IsNull():
                return statistics.may_be_null
            case Compare(column, operator, value) if operator in _RANGES:
                may = statistics.may_be_value.copy()
                if isinstance(bounds, NumberBounds):
                    number = encode_range(operator, value, column.type)
                    if number is not None:
                        may &= bounds.within(number.low, number.high)
                elif isinstance(bounds, ByteBounds):
                    may &= _within(bounds, operator, value)
                if operator in _EQUALITIES and value.type == column.type and may.any():
                    may &= self._with_any(column, statistics, pa.repeat(value, 1))
                return may
            case Compare(column, Operator.NE, value) if isinstance(bounds, NumberBounds):
                number = encode_range(Operator.EQ, value, column.type)
                if number is not None and not number.is_empty:
                    return statistics.may_be_value & bounds.other_than(number.low)
            case In(column, values) if values.type == column.type:
                may = statistics.may_be_value.copy()
                if bounds is not None:
                    may &= bounds.spans(_ordered(leaf, bounds)).any()
                if may.any():
                    may &= self._with_any(column, statistics, values)
                return may
            case Like():
                prefix = prefix_of(leaf)
                if prefix is not None and isinstance(bounds, ByteBounds):
                    return statistics.may_be_value & bounds.with_prefix(prefix)
        return statistics.may_be_value

    # --- runs --------------------------------------------------------------------------------

    def _with_any(self, column: BoundColumn, statistics: Statistics, values: pa.Array) -> Mask:
        """The files that may hold one of some values, by the run."""
        files = self.segment.document.files
        if not is_routed(column.type) or len(values) > _VALUES_A_FILE * files:
            return self._all()
        return self._by_run(
            column, statistics, lambda run: run.located(run.keys_of(values), files).any()
        )

    def _between(self, column: BoundColumn, number: NumberRange) -> Mask:
        """The files that may hold a number in a range, by the run. Statistics have been compared
        with both ends already."""
        if number.is_empty:
            return self._all(False)
        statistics = self._statistics(column)
        if statistics is None:
            return self._all()
        ends = exact_key(number.low), exact_key(number.high), _MOST_PAIRS
        files = self.segment.document.files
        return self._by_run(column, statistics, lambda run: run.within(*ends, files))

    def _by_run(
        self, column: BoundColumn, statistics: Statistics, ask: Callable[[Run], Mask | None]
    ) -> Mask:
        """The files that may hold what the column's run is asked for; all where it does not say."""
        key = self._key(column)
        try:
            run = None if key is None else self.segment.run(key)
            may = None if run is None else ask(run)
        except UNREADABLE as error:
            log.warning("%s: values of %s are not routed: %s", self.segment.name, column, error)
            may = None
        return self._all() if may is None else may | ~statistics.is_routed


class _Part(NamedTuple):
    """Where a part of a predicate may be TRUE, and the numbers for which a comparison is."""

    may: Mask
    numbers: tuple[BoundColumn, NumberRange] | None = None


def _numbers(leaf: Predicate) -> tuple[BoundColumn, NumberRange] | None:
    if not isinstance(leaf, Compare) or leaf.operator not in _RANGES:
        return None
    numbers = encode_range(leaf.operator, leaf.value, leaf.column.type)
    if numbers is None or not is_number(leaf.column.type):
        return None
    return leaf.column, numbers


@dataclass(frozen=True, slots=True)
class LocatedValues:
    """Which of some values base files may hold.

    Attributes:
        routed: The values of each base file.
        is_known: Whether that is known of a base file, by its column's run or its least and
            greatest value; else it may hold any of them.
    """

    routed: Routed
    is_known: Mask


def located_values(segment: SegmentFile, key: ColumnKey, values: pa.Array) -> LocatedValues | None:
    """Which of some values the base files of a segment may hold; None if nothing is known.

    Args:
        values: Of the column's type, without NULL.
    """
    if key not in segment.columns or not is_routed(values.type):
        return None
    statistics = segment.statistics(key)
    by_run: Routed | None = None
    try:
        run = segment.run(key)
        if run is not None:
            by_run = run.located(run.keys_of(values), segment.document.files)
    except UNREADABLE as error:
        log.warning("%s: values of %s are not routed: %s", segment.name, key[0], error)
    if by_run is None:
        return _located_by_bounds(statistics, values)
    if statistics.is_routed.all():
        return LocatedValues(by_run, statistics.is_routed)
    by_bounds = _located_by_bounds(statistics, values)
    return LocatedValues(
        either(statistics.is_routed, by_run, by_bounds.routed),
        statistics.is_routed | by_bounds.is_known,
    )


def _located_by_bounds(statistics: Statistics, values: pa.Array) -> LocatedValues:
    if statistics.bounds is None:
        nowhere = np.zeros(len(statistics.is_known), dtype=np.int32)
        return LocatedValues(Routed(nowhere[:0], nowhere, nowhere), nowhere.astype(bool))
    sought = statistics.bounds.sought(values)
    order = np.argsort(sought, kind="stable")
    spans = statistics.bounds.spans(sought[order])
    is_known = spans.is_known & statistics.is_known
    starts, ends = (np.where(is_known, each, 0) for each in (spans.first, spans.end))
    ends = np.maximum(starts, ends)
    return LocatedValues(
        Routed(*(each.astype(np.int32) for each in (order, starts, ends))), is_known
    )


def _ordered(leaf: In, bounds: ColumnBounds) -> npt.NDArray[Any]:
    """The listed values, sorted, as bounds compare with them."""
    if isinstance(bounds, ByteBounds) and leaf.ascending is not None:
        return np.array(leaf.ascending, dtype=object)  # sorted once for all segments
    return np.sort(bounds.sought(leaf.values))


def _within(bounds: ByteBounds, operator: Operator, value: pa.Scalar) -> Mask:
    """Where a text or binary value may compare so."""
    limit = bound_of(value)
    if not isinstance(limit, bytes):
        return bounds.within(None, None)
    low = limit if operator in (*_EQUALITIES, Operator.GT, Operator.GE) else None
    high = limit if operator in (*_EQUALITIES, Operator.LT, Operator.LE) else None
    return bounds.within(low, high, strictly=operator in (Operator.LT, Operator.GT))
