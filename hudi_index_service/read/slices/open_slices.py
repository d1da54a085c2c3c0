"""Skips the slices in which open entries find no row, before anything is planned for each slice,
and serves the others without a look at each one's entry. For a count, slices whose entries know the
number of rows are skipped, too.

A query on thousands of base files, of which neither statistics nor routing exclude many, often
finds rows in few of them. To plan a slice takes several times as long as to ask its open entry. So
all are asked by one call, and the slices without rows need no plan, no listing and no object of
their own. Where most slices are expected to have rows, none is asked. To plan few slices takes less
time than to ask them; to count their rows does not.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress
from threading import Lock
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from hudi_index_service.errors import EntryUnusable
from hudi_index_service.index.contract import Answer, Positions, Truths
from hudi_index_service.index.metadata.segments.segment_file import SegmentFile, stated_generations
from hudi_index_service.optimizer.decide import are_many, ask_open_entries, may_have_none
from hudi_index_service.optimizer.estimates import estimated_rows
from hudi_index_service.optimizer.grouping import grouped
from hudi_index_service.optimizer.plan import Access, QueryPlan, SlicePlan, left_of
from hudi_index_service.optimizer.serving import ServingEntry
from hudi_index_service.predicate.expression import Leaf, Not, Predicate, Together
from hudi_index_service.predicate.fold import Condition, fold
from hudi_index_service.read.coverage import RequiredColumns, served_by
from hudi_index_service.read.index_folder import IndexFolder
from hudi_index_service.read.slices.reader_pool import (
    HeldEntries,
    OpenGroup,
    ReaderPool,
)

_Without: TypeAlias = Callable[[Truths], Truths]
"""For some slices, in which of them a condition is TRUE for no row."""

NO_ROW_FOUND, COUNTED = "no_row_found", "counted"
"""Names the reasons of slices that are skipped here, as rules do."""

_UNKNOWN = -1  # rows


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
        self,
        plan: QueryPlan,
        folder: IndexFolder,
        required: RequiredColumns,
        pool: ReaderPool,
        *,
        counting: bool = False,
    ) -> QueryPlan:
        """A plan without the slices in which no row makes the predicate TRUE, as far as open
        entries tell; and with the entries of other slices that are read by index, where all of a
        slice's entries are open and as they were.

        Args:
            counting: Whether only the number of rows is needed.
        """
        predicate, slices, left = plan.predicate, plan.slices, plan.left()
        asked = [number for number in left if slices[number].access is Access.INDEX]
        many = are_many(len(asked))
        if not many and not (counting and asked):
            return plan
        among = np.zeros(len(self._slices), dtype=bool)
        among[asked] = True
        with pool.held() as held:
            entries = self._open_entries(folder, required, held, all_known=many)
            is_empty, counts = np.zeros_like(among), None
            if predicate is not None and ask_open_entries(predicate):
                counts = entries.counts(predicate, among, plan.in_paths) if counting else None
                if counts is None and many:
                    is_empty = entries.without_rows(predicate, among, plan.in_paths)
            changed = entries.changed(among)
        is_empty &= ~changed
        objects = _objects(slices)
        objects[is_empty] = entries.without_base_rows[is_empty]
        counted = dict[int, int]()
        if counts is not None:
            counted = {n: int(counts[n]) for n in np.flatnonzero((counts >= 0) & ~changed).tolist()}
        for number in counted:
            objects[number] = entries.served[number].skipped("its entry counts its rows", COUNTED)
            among[number] = False
        serving = entries.is_served & among & ~is_empty & ~changed
        objects[serving] = entries.served[serving]
        planned = tuple(objects.tolist())
        return replace(plan.with_slices(planned, left_of(planned, left)), counted=counted)

    def _open_entries(
        self, folder: IndexFolder, required: RequiredColumns, held: HeldEntries, *, all_known: bool
    ) -> "_Entries":
        """The open entries.

        Args:
            all_known: Whether those are wanted, too, that other queries have found since.
        """
        with self._lock:
            last = self._last
            if (
                last is None
                or last.required is not required
                or last.held_version != held.version
                or (all_known and last.known_version != required.version)
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
    serves: bool


@dataclass(frozen=True, slots=True)
class _Group:
    """Open entries of one index type and layout.

    Attributes:
        typical: One of the entries; the others answer the same leaves.
        numbers: The number of each one's slice…
        positions: … and its position among the open entries.
    """

    typical: ServingEntry
    numbers: npt.NDArray[np.int64]
    positions: Positions
    opened: OpenGroup

    def without_rows(
        self, leaf: Predicate, among: Truths, served: npt.NDArray[np.object_]
    ) -> npt.NDArray[np.int64]:
        """The numbers of slices, of some, in which no row makes a leaf TRUE.

        Args:
            served: All slices with their open entries.
        """
        asked = among[self.numbers]
        nothing, numbers = np.empty(0, dtype=np.int64), self.numbers[asked]
        if not len(numbers) or self.typical.answer(leaf) is Answer.NONE:
            return nothing
        if not may_have_none(leaf, partial(estimated_rows, served[numbers[0]], leaf)):
            return nothing
        try:
            is_empty = self.opened.readers.without_rows(leaf, self.positions[asked])
        except EntryUnusable:  # looking up each slice reports it
            return nothing
        return nothing if is_empty is None else numbers[is_empty]

    def counts(self, leaf: Condition, among: Truths) -> tuple[npt.NDArray[np.int64], ...] | None:
        """The numbers of slices, of some, and how many rows of each base file make a leaf TRUE; -1
        where that is not known. None if that is not known of any."""
        asked = among[self.numbers]
        if self.typical.answer(leaf) is not Answer.EXACT:
            return None
        try:
            counts = self.opened.readers.counts(leaf, self.positions[asked])
        except EntryUnusable:  # counting each slice reports it
            return None
        return None if counts is None else (self.numbers[asked], counts)

    def changed(self, among: Truths) -> npt.NDArray[np.int64]:
        """The numbers of slices, of some, whose entry has changed, or was deleted."""
        asked = among[self.numbers]
        return self.numbers[asked][~self.opened.are_as_opened(self.positions[asked])]


@dataclass(frozen=True, slots=True)
class _Entries:
    """The open entries of a snapshot.

    Attributes:
        required: The columns that they may serve.
        held_version: Of the pool's open entries…
        known_version: … and of those that are known to serve.
        segments: Those that state their generations.
        served: Each slice with its open entries.
        is_served: Whether these are all of its entries, and their generations stated.
        without_base_rows: Each slice if no row of its base file matches.
        has_logs: Whether it has log files.
    """

    required: RequiredColumns
    held_version: int
    known_version: int
    segments: Mapping[str, Sequence[SegmentFile]]
    groups: Sequence[_Group]
    served: npt.NDArray[np.object_]
    is_served: Truths
    without_base_rows: npt.NDArray[np.object_]
    has_logs: Truths

    @classmethod
    def of(
        cls,
        slices: Sequence[SlicePlan],
        folder: IndexFolder,
        required: RequiredColumns,
        held: HeldEntries,
    ) -> "_Entries":
        base_files = [each.file_slice.base_file for each in slices]
        by_layout: dict[tuple[str, int], list[_Member]] = {}
        for name in required.groups:
            stated = stated_generations(folder.segments.get(name, ()), base_files)
            for number, base_file in enumerate(base_files):
                serving = required.last_serving(name, base_file)
                opened = None if serving is None else held.get(serving)
                if serving is None or opened is None:
                    continue
                newest, entry = stated.get(base_file.path), serving.entry
                if newest is None or newest.number <= entry.manifest.generation:
                    is_as_listed = opened.serving.entry.listed == entry.listed
                    serves = newest == entry.stated is not None and is_as_listed
                    member = _Member(number, serving, serves)
                    by_layout.setdefault((name, serving.layout), []).append(member)
        groups, open_entries = list[_Group](), defaultdict[int, list[_Member]](list)
        for members in by_layout.values():
            servings = [each.serving for each in members]
            group = held.group(servings)
            if group is None:
                continue
            numbers = np.array([each.number for each in members], dtype=np.int64)
            positions = np.array(list(map(group.position, servings)), dtype=np.int32)
            is_open = positions >= 0
            groups.append(_Group(servings[0], numbers[is_open], positions[is_open], group))
            for each in compress(members, is_open):
                open_entries[each.number].append(each)
        served, without_base_rows = _objects(slices), _objects(slices)
        is_served = np.zeros(len(slices), dtype=bool)
        for number, of_slice in open_entries.items():
            plan = served_by(slices[number], [each.serving for each in of_slice])
            reason = f"its {plan.reason} has no such row"
            served[number] = plan
            without_base_rows[number] = plan.without_base_rows(reason, NO_ROW_FOUND)
            all_open = len(of_slice) == len(required.groups)
            is_served[number] = all_open and all(each.serves for each in of_slice)
        has_logs = np.array([bool(each.file_slice.log_files) for each in slices], dtype=bool)
        return cls(
            required,
            held.version,
            required.version,
            folder.segments,
            groups,
            served,
            is_served,
            without_base_rows,
            has_logs,
        )

    def without_rows(self, predicate: Predicate, among: Truths, in_paths: Set[str]) -> Truths:
        """In which slices, of some, no row makes the predicate TRUE, unless their entries have
        changed. Slices without an open entry are not among them.

        Args:
            predicate: In negation normal form.
            in_paths: See `QueryPlan`.
        """
        is_open = np.zeros_like(among)
        for group in self.groups:
            is_open[group.numbers] = True
        tree = grouped(predicate, [each.typical for each in self.groups])
        return fold(
            tree,
            lambda leaf: partial(self._without, leaf, in_paths),
            all_of=lambda parts: partial(_without_all, list(parts)),
            any_of=lambda parts: partial(_without_any, list(parts)),
            together=True,
        )(among & is_open)

    def counts(
        self, predicate: Predicate, among: Truths, in_paths: Set[str]
    ) -> npt.NDArray[np.int64] | None:
        """For each slice, how many rows make the predicate TRUE, unless its entries have changed;
        -1 where that is not known, also of slices with log files, and that are not among some. None
        if it is not known of any. Takes what `without_rows` takes."""
        tree = grouped(predicate, [each.typical for each in self.groups], exact=True)
        if not isinstance(tree, Together | Not | Leaf) or tree.columns() & in_paths:
            return None
        counts = np.full(len(among), _UNKNOWN, dtype=np.int64)
        for group in self.groups:
            found = group.counts(tree, among & ~self.has_logs & (counts == _UNKNOWN))
            if found is not None:
                counts[found[0]] = found[1]
        return counts if (counts != _UNKNOWN).any() else None

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
            is_empty[group.without_rows(leaf, among & ~is_empty, self.served)] = True
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


def _objects(slices: Sequence[SlicePlan]) -> npt.NDArray[np.object_]:
    """The same as an array, in which many are replaced at once."""
    return np.fromiter(slices, dtype=object, count=len(slices))
