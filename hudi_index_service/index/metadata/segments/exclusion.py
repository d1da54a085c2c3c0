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
from typing import NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from hudi_index_service.index.metadata.documents import UNREADABLE
from hudi_index_service.index.metadata.segments.bounds import (
    ByteBounds,
    Keys,
    Mask,
    is_routed,
)
from hudi_index_service.index.metadata.segments.run import Run
from hudi_index_service.index.metadata.segments.segment import ColumnKey
from hudi_index_service.index.metadata.segments.segment_file import SegmentFile, Statistics
from hudi_index_service.index.number_encoding import INT64_MIN, NumberRange, encode_range
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

log = logging.getLogger(__name__)

_VALUES_A_FILE = 2
"""The run is not searched for more values than this for each base file: every file is likely to
hold one of them."""

_MOST_PAIRS = 2**17
"""The maximum number of pairs of a run that are read for one range."""

_EQUALITIES = (Operator.EQ, Operator.EQ_NULL_SAFE)
_RANGES = (Operator.LT, Operator.LE, Operator.GT, Operator.GE)

_Answer = TypeVar("_Answer")


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
        condition = leaf.operand if isinstance(leaf, Not) else leaf
        match condition:
            case IsNull(column) | Compare(column) | In(column) | Like(column):
                sought = _sought(leaf)
                may = self._by_facts(column, lambda facts: facts.may_be_true(leaf, sought))
                return _Part(may, _numbers(leaf))
        return _Part(self._all())

    def _between(self, column: BoundColumn, number: NumberRange) -> Mask:
        """The files that may hold a number in a range, by the run. Statistics have been compared
        with both ends already."""
        if number.is_empty:
            return self._all(False)
        ends = number.low - INT64_MIN, number.high - INT64_MIN, _MOST_PAIRS
        return self._by_facts(
            column, lambda facts: facts.by_run(lambda run: run.within(*ends, facts.files))
        )

    def _by_facts(self, column: BoundColumn, test: Callable[["_Facts"], Mask]) -> Mask:
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

    def may_be_true(self, leaf: Condition, sought: "_Sought | None") -> Mask:
        """The files in which a condition may be TRUE for a row, as far as the column is known."""
        may, bounds = self.statistics.may_be_value, self.statistics.bounds
        match leaf:
            case IsNull():
                return self.statistics.may_be_null
            case Not(Compare()):  # <=>, whose negation is TRUE for NULL
                return np.ones(self.files, dtype=bool)
            case Compare() if bounds is not None:
                may = may & bounds.compared(leaf)
            case In(column, values) if bounds is not None and values.type == column.type:
                may = may & bounds.spans(bounds.ordered(leaf)).any()
            case Like() if isinstance(bounds, ByteBounds):
                prefix = prefix_of(leaf)
                return may if prefix is None else may & bounds.with_prefix(prefix)
        # The run is asked only where statistics leave a file.
        if sought is None or sought.size > _VALUES_A_FILE * self.files or not may.any():
            return may
        return may & self.by_run(lambda run: run.located(sought.keys_in(run), self.files).any())

    def by_run(self, ask: Callable[[Run], Mask | None]) -> Mask:
        """The files that may hold what the column's run is asked for; all where it does not say."""
        may = self.asked(ask)
        return np.ones(self.files, dtype=bool) if may is None else may | ~self.statistics.is_routed

    def asked(self, ask: Callable[[Run], "_Answer | None"]) -> "_Answer | None":
        """What the column's run answers; None without one."""
        try:
            run = self.segment.run(self.key)
            return None if run is None else ask(run)
        except UNREADABLE as error:
            name, column = self.segment.name, self.key[0]
            log.warning("%s: values of %s are not routed: %s", name, column, error)
            return None


class _Sought(NamedTuple):
    """The only values for which a condition is TRUE: how many, and their keys in a run."""

    size: int
    keys_in: Callable[[Run], Keys]


def _sought(leaf: Condition) -> _Sought | None:
    """None if the condition is TRUE for other values, too, or no run has them."""
    match leaf:
        case Compare(column, operator, value) if operator in _EQUALITIES:
            number = encode_range(operator, value, column.type) if is_number(column.type) else None
            if number is not None and not number.is_empty:
                # Without an array of it, whose cast would give the interpreter's lock away.
                return _Sought(1, lambda run: run.key_of(number.low))
            if value.type == column.type and is_routed(value.type):
                return _Sought(1, lambda run: run.keys_of(pa.repeat(value, 1)))
        case In(column, values) if values.type == column.type and is_routed(values.type):
            return _Sought(len(values), lambda run: run.keys_of(values))
    return None


class _Part(NamedTuple):
    """Where a part of a predicate may be TRUE, and the numbers in the range that it is."""

    may: Mask
    numbers: tuple[BoundColumn, NumberRange] | None = None


def _numbers(leaf: Condition) -> tuple[BoundColumn, NumberRange] | None:
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
    facts = _Facts(segment, key, statistics)
    by_run = facts.asked(lambda run: run.located(run.keys_of(values), facts.files))
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
