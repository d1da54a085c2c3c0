"""Decides which slices are read without a look-up, since reading their rows costs less. The reason
is then in their statistics."""

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
from hudi_index_parquet import Footer

from hudi_index_service.config import Settings
from hudi_index_service.errors import EntryUnusable
from hudi_index_service.optimizer.cost.constants import LARGE_FILE, load_constants
from hudi_index_service.optimizer.cost.reading_steps import ReadingSteps
from hudi_index_service.optimizer.decide import (
    Counting,
    are_few,
    are_too_many,
    cheapest_count,
    is_small,
    opening_pays,
    scan_of_small_pays,
    scan_tests_faster,
)
from hudi_index_service.optimizer.grouping import grouped
from hudi_index_service.optimizer.plan import SlicePlan
from hudi_index_service.predicate.expression import Or
from hudi_index_service.predicate.fold import conjuncts
from hudi_index_service.read.base_file.kept_pages import column_sizes
from hudi_index_service.read.slices.base_rows import tests_all
from hudi_index_service.read.slices.found_rows import FoundRows
from hudi_index_service.read.slices.index_estimates import row_estimate
from hudi_index_service.read.slices.lookups import TAKES_LONGER
from hudi_index_service.read.slices.reader_pool import ReaderPool
from hudi_index_service.read.slices.slice_entries import SliceEntries
from hudi_index_service.storage.store import Storage

_UNOPENED = "opening its entry takes longer than a scan"
_MANY_ROWS = "many rows are expected: reading so small a file whole is cheaper"


@dataclass(frozen=True, slots=True)
class CheaperReads:
    """The choice for the slices of one query.

    Attributes:
        storage: Has their base files.
        pool: Has their open entries.
        table: All columns of the table.
        of_many: Whether the table has many slices.
        counts: Whether rows are only counted.
    """

    storage: Storage
    pool: ReaderPool
    settings: Settings
    table: pa.Schema
    of_many: bool
    counts: bool

    def stays_unopened(self, plan: SlicePlan, is_tested: Callable[[], bool] = lambda: True) -> bool:
        """Whether to scan the base file of a slice rather than to open its entries. If so, the
        scan is counted.

        Args:
            is_tested: Whether the row reader tests the whole predicate.
        """
        base_file = plan.file_slice.base_file
        stays = (
            self.is_one_of_many_small(plan)
            and not opening_pays(plan.total, self.pool.scans(base_file.path))
            and not any(each.entry.data_path in self.pool.open_paths for each in plan.entries)
            and is_tested()
        )
        if stays:
            self.pool.add_scan(base_file.path)
        return stays

    def is_one_of_many_small(self, plan: SlicePlan) -> bool:
        """Whether a slice is among many small ones of a local table, of which one call reads
        several whole; not if entries store values."""
        return (
            self.of_many
            and not self.pool.is_remote
            and is_small(plan.file_slice.base_file.size)
            and not any(each.stored for each in plan.entries)
        )

    def unopened(self, found: FoundRows) -> bool:
        """Whether a slice is scanned instead of opening its entries."""
        # A count may have said so, whose rows are read now.
        if found.statistics.note in (_UNOPENED, TAKES_LONGER):
            return True
        stays = self.stays_unopened(found.plan, lambda: tests_all(found.predicate, self.table))
        if stays:
            found.statistics.note = _UNOPENED
        return stays

    def scan_pays(self, found: FoundRows, *, is_limited: bool) -> bool:
        """Whether a scan is cheaper than any look-up, by the bounds of the open entries. These are
        asked only if the manifests suggest many rows, all of which are wanted, and not of one of
        many small files."""
        plan, expected = found.plan, found.plan.expected
        if self.unopened(found):
            return True
        if is_limited or expected is None or are_few(round(expected.rows.expected), plan.total):
            return False
        if self.is_one_of_many_small(plan) and tests_all(found.predicate, self.table):
            # To ask takes as long as to look up, or to scan.
            if scan_of_small_pays(plan.total, expected.rows.expected):
                found.statistics.note = _MANY_ROWS
                return True
            return False
        try:
            with SliceEntries.leased(plan, self.pool, found.statistics) as entries:
                least = row_estimate(found.predicate, entries).least
                pays = are_too_many(least, plan.total, self.settings.read.scan_fraction) or (
                    not self.pool.is_remote
                    and scan_tests_faster(least, plan.total)
                    and not any(each.stored for each in plan.entries)
                    and tests_all(found.predicate, entries.footer().schema)
                )
        except EntryUnusable:  # looking it up reports it
            return False
        if pays:
            reason = f"at least {least} rows match: reading the file whole is cheaper"
            found.statistics.note = reason
        return pays

    def reading(self, found: FoundRows, footer: Footer) -> ReadingSteps:
        """What reading the base file of a slice costs, to limit its look-ups.

        Args:
            footer: That of the base file.

        Raises:
            FileNotFoundError: the base file is gone.
        """
        plan, predicate, constants = found.plan, found.predicate, load_constants(self.settings)
        if not tests_all(predicate, footer.schema):
            return ReadingSteps.unknown(constants)
        columns = sorted(predicate.columns())
        sizes = column_sizes(self.storage, plan.file_slice.base_file, footer, columns)
        if sizes is None:
            return ReadingSteps.unknown(constants)
        by_column = dict(zip(columns, sizes, strict=True))
        # One call counts several files, or reads several small ones.
        alone = not self.counts and not is_small(plan.file_slice.base_file.size)
        return ReadingSteps.of(constants, predicate, plan.total, by_column, alone=alone)

    def counting(self, found: FoundRows, columns: int) -> Counting:
        """The cheapest way to count the rows of a slice: by its entries where they know the number,
        or fail, which a look-up reports.

        Args:
            columns: The number of columns read to check a row.
        """
        plan = found.plan
        if plan.total < LARGE_FILE:
            return Counting.INDEX
        tree = grouped(found.predicate, plan.entries)
        try:
            with SliceEntries.leased(plan, self.pool, found.statistics) as entries:
                groups = list(conjuncts(tree))
                # Opens the entries that answer, one of which tells the footer.
                steps = [entries.steps(each, exact=True) for each in groups]
                reading = self.reading(found, entries.footer())
                cheapest = cheapest_count(steps, reading, plan.total, columns)
                # One look-up may know the number without listing rows.
                is_one = len(groups) == 1 and not isinstance(tree, Or)
                if cheapest is not Counting.INDEX and is_one and entries.count(tree) is not None:
                    return Counting.INDEX
                return cheapest
        except EntryUnusable:
            return Counting.INDEX
