"""Which base files of a segment may have rows for which a predicate is TRUE.

The answer is no only if it is proved; see `predicate.bounds.may_match`, which decides the same for
one file. Statistics are compared for all files at once. Then `=`, IN and narrow ranges of numbers
are looked up in the column's run.
"""

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, TypeAlias

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
    distinct,
    exact_key,
    exact_keys,
    hashes,
    is_routed,
)
from hudi_index_service.index.metadata.segments.run import Run
from hudi_index_service.index.metadata.segments.segment import ColumnKey
from hudi_index_service.index.metadata.segments.segment_file import SegmentFile, Statistics
from hudi_index_service.index.number_encoding import NumberRange, encode_range
from hudi_index_service.index.stored_column import arrow_type_name, is_number
from hudi_index_service.predicate.bounds import prefix_of
from hudi_index_service.predicate.expression import (
    And,
    BoundColumn,
    Compare,
    Constant,
    In,
    IsNull,
    Like,
    Not,
    Operator,
    Or,
    Predicate,
)
from hudi_index_service.predicate.values import bound_of

log = logging.getLogger(__name__)

_VALUES_A_FILE = 2
"""The run is not searched for more values than this for each base file: every file is likely to
hold one of them."""

_MOST_PAIRS = 2**17
"""The maximum number of pairs of a run that are read for one range."""

_EQUALITIES = (Operator.EQ, Operator.EQ_NULL_SAFE)
_RANGES = (*_EQUALITIES, Operator.LT, Operator.LE, Operator.GT, Operator.GE)

Positions: TypeAlias = npt.NDArray[np.int64]


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
        match predicate:
            case Constant(value):
                return self._all(value is True)
            case And(operands):
                may = reduce(np.logical_and, map(self.may_match, operands))
                return reduce(np.logical_and, self._ranges(operands), may) if may.any() else may
            case Or(operands):
                return reduce(np.logical_or, map(self.may_match, operands))
            case Not(IsNull(column)) | Not(In(column) | Like(column)):
                statistics = self._statistics(column)
                return self._all() if statistics is None else statistics.may_be_value
            case IsNull(column) | Compare(column) | In(column) | Like(column):
                statistics = self._statistics(column)
                if statistics is None:
                    return self._all()
                return ~statistics.is_known | self._leaf(predicate, statistics)
        return self._all()

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
                if operator in _EQUALITIES and may.any():
                    may &= self._with_value(column, statistics, value)
                return may
            case Compare(column, Operator.NE, value) if isinstance(bounds, NumberBounds):
                number = encode_range(Operator.EQ, value, column.type)
                if number is not None and not number.is_empty:
                    return statistics.may_be_value & bounds.other_than(number.low)
            case In(column, values) if values.type == column.type:
                may = statistics.may_be_value.copy()
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

    def _with_value(self, column: BoundColumn, statistics: Statistics, value: pa.Scalar) -> Mask:
        """The files that may hold a value, by the run."""
        if is_number(column.type):
            number = encode_range(Operator.EQ, value, column.type)
            if number is None:
                return self._all()
            if number.is_empty:
                return ~statistics.is_routed
            exact = np.array([exact_key(number.low)], dtype=np.uint64)
            return self._holding(column, statistics, exact=exact)
        if value.type != column.type:
            return self._all()
        return self._with_any(column, statistics, pa.repeat(value, 1))

    def _with_any(self, column: BoundColumn, statistics: Statistics, values: pa.Array) -> Mask:
        """The files that may hold one of some values, by the run."""
        exact = exact_keys(values)
        if exact is not None:
            return self._holding(column, statistics, exact=exact)
        if not is_routed(column.type):
            return self._all()
        return self._holding(column, statistics, hashed=hashes(values))

    def _holding(
        self,
        column: BoundColumn,
        statistics: Statistics,
        *,
        exact: Keys | None = None,
        hashed: Keys | None = None,
    ) -> Mask:
        values = exact if hashed is None else hashed
        assert values is not None, "values have exact keys or hashes"
        if len(values) > _VALUES_A_FILE * self.segment.document.files:
            return self._all()
        run = self._run(column)
        if run is None:
            return self._all()
        try:
            _, files = run.located(run.keys_of(exact, hashed))
        except UNREADABLE as error:
            return self._without_run(column, error)
        return _only(files, statistics)

    def _ranges(self, operands: Sequence[Predicate]) -> list[Mask]:
        """For each column of numbers that conjuncts limit to a narrow range, the files that may
        hold a number in it."""
        ranges: dict[BoundColumn, NumberRange] = {}
        for each in operands:
            if isinstance(each, Compare) and each.operator in _RANGES:
                number = encode_range(each.operator, each.value, each.column.type)
                if number is not None and is_number(each.column.type):
                    known = ranges.get(each.column, number)
                    ranges[each.column] = NumberRange(
                        max(known.low, number.low), min(known.high, number.high)
                    )
        return [self._between(column, number) for column, number in ranges.items()]

    def _between(self, column: BoundColumn, number: NumberRange) -> Mask:
        """The files that may hold a number in a range, by the run. Statistics have been compared
        with both ends already."""
        if number.is_empty:
            return self._all(False)
        statistics = self._statistics(column)
        run = None if statistics is None else self._run(column)
        if statistics is None or run is None:
            return self._all()
        try:
            files = run.within(exact_key(number.low), exact_key(number.high), _MOST_PAIRS)
        except UNREADABLE as error:
            return self._without_run(column, error)
        return self._all() if files is None else _only(files, statistics)

    def _run(self, column: BoundColumn) -> Run | None:
        key = self._key(column)
        try:
            return None if key is None else self.segment.run(key)
        except UNREADABLE as error:
            self._without_run(column, error)
            return None

    def _without_run(self, column: BoundColumn, error: Exception) -> Mask:
        log.warning("%s: values of %s are not routed: %s", self.segment.name, column, error)
        return self._all()


def located_values(
    segment: SegmentFile, key: ColumnKey, values: pa.Array
) -> Sequence[Positions | None]:
    """For each base file of a segment, the positions of the values that it may hold; None if it may
    hold any. By the column's run, and otherwise by the files' least and greatest values.

    Args:
        values: Of the column's type, without NULL.
    """
    if key not in segment.columns or not is_routed(values.type):
        return [None] * segment.document.files
    by_bounds = _located_by_bounds(segment.statistics(key), values)
    try:
        run = segment.run(key)
        by_run = None if run is None else _located_by_run(run, values)
    except UNREADABLE as error:
        log.warning("%s: values of %s are not routed: %s", segment.name, key[0], error)
        by_run = None
    if by_run is None:
        return by_bounds
    positions, files = by_run
    bounds = np.searchsorted(files, np.arange(segment.document.files + 1))
    return [
        positions[bounds[file] : bounds[file + 1]] if is_routed_here else by_bounds[file]
        for file, is_routed_here in enumerate(segment.statistics(key).is_routed.tolist())
    ]


def _located_by_run(run: Run, values: pa.Array) -> tuple[Positions, Positions]:
    """Positions of values, and the file of each, sorted by file."""
    exact = exact_keys(values)
    own = hashes(values) if exact is None or not run.layout.by_value else exact
    keys = distinct(own)
    of_values = np.searchsorted(keys, own)
    found, files = run.located(keys)
    # From keys to the values that have them: several, if their hashes are equal.
    by_key = np.argsort(of_values, kind="stable")
    starts = np.searchsorted(of_values[by_key], np.arange(len(keys) + 1))
    counts = np.diff(starts)[found]
    ends = np.cumsum(counts)
    within = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - counts, counts)
    positions = by_key[np.repeat(starts[:-1][found], counts) + within]
    files = np.repeat(files, counts)
    order = np.lexsort((positions, files))
    return positions[order], files[order]


def _located_by_bounds(statistics: Statistics, values: pa.Array) -> Sequence[Positions | None]:
    sought = statistics.bounds.sought(values)
    order = np.argsort(sought, kind="stable")
    spans = statistics.bounds.spans(sought[order])
    is_known = spans.is_known & statistics.is_known
    return [
        order[first:end] if known else None
        for first, end, known in zip(spans.first, spans.end, is_known, strict=True)
    ]


def _ordered(leaf: In, bounds: ColumnBounds) -> npt.NDArray[Any]:
    """The listed values, sorted, as bounds compare with them."""
    if isinstance(bounds, ByteBounds) and leaf.ascending is not None:
        return np.array(leaf.ascending, dtype=object)  # sorted once for all segments
    return np.sort(bounds.sought(leaf.values))


def _only(files: npt.NDArray[np.int64], statistics: Statistics) -> Mask:
    """These files, and those that the run does not know."""
    may = ~statistics.is_routed
    may[files[files < len(may)]] = True
    return may


def _within(bounds: ByteBounds, operator: Operator, value: pa.Scalar) -> Mask:
    """Where a text or binary value may compare so."""
    limit = bound_of(value)
    if not isinstance(limit, bytes):
        return bounds.within(None, None)
    low = limit if operator in (*_EQUALITIES, Operator.GT, Operator.GE) else None
    high = limit if operator in (*_EQUALITIES, Operator.LT, Operator.LE) else None
    return bounds.within(low, high, strictly=operator in (Operator.LT, Operator.GT))
