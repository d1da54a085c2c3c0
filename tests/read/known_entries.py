"""Entries of slices with given answers, looked up as real ones are."""

from collections.abc import Sequence
from contextlib import nullcontext
from types import SimpleNamespace
from typing import cast
from unittest.mock import patch

import pyarrow as pa
from hudi_index_parquet import Footer
from pyroaring import BitMap

from hudi_index_service.optimizer.cost.reading_steps import ReadingSteps
from hudi_index_service.optimizer.expected import RowEstimate
from hudi_index_service.optimizer.plan import Access, SlicePlan
from hudi_index_service.predicate.expression import Predicate
from hudi_index_service.read.query import Query
from hudi_index_service.read.row_ids import Bounds
from hudi_index_service.read.slices.found_rows import FoundRows
from hudi_index_service.read.slices.lookups import Lookups
from hudi_index_service.read.slices.many_entries import RowsOfOpen
from hudi_index_service.read.slices.reader_pool import OpenEntry, ReaderPool
from hudi_index_service.read.slices.slice_entries import SliceEntries
from hudi_index_service.read.statistics import SliceStatistics

_OPEN = cast(OpenEntry, SimpleNamespace(bounds=SimpleNamespace(footer=None)))


class KnownEntries:
    """A slice with one entry: itself."""

    total: int
    index_type = SimpleNamespace(name="known")
    stored = ()

    @property
    def plan(self) -> SimpleNamespace:
        return SimpleNamespace(
            entries=(self,),
            known=self,
            total=self.total,
            file_slice=SimpleNamespace(log_files=()),
            values={},
        )

    def footer(self) -> Footer:
        """One that is not read."""
        return cast(Footer, object())

    def footer_for(self, leaf: Predicate) -> Footer:
        """The same."""
        return self.footer()

    def expected(self, leaf: Predicate) -> RowEstimate | None:
        """What the manifest tells of the rows of a leaf; None if nothing."""
        return None

    def narrowed_exactly(self, leaf: Predicate, rows: BitMap) -> BitMap | None:
        """Those of some rows for which a leaf is TRUE, as a call to many entries tells; None if it
        does not tell."""
        return None


def looked_up(
    predicate: Predicate,
    slices: Sequence[KnownEntries],
    superset_ok: bool,
    reading: ReadingSteps,
    *,
    are_open: bool = True,
) -> list[Bounds]:
    """The rows that are found in each slice, where reading costs so much."""
    pool = cast(ReaderPool, SimpleNamespace(is_remote=False, is_open=lambda _: are_open))
    query = Query(predicate, predicate, *[pa.schema([])] * 3)
    window = [
        FoundRows(cast(SlicePlan, each.plan), SliceStatistics("", Access.INDEX), query)
        for each in slices
    ]
    lookups = Lookups(pool, superset_ok, reading=lambda found, footer: reading)

    def narrowed_rows(
        leaf: Predicate, servings: Sequence[KnownEntries], rows: Sequence[BitMap], _: object
    ) -> list[RowsOfOpen | None]:
        narrowed = [
            each.narrowed_exactly(leaf, some) for each, some in zip(servings, rows, strict=True)
        ]
        return [None if each is None else RowsOfOpen(_OPEN, each, 0.0) for each in narrowed]

    with (
        patch.object(SliceEntries, "leased", lambda plan, *_: nullcontext(plan.known)),
        patch("hudi_index_service.read.slices.lookups.look_up_together", lambda *_: False),
        patch("hudi_index_service.read.slices.lookups.narrowed_rows", narrowed_rows),
        patch(
            "hudi_index_service.read.slices.lookups.estimated_rows",
            lambda plan, leaf: plan.known.expected(leaf),
        ),
    ):
        lookups.look_up(window)
    assert all(each.failure is None for each in window)
    return [each.bounds for each in window]
