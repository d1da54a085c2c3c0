"""Which base files of segments may have rows for which a predicate is TRUE.

The answer is no only if it is proved; see `predicate.bounds.may_match`, which decides the same for
one file. Statistics are compared for all files at once. Then `=`, IN and narrow ranges of numbers
are looked up in the column's run.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import accumulate, starmap
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_index_service.index.metadata.documents import UNREADABLE
from hudi_index_service.index.metadata.segments.bounds import (
    ByteBounds,
    ColumnBounds,
    Keys,
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
_RANGES = (Operator.LT, Operator.LE, Operator.GT, Operator.GE)


@dataclass(frozen=True, slots=True)
class Exclusion:
    """Compares predicates with the facts of segments, each condition with all of them at once.

    Attributes:
        columns: The columns whose facts may be used.
    """

    segments: Sequence[SegmentFile]
    columns: Collection[ColumnKey]

    def may_match(self, predicate: Predicate) -> list[Mask]:
        """For each base file of each segment, whether a row may match.

        Args:
            predicate: In negation normal form.
        """
        may = fold(predicate, self._condition, self._all_of, self._any_of).may
        counts = [each.document.files for each in self.segments]
        ends = accumulate(counts)
        return [may[end - count : end] for count, end in zip(counts, ends, strict=True)]

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

    def _all(self, truth: bool = True) -> Mask:
        return np.full(sum(each.document.files for each in self.segments), truth)

    def _condition(self, leaf: Condition) -> "_Part":
        match leaf:
            case Not(IsNull(column)) | Not(In(column) | Like(column)):
                return _Part(self._by_facts(column, lambda facts: facts.statistics.may_be_value))
            case IsNull(column) | Compare(column) | In(column) | Like(column):
                return _Part(self._by_facts(column, _test_of(leaf)), _numbers(leaf))
        return _Part(self._all())

    def _between(self, column: BoundColumn, number: NumberRange) -> Mask:
        """The files that may hold a number in a range, by the run. Statistics have been compared
        with both ends already."""
        if number.is_empty:
            return self._all(False)
        ends = exact_key(number.low), exact_key(number.high), _MOST_PAIRS
        return self._by_facts(
            column, lambda facts: facts.by_run(lambda run: run.within(*ends, facts.files))
        )

    def _by_facts(self, column: BoundColumn, test: "_Test") -> Mask:
        """The files that pass a test of a column's facts; all of the segments that have none."""
        masks = []
        for segment in self.segments:
            key = self._key(segment, column)
            if key is None:
                masks.append(np.ones(segment.document.files, dtype=bool))
            else:
                facts = _Facts(segment, key, segment.statistics(key))
                masks.append(~facts.statistics.is_known | test(facts))
        return np.concatenate(masks)

    def _key(self, segment: SegmentFile, column: BoundColumn) -> ColumnKey | None:
        """The column's key in a segment; None if its facts must not be used."""
        for in_millis in (False, True):
            key = column.name, arrow_type_name(column.type, in_millis=in_millis)
            if key in self.columns and key in segment.columns:
                return key
        return None


class _Facts(NamedTuple):
    """What a segment tells of a column."""

    segment: SegmentFile
    key: ColumnKey
    statistics: Statistics

    @property
    def files(self) -> int:
        """The number of the segment's base files."""
        return self.segment.document.files

    def by_run(self, ask: Callable[[Run], Mask | None]) -> Mask:
        """The files that may hold what the column's run is asked for; all where it does not say."""
        try:
            run = self.segment.run(self.key)
            may = None if run is None else ask(run)
        except UNREADABLE as error:
            log.warning(
                "%s: values of %s are not routed: %s", self.segment.name, self.key[0], error
            )
            may = None
        return np.ones(self.files, dtype=bool) if may is None else may | ~self.statistics.is_routed


_Bounds = TypeVar("_Bounds", NumberBounds, ByteBounds)
_Test: TypeAlias = Callable[[_Facts], Mask]
"""Returns which of a segment's files may have a row for which a condition is TRUE, as far as its
column is known."""


def _test_of(leaf: IsNull | Compare | In | Like) -> _Test:
    """The test of a condition, whose literals are prepared once for all segments."""
    match leaf:
        case IsNull():
            return lambda facts: facts.statistics.may_be_null
        case Compare(column, operator, value) if operator in _RANGES:
            return _within(operator, value, column.type)
        case Compare(column, operator, value) if operator in _EQUALITIES:
            within = _within(operator, value, column.type)
            number = encode_range(operator, value, column.type) if is_number(column.type) else None
            if number is not None and not number.is_empty:
                encoded = number.low
                return _both(within, _has_any(column, 1, lambda run: run.key_of(encoded)))
            if value.type == column.type:
                one = pa.repeat(value, 1)
                return _both(within, _has_any(column, 1, lambda run: run.keys_of(one)))
            return within
        case Compare(column, Operator.NE, value):
            number = encode_range(Operator.EQ, value, column.type)
            if number is not None and not number.is_empty:
                return _by_bounds(NumberBounds, lambda bounds: bounds.other_than(number.low))
        case In(column, values) if values.type == column.type:
            routed = _has_any(column, len(values), lambda run: run.keys_of(values))
            return _both(_spans_any(leaf), routed)
        case Like():
            prefix = prefix_of(leaf)
            if prefix is not None:
                return _by_bounds(ByteBounds, lambda bounds: bounds.with_prefix(prefix))
    return lambda facts: facts.statistics.may_be_value


def _both(bounded: _Test, routed: _Test) -> _Test:
    """The run is asked only where statistics leave a file."""

    def test(facts: _Facts) -> Mask:
        may = bounded(facts)
        return may & routed(facts) if may.any() else may

    return test


def _by_bounds(kind: type[_Bounds], may: Callable[[_Bounds], Mask]) -> _Test:
    """Compares the bounds where they are of a kind."""

    def test(facts: _Facts) -> Mask:
        bounds, may_be_value = facts.statistics.bounds, facts.statistics.may_be_value
        return may_be_value & may(bounds) if isinstance(bounds, kind) else may_be_value

    return test


def _spans_any(leaf: In) -> _Test:
    """Where the bounds span one of the listed values."""
    ordered = dict[type[ColumnBounds], npt.NDArray[Any]]()  # sorted once for all segments

    def test(facts: _Facts) -> Mask:
        bounds, may_be_value = facts.statistics.bounds, facts.statistics.may_be_value
        if bounds is None:
            return may_be_value
        if type(bounds) not in ordered:
            ordered[type(bounds)] = _ordered(leaf, bounds)
        return may_be_value & bounds.spans(ordered[type(bounds)]).any()

    return test


def _within(operator: Operator, value: pa.Scalar, type: pa.DataType) -> _Test:
    """Where a value may compare so."""
    limit = bound_of(value)
    if isinstance(limit, bytes):
        low = limit if operator in (*_EQUALITIES, Operator.GT, Operator.GE) else None
        high = limit if operator in (*_EQUALITIES, Operator.LT, Operator.LE) else None
        strictly = operator in (Operator.LT, Operator.GT)
        return _by_bounds(ByteBounds, lambda bounds: bounds.within(low, high, strictly=strictly))
    number = encode_range(operator, value, type)
    if number is None:
        return lambda facts: facts.statistics.may_be_value
    return _by_bounds(NumberBounds, lambda bounds: bounds.within(number.low, number.high))


def _has_any(column: BoundColumn, count: int, keys_in: Callable[[Run], Keys]) -> _Test:
    """Where one of so many values may be, by the run, in which they have these keys."""
    keys = dict[bool, Keys]()  # made once for all runs by value, and once for the others

    def located(facts: _Facts, run: Run) -> Mask:
        by_value = run.layout.by_value
        if by_value not in keys:
            keys[by_value] = keys_in(run)
        return run.located(keys[by_value], facts.files).any()

    def test(facts: _Facts) -> Mask:
        if not is_routed(column.type) or count > _VALUES_A_FILE * facts.files:
            return facts.statistics.may_be_value
        return facts.by_run(lambda run: located(facts, run))

    return test


class _Part(NamedTuple):
    """Where a part of a predicate may be TRUE, and the numbers in the range that it is."""

    may: Mask
    numbers: tuple[BoundColumn, NumberRange] | None = None


def _numbers(leaf: Predicate) -> tuple[BoundColumn, NumberRange] | None:
    """Those of a range. A single number is looked up by the test of its leaf."""
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
        return np.array(leaf.ascending, dtype=object)
    return np.sort(bounds.sought(leaf.values))
