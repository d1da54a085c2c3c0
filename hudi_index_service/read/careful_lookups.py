"""Looks the rows of a slice up as long as that is cheap next to a scan. Where it would go on, the
open entries say how many rows there are at least; some of the rows tell in how many pages they lie;
and where these cost more than a scan, so do all rows, and no more is looked up."""

import logging
from dataclasses import dataclass

from hudi_index_parquet import ParquetReadError
from pyroaring import BitMap

from hudi_index_service.config import Settings
from hudi_index_service.optimizer.access import Reading, are_few, cheapest_reading, clearly
from hudi_index_service.optimizer.cost import Constants
from hudi_index_service.optimizer.cost.pages import pages_of
from hudi_index_service.optimizer.plan import SlicePlan
from hudi_index_service.predicate.expression import Predicate
from hudi_index_service.read.entry_estimates import row_estimate
from hudi_index_service.read.entry_lookups import EntryLookups
from hudi_index_service.read.query import Query
from hudi_index_service.read.row_ids import RowSet, candidate_rows
from hudi_index_service.read.row_reader import RowReader, row_positions
from hudi_index_service.read.sampled_rows import sampled_rows, spread_rows
from hudi_index_service.read.slice_entries import SliceEntries
from hudi_index_service.storage import Storage

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Found:
    """What came of looking rows up.

    Attributes:
        rows: Everything where a scan is cheaper.
        why: Why it is; "" where it is not, or nobody knows.
    """

    rows: RowSet
    why: str = ""


@dataclass(frozen=True, slots=True)
class CarefulLookups:
    """Look-ups for one query on one slice, whose rows are read.

    Attributes:
        query: On rows of the slice's partition.
        plan: The slice's.
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
        few = self.constants.few_steps(total)
        lookups = EntryLookups(
            self.entries, thrifty=True, limit=few, row_steps=self.constants.row_steps
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
        why = self._why_too_many(rows.least)
        if not why and not are_few(min(rows.most, most), total):
            why = self._why_scan(sampled_rows(predicate, lookups), clearly(rows.expected))
        if why:
            return Found(RowSet.everything(), why)
        # What is known already bounds what the rest may take.
        worth = None if found.rows is None else pages_of(found.rows) * self.constants.row_steps
        again = candidate_rows(predicate, lookups.without_limit(), worth)
        if again.rows is None or found.rows is None:
            return Found(again if found.rows is None else found)
        return Found(RowSet(again.rows & found.rows, again.exact))

    def _why_too_many(self, least: int) -> str:
        """Why a scan is cheaper by the number of rows alone: however close together they lie, their
        pages have so large a part of the file's bytes."""
        if least <= self.settings.read.scan_fraction * self.entries.total:
            return ""
        return f"at least {least} rows match: reading the file whole is cheaper"

    def _why_scan(self, some: BitMap, number: int) -> str:
        """Why a scan is cheaper by some of the rows, of so many in all; "" also where there are
        none."""
        base_file = self.plan.file_slice.base_file
        if not some or base_file is None:
            return ""
        reader = RowReader(self.storage, base_file, self.entries.footer(), self.query.needed)
        try:
            cost = reader.plan(row_positions(some))
        except ParquetReadError as error:
            log.info("%s is not read by row: %s", base_file.path, error)
            return ""  # who reads the rows falls back
        remote = not self.storage.is_local
        if cheapest_reading(cost, self.settings, remote=remote, rows=number) is not Reading.FILE:
            return ""
        return f"at least {cost.pages} pages hold the rows: reading the file whole is cheaper"
