"""The entries of one slice while a query reads it: each is opened when a leaf first asks it, and
one that is damaged leaves its leaves to those of other index types."""

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from hudi_index_parquet import Footer

from hudi_index_service.errors import (
    EntryInvalid,
    IndexServiceError,
    NativeModuleMissing,
    PermissionDenied,
    StorageFailed,
)
from hudi_index_service.index.contract import Answer, RankedRows
from hudi_index_service.optimizer.plan import ServingEntry, SlicePlan
from hudi_index_service.predicate.expression import Match, Predicate
from hudi_index_service.read.reader_pool import OpenEntry, ReaderPool
from hudi_index_service.read.row_ids import RowSet

log = logging.getLogger(__name__)

INDEX_FAILURES = (EntryInvalid, NativeModuleMissing, PermissionDenied, StorageFailed)
"""Whatever keeps an entry from being asked (design, rule 3)."""


class SliceEntries:
    """Make it by `leased`."""

    def __init__(self, plan: SlicePlan, pool: ReaderPool, stack: ExitStack) -> None:
        self._entries = plan.entries
        self._pool = pool
        self._stack = stack
        self._opened: dict[str, OpenEntry] = {}
        self._failed: dict[str, IndexServiceError] = {}

    @classmethod
    @contextmanager
    def leased(cls, plan: SlicePlan, pool: ReaderPool) -> "Iterator[SliceEntries]":
        """The slice's entries; what is opened stays so for the length of the block."""
        with ExitStack() as stack:
            yield cls(plan, pool, stack)

    @property
    def total(self) -> int:
        """Rows of the base file."""
        return self._entries[0].entry.manifest.base_file.rows

    def rows(self, leaf: Predicate) -> RowSet:
        """The candidates for a leaf: of the first entry, in the plan's order, that can be asked;
        one that answers exactly goes before one that gives a superset. Everything if none can
        answer it.

        Raises:
            EntryInvalid, NativeModuleMissing, PermissionDenied, StorageFailed: every entry that
                could answer it failed.
        """
        answers = [(each.answer(leaf), each) for each in self._entries]
        failure: IndexServiceError | None = None
        for wanted in (Answer.EXACT, Answer.SUPERSET):
            for serving in (each for answer, each in answers if answer is wanted):
                try:
                    found = self._open(serving).reader.row_ids(leaf)
                    return RowSet(found, wanted is Answer.EXACT)
                except INDEX_FAILURES as error:
                    log.warning("%s cannot be asked: %s", serving.entry.folder, error)
                    self._failed[serving.entry.folder] = error
                    failure = failure or error
        if failure is not None:
            raise failure
        return RowSet.everything()

    def rows_by_index_or_pages(self, leaf: Predicate) -> RowSet:
        """The same; where no entry can answer the leaf, the rows of those pages in which, by the
        base file's column index, it may be TRUE.

        Raises:
            FileNotFoundError: the base file is gone.
            EntryInvalid, NativeModuleMissing, PermissionDenied, StorageFailed: see `rows`.
        """
        found = self.rows(leaf)
        return self._any().bounds.rows(leaf) if found.rows is None else found

    def ranked(self, match: Match) -> RankedRows | None:
        """The rows, to be scored, of the first entry that can; None if none can.

        Raises:
            EntryInvalid, NativeModuleMissing, PermissionDenied, StorageFailed: it failed.
        """
        for serving in self._entries:
            if serving.answer(match) is Answer.EXACT:
                ranked: RankedRows | None = self._open(serving).reader.ranked(match)
                if ranked is not None:
                    return ranked
        return None

    def footer(self) -> Footer:
        """The base file's footer, from an entry that was asked, or else any.

        Raises: see `rows`.
        """
        return self._any().bounds.footer

    def _any(self) -> OpenEntry:
        for opened in self._opened.values():
            return opened
        return self._open(self._entries[0])

    def _open(self, serving: ServingEntry) -> OpenEntry:
        folder = serving.entry.folder
        if folder in self._failed:
            raise self._failed[folder]
        if folder not in self._opened:
            self._opened[folder] = self._stack.enter_context(self._pool.lease(serving))
        return self._opened[folder]
