"""Skips the slices in which open entries find no row, before anything is planned for each slice,
and serves the others without a look at each one's entry.

A query on thousands of base files, of which neither statistics nor routing exclude many, often
finds rows in few of them. To plan a slice takes several times as long as to ask its open entry. So
all are asked by one call, and the slices without rows need no plan, no listing and no object of
their own. Where most slices are expected to have rows, none is asked.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from hudi_index_service.errors import EntryUnusable
from hudi_index_service.index.contract import Answer, ManyReaders, Truths
from hudi_index_service.index.files.opened_file import OpenedFiles
from hudi_index_service.index.metadata.segments.segment_file import SegmentFile, stated_generations
from hudi_index_service.optimizer.decide import (
    ask_open_entries,
    may_have_none,
    plan_by_open_entries,
)
from hudi_index_service.optimizer.estimates.manifests import estimated_rows
from hudi_index_service.optimizer.grouping import grouped
from hudi_index_service.optimizer.plan import Access, QueryPlan, SlicePlan, left_of
from hudi_index_service.optimizer.serving import ServingEntry, best_answer
from hudi_index_service.predicate.expression import Predicate
from hudi_index_service.predicate.fold import Condition, fold
from hudi_index_service.read.coverage import RequiredColumns, served_by
from hudi_index_service.read.index_folder import IndexFolder
from hudi_index_service.read.slices.reader_pool import HeldEntries, OpenEntry, ReaderPool

_Without: TypeAlias = Callable[[Truths], Truths]
"""For some slices, in which of them a condition is TRUE for no row."""

NO_ROW_FOUND = "no_row_found"
"""Names the reason of slices that are skipped here, as a rule does."""


class OpenSlices:
    """The slices of one snapshot whose entries are open. It is kept for the next query on the
    snapshot. Safe to use from several threads.

    An entry is known here if an earlier query has found that it serves its base file, with the
    columns that are required now, and segments state no newer generation. What it answers is true
    whatever else has become of it, unless its data file has changed. It serves again if segments
    state its generation as they did.

    Args:
        slices: All slices, as yet unplanned.
    """

    def __init__(self, slices: Sequence[SlicePlan]) -> None:
        self._slices = slices
        self._last: _Entries | None = None
        self._lock = Lock()

    def applied(
        self, plan: QueryPlan, folder: IndexFolder, required: RequiredColumns, pool: ReaderPool
    ) -> QueryPlan:
        """A plan without the slices in which no row makes the predicate TRUE, as far as open
        entries tell; and with the entries of other slices that are read by index, where all of a
        slice's entries are open and as they were."""
        predicate, slices, left = plan.predicate, plan.slices, plan.left()
        asked = [number for number in left if slices[number].access is Access.INDEX]
        if not plan_by_open_entries(len(asked)):
            return plan
        among = np.zeros(len(self._slices), dtype=bool)
        among[asked] = True
        with pool.held() as held:
            entries = self._open_entries(folder, required, held)
            is_empty = np.zeros_like(among)
            if predicate is not None and ask_open_entries(predicate):
                in_paths = plan.partitions.table.schema.names if plan.partitions else ()
                is_empty = entries.without_rows(predicate, among, frozenset(in_paths))
            changed = entries.changed(among)
        is_empty &= ~changed
        objects = _objects(slices)
        for group in entries.groups:
            skipped = is_empty[group.numbers]
            objects[group.numbers[skipped]] = group.skipped[skipped]
        serving = entries.is_served & among & ~is_empty & ~changed
        objects[serving] = entries.served[serving]
        planned = tuple(objects.tolist())
        return plan.with_slices(planned, left_of(planned, left))

    def _open_entries(
        self, folder: IndexFolder, required: RequiredColumns, held: HeldEntries
    ) -> "_Entries":
        with self._lock:
            last = self._last
            if (
                last is None
                or last.required is not required
                or last.version != held.version
                or last.segments != folder.segments
            ):
                last = self._last = _Entries.of(self._slices, folder, required, held)
            return last


class _Member(NamedTuple):
    """An open entry of a slice.

    Attributes:
        serves: Whether it serves, unless its file has changed.
    """

    number: int
    serving: ServingEntry
    opened: OpenEntry
    serves: bool


@dataclass(frozen=True, slots=True)
class _Group:
    """Open entries of one index type and layout.

    Attributes:
        typical: One of the slices with its entry; the others' entries answer the same leaves.
        numbers: The number of each one's slice.
        readers: Asks them.
        files: Their data files.
        skipped: The plan of each slice if no row of its base file matches.
    """

    typical: SlicePlan
    numbers: npt.NDArray[np.int64]
    readers: ManyReaders
    files: OpenedFiles
    skipped: npt.NDArray[np.object_]

    def without_rows(self, leaf: Predicate, among: Truths) -> npt.NDArray[np.int64]:
        """The numbers of slices, of some, in which no row makes a leaf TRUE."""
        nothing = np.empty(0, dtype=np.int64)
        positions = np.flatnonzero(among[self.numbers]).astype(np.int32)
        if not len(positions) or best_answer(self.typical.entries, leaf) is Answer.NONE:
            return nothing
        if not may_have_none(leaf, partial(estimated_rows, self.typical, leaf)):
            return nothing
        try:
            is_empty = self.readers.without_rows(leaf, positions)
        except EntryUnusable:  # looking up each slice reports it
            return nothing
        return nothing if is_empty is None else self.numbers[positions[is_empty]]

    def changed(self, among: Truths) -> npt.NDArray[np.int64]:
        """The numbers of slices, of some, whose entry has changed, or was deleted."""
        positions = np.flatnonzero(among[self.numbers]).astype(np.int32)
        return self.numbers[positions[~self.files.are_as_opened(positions)]]


@dataclass(frozen=True, slots=True)
class _Entries:
    """The open entries of a snapshot.

    Attributes:
        required: The columns that they may serve.
        version: Of the pool's open entries.
        segments: Those that state their generations.
        is_served: Whether all entries of each slice are open, and their generations stated…
        served: … and if so, the slice with its entries.
    """

    required: RequiredColumns
    version: int
    segments: Mapping[str, Sequence[SegmentFile]]
    groups: Sequence[_Group]
    is_served: Truths
    served: npt.NDArray[np.object_]

    @classmethod
    def of(
        cls,
        slices: Sequence[SlicePlan],
        folder: IndexFolder,
        required: RequiredColumns,
        held: HeldEntries,
    ) -> "_Entries":
        by_index = [
            (number, base_file)
            for number, each in enumerate(slices)
            if each.access is Access.INDEX and (base_file := each.file_slice.base_file) is not None
        ]
        base_files = [base_file for _, base_file in by_index]
        by_layout: dict[tuple[str, int], list[_Member]] = {}
        for name in required.groups:
            stated = stated_generations(folder.segments.get(name, ()), base_files)
            for number, base_file in by_index:
                serving = required.last_serving(name, base_file)
                opened = None if serving is None else held.get(serving)
                if serving is None or opened is None:
                    continue
                newest, entry = stated.get(base_file.path), serving.entry
                if newest is None or newest.number <= entry.manifest.generation:
                    serves = newest == entry.stated is not None and opened.listed == entry.listed
                    member = _Member(number, serving, opened, serves)
                    by_layout.setdefault((name, serving.layout), []).append(member)
        groups, serving_slices = list[_Group](), defaultdict[int, list[ServingEntry]](list)
        for members in by_layout.values():
            group = _group(slices, members)
            if group is not None:
                groups.append(group)
                for each in members:
                    if each.serves:
                        serving_slices[each.number].append(each.serving)
        is_served, served = np.zeros(len(slices), dtype=bool), _objects(slices)
        for number, servings in serving_slices.items():
            if len(servings) == len(required.groups):
                is_served[number], served[number] = True, served_by(slices[number], servings)
        return cls(required, held.version, folder.segments, groups, is_served, served)

    def without_rows(self, predicate: Predicate, among: Truths, in_paths: Set[str]) -> Truths:
        """In which slices, of some, no row makes the predicate TRUE, unless their entries have
        changed. Slices without an open entry are not among them.

        Args:
            predicate: In negation normal form.
            in_paths: Columns whose values are in the partitions' paths, not in the base files.
        """
        is_open = np.zeros_like(among)
        for group in self.groups:
            is_open[group.numbers] = True
        tree = grouped(predicate, [each.typical.entries[0] for each in self.groups])
        return fold(
            tree,
            lambda leaf: partial(self._without, leaf, in_paths),
            all_of=lambda parts: partial(_without_all, list(parts)),
            any_of=lambda parts: partial(_without_any, list(parts)),
            together=True,
        )(among & is_open)

    def changed(self, among: Truths) -> Truths:
        """In which slices, of some, an open entry has changed, or was deleted."""
        changed = np.zeros_like(among)
        for group in self.groups:
            changed[group.changed(among)] = True
        return changed

    def _without(self, leaf: Condition, in_paths: Set[str], among: Truths) -> Truths:
        is_empty = np.zeros_like(among)
        if not leaf.columns().isdisjoint(in_paths):
            return is_empty
        for group in self.groups:
            is_empty[group.without_rows(leaf, among & ~is_empty)] = True
        return is_empty


def _without_all(conjuncts: Sequence[_Without], among: Truths) -> Truths:
    """In which slices an AND is TRUE for no row. Each conjunct is looked up only in slices that
    those before it leave."""
    is_empty = np.zeros_like(among)
    for without in conjuncts:
        is_empty |= without(among & ~is_empty)
    return is_empty


def _without_any(arms: Sequence[_Without], among: Truths) -> Truths:
    """In which slices an OR is TRUE for no row. Each arm is looked up only in slices where no arm
    before it has rows."""
    left = among
    for without in arms:
        left = left & without(left)
    return left


def _group(slices: Sequence[SlicePlan], members: Sequence[_Member]) -> _Group | None:
    """Entries of one layout; None if each is asked by itself."""
    index_type = members[0].serving.index_type
    try:
        readers = index_type.together([each.opened.reader for each in members])
    except EntryUnusable:  # looking up each slice reports it
        return None
    if readers is None:
        return None
    reason = f"its {index_type.name} entry has no such row"
    served = [slices[each.number].served((each.serving,), "") for each in members]
    return _Group(
        served[0],
        np.array([each.number for each in members], dtype=np.int64),
        readers,
        OpenedFiles([each.opened.file for each in members]),
        _objects([each.without_base_rows(reason, NO_ROW_FOUND) for each in served]),
    )


def _objects(slices: Sequence[SlicePlan]) -> npt.NDArray[np.object_]:
    """The same as an array, in which many are replaced at once."""
    return np.fromiter(slices, dtype=object, count=len(slices))
