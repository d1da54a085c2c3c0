"""What segments say of the slices of a snapshot: which ones a predicate excludes, and which may
hold which values; before anything is made or listed for each slice.

The statistics are those of the entries' manifests, so the rule `excluded_by_statistics` would come
to the same, one slice after the other. Routing runs exclude more.
"""

from collections.abc import Sequence, Set
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_index_service.hudi.snapshot import BaseFile, Snapshot
from hudi_index_service.index.metadata.segments.bounds import Mask
from hudi_index_service.index.metadata.segments.exclusion import (
    Exclusion,
    LocatedValues,
    located_values,
)
from hudi_index_service.index.metadata.segments.segment import ColumnKey
from hudi_index_service.index.metadata.segments.segment_file import SegmentFile
from hudi_index_service.index.routed import Routed
from hudi_index_service.index.stored_column import arrow_type_name
from hudi_index_service.optimizer.plan import Access, QueryPlan, Routes, SlicePlan, left_of
from hudi_index_service.optimizer.rules import EXCLUDED, exclusion_reason
from hudi_index_service.predicate.expression import In, Predicate
from hudi_index_service.read.coverage import RequiredColumns
from hudi_index_service.read.index_folder import IndexFolder


class SegmentSlices:
    """Applies segments to one snapshot. It is kept for the next query on the snapshot. Safe to use
    from several threads."""

    def __init__(self, snapshot: Snapshot) -> None:
        files = enumerate(snapshot.base_files())
        self._places = {file.path: (number, file.size) for number, file in files}
        self._count = len(snapshot.slices)
        self._by_segment: dict[SegmentFile, npt.NDArray[np.int64]] = {}
        self._skipped: dict[str, _Skipped] = {}

    def skip(self, plan: QueryPlan, folder: IndexFolder, required: RequiredColumns) -> QueryPlan:
        """The plan without the slices in which, by segments, no row can match."""
        predicate = plan.predicate
        if predicate is None:
            return plan
        in_paths, without = plan.in_paths, plan
        stated = [each for each in folder.segments.items() if each[1]]
        for name, segments in reversed(stated):  # the first that excludes a slice is the reason
            keys = required.keys.get(name, frozenset())
            columns = frozenset(key for key in keys if key[0] not in in_paths)
            is_excluded = self._excluded(Exclusion(segments, columns), predicate)
            if is_excluded.any():
                without = self._without(plan.slices, without, is_excluded, name)
        self._keep([each for some in folder.segments.values() for each in some])
        return without

    def located(
        self, segments: Sequence[SegmentFile], key: ColumnKey, values: pa.Array
    ) -> LocatedValues:
        """For slices by number, which of some values the base file may hold.

        Args:
            segments: Of one index type.
            key: A column.
            values: Of the column's type, without NULL.
        """
        starts, ends = np.zeros((2, self._count), dtype=np.int32)
        is_known = np.zeros(self._count, dtype=bool)
        positions: list[npt.NDArray[np.int32]] = []
        for segment in segments:
            located = located_values(segment, key, values)
            if located is None:
                continue
            numbers = self._numbers(segment)
            files = np.flatnonzero(located.is_known & (numbers >= 0))
            before, routed = sum(map(len, positions)), located.routed
            starts[numbers[files]] = routed.starts[files] + before
            ends[numbers[files]] = routed.ends[files] + before
            is_known[numbers[files]] = True
            positions.append(routed.positions)
        every = np.concatenate([np.zeros(0, dtype=np.int32), *positions])
        return LocatedValues(Routed(every, starts, ends), is_known)

    def routes(self, folder: IndexFolder, required: RequiredColumns, in_paths: Set[str]) -> Routes:
        """Routes the values of lists.

        Args:
            in_paths: See `QueryPlan`.
        """

        def routed(
            leaf: In, index_type: str, base_files: Sequence[BaseFile]
        ) -> LocatedValues | None:
            column = leaf.column
            if column.name in in_paths or leaf.values.type != column.type:
                return None
            for in_millis in (False, True):
                key = column.name, arrow_type_name(column.type, in_millis=in_millis)
                if key in required.keys.get(index_type, ()):
                    located = self.located(folder.segments[index_type], key, leaf.values)
                    places = [self._places.get(each.path) for each in base_files]
                    if None in places:
                        return None
                    numbers = np.array([place[0] for place in places if place], dtype=np.int64)
                    known = located.is_known[numbers]
                    return LocatedValues(located.routed.of_files(numbers), known)
            return None

        return routed

    def _numbers(self, segment: SegmentFile) -> npt.NDArray[np.int64]:
        """For each base file of a segment, the number of its slice, or -1."""
        numbers = self._by_segment.get(segment)
        if numbers is None:
            paths, lengths = (segment.files[name].to_pylist() for name in ("path", "length"))
            places = (self._places.get(path, (-1, -1)) for path in paths)
            pairs = zip(places, lengths, strict=True)
            found = [number if size == length else -1 for (number, size), length in pairs]
            numbers = self._by_segment[segment] = np.array(found, dtype=np.int64)
        return numbers

    def _keep(self, segments: Sequence[SegmentFile]) -> None:
        """Forgets other segments."""
        if len(self._by_segment) > 2 * len(segments):
            self._by_segment = {each: self._numbers(each) for each in segments}

    def _excluded(self, exclusion: Exclusion, predicate: Predicate) -> Mask:
        """Which slices are excluded."""
        is_excluded = np.zeros(self._count, dtype=bool)
        for segment, may in zip(exclusion.segments, exclusion.may_match(predicate), strict=True):
            excluded_here = self._numbers(segment)[~may]
            is_excluded[excluded_here[excluded_here >= 0]] = True
        return is_excluded

    def _without(
        self,
        planned: tuple[SlicePlan, ...],
        plan: QueryPlan,
        is_excluded: Mask,
        name: str,
    ) -> QueryPlan:
        """The plan without the slices that are excluded. Unless partitions were pruned, all queries
        on a snapshot begin with the same planned slices, and skip them alike."""
        skipped = self._skipped.get(name)
        if skipped is None or skipped.slices is not planned:
            reason = exclusion_reason([name])
            without = [
                each.without_base_rows(reason, EXCLUDED) if each.access is Access.INDEX else each
                for each in planned
            ]
            left = left_of(without, range(len(without)))
            skipped = self._skipped[name] = _Skipped(planned, without, left)
        slices, kept = skipped.without.copy(), np.flatnonzero(~is_excluded).tolist()
        for number in kept:  # few, in most queries
            slices[number] = plan.slices[number]
        left = left_of(slices, sorted({*kept, *skipped.left}))
        return plan.with_slices(tuple(slices), left)


@dataclass(frozen=True, slots=True)
class _Skipped:
    """Slices, and the same skipped as far as they are read by index.

    Attributes:
        left: The positions of the others.
    """

    slices: tuple[SlicePlan, ...]
    without: list[SlicePlan]
    left: list[int]
