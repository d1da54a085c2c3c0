"""Looks up the rows of a slice while that is cheap next to a scan. Before longer look-ups, the open
entries give a lower bound of the matching rows, and a sample of the rows gives a lower bound of
their pages. If these alone cost more than a scan, the look-ups stop and the slice is scanned."""

import logging
from dataclasses import dataclass

from hudi_index_parquet import ParquetReadError
from pyroaring import BitMap

from hudi_index_service.config import Settings
from hudi_index_service.optimizer.cost import Constants
from hudi_index_service.optimizer.cost.pages import pages_of
from hudi_index_service.optimizer.decide import (
    Reading,
    are_few,
    are_too_many,
    cheapest_reading,
    guessed_rows,
)
from hudi_index_service.optimizer.plan import SlicePlan
from hudi_index_service.predicate.expression import Predicate
from hudi_index_service.read.base_file.row_reader import RowReader, row_positions
from hudi_index_service.read.query import Query
from hudi_index_service.read.row_ids import RowSet, candidate_rows
from hudi_index_service.read.slices.entry_estimates import row_estimate
from hudi_index_service.read.slices.entry_lookups import EntryLookups
from hudi_index_service.read.slices.sampled_rows import sampled_rows, spread_rows
from hudi_index_service.read.slices.slice_entries import SliceEntries
from hudi_index_service.storage.store import Storage

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Found:
    """The result of looking up rows.

    Attributes:
        rows: The candidates; everything if a scan is cheaper.
        why: Why a scan is cheaper; "" if it is not, or if that is unknown.
    """

    rows: RowSet
    why: str = ""


@dataclass(frozen=True, slots=True)
class BoundedLookups:
    """Look-ups for one query on one slice whose rows are read afterwards.

    Attributes:
        query: The query, with the partition values of the slice.
        plan: The slice's plan.
    """

    query: Query
    plan: SlicePlan
    entries: SliceEntries
    storage: Storage
    settings: Settings
    constants: Constants

    def found(self, predicate: Predicate) -> Found:
        """The candidates for a predicate in negation normal form, unless a scan is cheaper.

        Raises:
            FileNotFoundError: the base file is gone.
            EntryInvalid, NativeModuleMissing, PermissionDenied, StorageFailed: see `SliceEntries`.
        """
        total = self.entries.total
        few = self.constants.cheap_steps(total)
        lookups = EntryLookups(
            self.entries, superset_ok=True, limit=few, row_steps=self.constants.row_steps
        )
        found = candidate_rows(predicate, lookups)
        if not lookups.put_off:
            if found.rows is None or len(found.rows) <= few:
                return Found(found)
            why = self._why_scan(spread_rows(found.rows, total), len(found.rows))
            return Found(RowSet.everything(), why) if why else Found(found)
        if found.rows is not None and not found.rows:
            return Found(found)
        most = total if found.rows is None else len(found.rows)
        rows = row_estimate(predicate, self.entries)
        why = ""
        if are_too_many(rows.least, total, self.settings):
            why = f"at least {rows.least} rows match: reading the file whole is cheaper"
        elif not are_few(min(rows.most, most), total):
            why = self._why_scan(sampled_rows(predicate, lookups), guessed_rows(rows.expected))
        if why:
            return Found(RowSet.everything(), why)
        # The rows found so far bound the steps that the remaining look-ups are worth.
        worth = None if found.rows is None else pages_of(found.rows) * self.constants.row_steps
        again = candidate_rows(predicate, lookups.without_limit(), worth)
        if again.rows is None or found.rows is None:
            return Found(again if found.rows is None else found)
        return Found(RowSet(again.rows & found.rows, again.exact))

    def _why_scan(self, some: BitMap, number: int) -> str:
        """Why a scan is cheaper, judging by some of `number` rows; "" if it is not, or without
        rows."""
        base_file = self.plan.file_slice.base_file
        if not some or base_file is None:
            return ""
        reader = RowReader(self.storage, base_file, self.entries.footer(), self.query.needed)
        try:
            cost = reader.plan(row_positions(some))
        except ParquetReadError as error:
            log.info("%s is not read by row: %s", base_file.path, error)
            return ""  # the reader of the rows falls back
        remote = not self.storage.is_local
        if cheapest_reading(cost, self.settings, remote=remote, rows=number) is not Reading.FILE:
            return ""
        return f"at least {cost.pages} pages hold the rows: reading the file whole is cheaper"
