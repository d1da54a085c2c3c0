"""Looks up the rows of a slice as long as that is cheap compared with a scan. Before longer
look-ups, the open entries give a lower bound of the matching rows, and a sample of the rows gives a
lower bound of their pages. If these alone cost more than a scan, the look-ups stop and the slice is
scanned."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from hudi_index_parquet import ParquetReadError
from pyroaring import BitMap

from hudi_index_service.config import Settings
from hudi_index_service.optimizer.cost import Constants
from hudi_index_service.optimizer.cost.constants import FEWEST_STEPS
from hudi_index_service.optimizer.cost.pages import pages_of
from hudi_index_service.optimizer.decide import (
    Reading,
    are_few,
    are_too_many,
    cheapest_reading,
    guessed_rows,
)
from hudi_index_service.optimizer.grouping import grouped
from hudi_index_service.optimizer.plan import SlicePlan
from hudi_index_service.predicate.expression import And, Or, Predicate, Together
from hudi_index_service.read.base_file.row_reader import RowReader, row_positions
from hudi_index_service.read.query import Query
from hudi_index_service.read.row_ids import Bounds
from hudi_index_service.read.slices.early_lookups import Found
from hudi_index_service.read.slices.entry_estimates import row_estimate
from hudi_index_service.read.slices.entry_lookups import EntryLookups
from hudi_index_service.read.slices.slice_entries import SliceEntries
from hudi_index_service.storage.store import Storage

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LookupResult:
    """The result of looking up rows.

    Attributes:
        rows: The rows; unanswered if a scan is cheaper.
        why: Why a scan is cheaper; "" if it is not, or if that is unknown.
    """

    rows: Bounds
    why: str = ""


@dataclass(frozen=True, slots=True)
class BoundedLookups:
    """Look-ups for one query on one slice whose rows are read afterwards.

    Attributes:
        query: The query, with the partition values of the slice.
        plan: The slice's plan.
        known: What `EarlyLookups` found.
    """

    query: Query
    plan: SlicePlan
    entries: SliceEntries
    storage: Storage
    settings: Settings
    constants: Constants
    known: Found

    def found(self, predicate: Predicate) -> LookupResult:
        """The rows of a predicate in negation normal form, unless a scan is cheaper.

        Raises:
            FileNotFoundError: the base file is gone.
            EntryUnusable: see `SliceEntries`.
        """
        total = self.entries.total
        cheap_steps = self.constants.cheap_steps(total)
        lookups = EntryLookups(
            self.entries,
            superset_ok=True,
            limit=cheap_steps,
            row_steps=self.constants.row_steps,
            known=self.known,
        )
        bounds = lookups.rows(predicate)
        possible = bounds.possible
        if not lookups.put_off:
            if possible is None or len(possible) <= cheap_steps:
                return LookupResult(bounds)
            why = self._why_scan(spread_rows(possible, total), len(possible))
            return LookupResult(Bounds.unanswered(), why) if why else LookupResult(bounds)
        if possible is not None and not possible:
            return LookupResult(bounds)
        most = total if possible is None else len(possible)
        estimate = row_estimate(predicate, self.entries)
        why = ""
        if are_too_many(estimate.least, total, self.settings):
            why = f"at least {estimate.least} rows match: reading the file whole is cheaper"
        elif not are_few(min(estimate.most, most), total):
            why = self._why_scan(sampled_rows(predicate, lookups), guessed_rows(estimate.expected))
        if why:
            return LookupResult(Bounds.unanswered(), why)
        # The rows found so far bound the steps that the remaining look-ups are worth.
        worth = None if possible is None else pages_of(possible) * self.constants.row_steps
        return LookupResult(bounds.tightened(lookups.without_limit().rows(predicate, worth)))

    def _why_scan(self, sample: BitMap, count: int) -> str:
        """Why a scan is cheaper, judging by a sample of `count` rows; "" if it is not, or without
        rows."""
        base_file = self.plan.file_slice.base_file
        if not sample or base_file is None:
            return ""
        if self.entries.stored_rows(self.storage, self.query.needed) is not None:
            return ""  # in a narrow file, with small pages
        reader = RowReader(self.storage, base_file, self.entries.footer(), self.query.needed)
        try:
            cost = reader.plan(row_positions(sample))
        except ParquetReadError as error:
            log.info("%s is not read by row: %s", base_file.path, error)
            return ""  # the reader of the rows falls back
        remote = not self.storage.is_local
        if cheapest_reading(cost, self.settings, remote=remote, rows=count) is not Reading.FILE:
            return ""
        return f"at least {cost.pages} pages hold the rows: reading the file whole is cheaper"


def spread_rows(rows: BitMap, total: int) -> BitMap:
    """A sample of `rows` from all over a file of `total` rows."""
    return rows & BitMap(range(0, total, max(1, total // FEWEST_STEPS)))


def sampled_rows(predicate: Predicate, samples: EntryLookups) -> BitMap:
    """Some candidates for a predicate in negation normal form; none if a sample is not far cheaper
    than all."""
    return _sampled(grouped(predicate, samples.entries.plan.entries), samples)


def _sampled(predicate: Predicate, samples: EntryLookups) -> BitMap:
    match predicate:
        case Or(operands):
            return BitMap.union(*(_sampled(each, samples) for each in operands))
        case And(operands) if not isinstance(predicate, Together):
            return _of_all(operands, samples)
    if not samples.entries.answered(predicate):
        return BitMap()
    return samples.entries.sample(predicate, FEWEST_STEPS)


def _of_all(operands: Sequence[Predicate], samples: EntryLookups) -> BitMap:
    """A sample of one conjunct, narrowed by the others. Conjuncts with a look-up must be able to
    check single rows, since samples of two conjuncts say nothing about their intersection."""
    with_lookup = [each for each in operands if _is_answered(each, samples)]
    for first in with_lookup:
        rows = _sampled(first, samples)
        for other in with_lookup:
            if rows and other is not first:
                rows = samples.narrowed(other, rows).possible or BitMap()
        if rows:
            for other in operands:
                if other not in with_lookup:
                    rows = samples.rows(other).within(rows).possible or BitMap()
            return rows
    return BitMap()


def _is_answered(operand: Predicate, samples: EntryLookups) -> bool:
    return any(map(samples.entries.answered, (operand, *operand.leaves())))
