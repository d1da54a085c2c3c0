"""A slice that a Spark task searches for keys.

What decides how it is searched is at hand. Its plan, which takes much longer to unpickle, is loaded
only if an index or log files are read.
"""

import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from hudi_index_service.hudi.snapshot import FileSlice
from hudi_index_service.optimizer.plan import SlicePlan
from hudi_index_service.read.base_file.record_keys import RecordKeys
from hudi_index_service.read.keys.key_range import KeyRange

_Outline = tuple[FileSlice, int | None, KeyRange | None]


@dataclass(frozen=True, slots=True)
class SearchedSlice:
    """A slice to be searched for keys. Make it by `of`.

    Attributes:
        rows: The number of rows of the base file; None if no entry may serve it.
        within: The range of the base file's keys; None if not known.
        plan: Loads the plan.
    """

    file_slice: FileSlice
    rows: int | None
    within: KeyRange | None
    plan: Callable[[], SlicePlan]

    @classmethod
    def of(cls, plan: SlicePlan, keys: RecordKeys) -> "SearchedSlice":
        """The slice of a plan.

        Args:
            keys: The table's record keys.
        """
        return cls(*_outline(plan, keys), lambda: plan)


@dataclass(frozen=True, slots=True)
class PackedSlices:
    """Slices to be searched, pickled for Spark tasks. Make it by `of`."""

    outlines: bytes
    plans: bytes

    @classmethod
    def of(cls, plans: Sequence[SlicePlan], keys: RecordKeys) -> "PackedSlices":
        """Packs the slices; arguments as of `SearchedSlice.of`."""
        outlines = [_outline(each, keys) for each in plans]
        return cls(pickle.dumps(outlines), pickle.dumps(plans))

    def unpacked(self) -> list[SearchedSlice]:
        """The slices, in order."""

        @cache
        def plans() -> Sequence[SlicePlan]:
            loaded: Sequence[SlicePlan] = pickle.loads(self.plans)  # noqa: S301 - from the driver
            return loaded

        def plan(number: int) -> Callable[[], SlicePlan]:
            return lambda: plans()[number]

        outlines: list[_Outline] = pickle.loads(self.outlines)  # noqa: S301 - likewise
        return [SearchedSlice(*each, plan(number)) for number, each in enumerate(outlines)]


def _outline(plan: SlicePlan, keys: RecordKeys) -> _Outline:
    rows = plan.total if plan.entries else None
    return plan.file_slice, rows, KeyRange.of_base_file(plan, keys)
