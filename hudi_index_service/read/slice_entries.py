"""The entries of one slice while a query reads it: each is opened when a leaf first asks it, and
one that is damaged leaves its leaves to those of other index types."""

import logging
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from hudi_index_parquet import Footer
from pyroaring import BitMap

from hudi_index_service.errors import (
    EntryInvalid,
    IndexServiceError,
    NativeModuleMissing,
    PermissionDenied,
    StorageFailed,
)
from hudi_index_service.index.contract import Answer, RankedRows
from hudi_index_service.index.fetched import Fetched, counted
from hudi_index_service.optimizer.plan import ServingEntry, SlicePlan
from hudi_index_service.predicate.expression import And, Constant, Match, Or, Predicate
from hudi_index_service.read.reader_pool import OpenEntry, ReaderPool
from hudi_index_service.read.row_ids import RowSet, candidate_rows
from hudi_index_service.read.statistics import SliceStatistics

log = logging.getLogger(__name__)

INDEX_FAILURES = (EntryInvalid, NativeModuleMissing, PermissionDenied, StorageFailed)
"""Whatever keeps an entry from being asked (design, rule 3)."""


_IN_ORDER = (Answer.EXACT, Answer.SUPERSET)


class SliceEntries:
    """Make it by `leased`."""

    def __init__(self, plan: SlicePlan, pool: ReaderPool, stack: ExitStack) -> None:
        self._entries = plan.entries
        self._pool = pool
        self._stack = stack
        self._opened: dict[str, OpenEntry] = {}
        self._failed: dict[str, IndexServiceError] = {}
        # By the leaf's id, with the leaf, so that none has the id of one that is gone.
        self._answers: dict[int, tuple[Predicate, list[tuple[Answer, ServingEntry]]]] = {}

    @classmethod
    @contextmanager
    def leased(
        cls, plan: SlicePlan, pool: ReaderPool, statistics: SliceStatistics | None = None
    ) -> "Iterator[SliceEntries]":
        """The slice's entries; what is opened stays so for the length of the block.

        Args:
            statistics: Where what this thread fetches of indexes in the block is counted.
        """
        fetched = Fetched()
        try:
            with counted(fetched), ExitStack() as stack:
                yield cls(plan, pool, stack)
        finally:
            if statistics is not None:
                statistics.add_fetched(fetched)

    @property
    def total(self) -> int:
        """Rows of the base file."""
        return self._entries[0].entry.manifest.base_file.rows

    def rows(self, leaf: Predicate, most: int | None = None, *, thrifty: bool = False) -> RowSet:
        """The candidates for a leaf, or for conjuncts that `answers`: of the first entry, in the
        plan's order, that can be asked; one that answers exactly goes before one that gives a
        superset. Everything if none can answer it.

        Args:
            thrifty: Whether candidates serve where they are had sooner, or none at all where that
                takes more than `most` steps.

        Raises:
            EntryInvalid, NativeModuleMissing, PermissionDenied, StorageFailed: every entry that
                could answer it failed.
        """
        failure: IndexServiceError | None = None
        for wanted, serving in self._answering(leaf):
            try:
                reader = self._open(serving).reader
                if thrifty and hasattr(reader, "candidates"):
                    return RowSet(reader.candidates(leaf, most), exact=False)
                return RowSet(reader.row_ids(leaf), wanted is Answer.EXACT)
            except INDEX_FAILURES as error:
                log.warning("%s cannot be asked: %s", serving.entry.folder, error)
                self._failed[serving.entry.folder] = error
                failure = failure or error
        if failure is not None:
            raise failure
        return RowSet.everything()

    def answers(self, conjuncts: And) -> bool:
        """Whether the entry that answers each of the conjuncts answers them all at once."""
        whole = next(self._answering(conjuncts), None)
        if whole is None or whole[1].entry.folder in self._failed:
            return False
        each = (next(self._answering(leaf), None) for leaf in conjuncts.operands)
        return all(one is not None and one[1] is whole[1] for one in each)

    def narrowed(self, leaf: Predicate, rows: BitMap) -> RowSet:
        """Those of a few rows for which the leaf may be TRUE; everything where the entry that
        answers it cannot look at single rows.

        Raises:
            EntryInvalid, NativeModuleMissing, PermissionDenied, StorageFailed: see `rows`.
        """
        _, serving = next(self._answering(leaf), (None, None))
        if serving is not None:
            reader = self._open(serving).reader
            if hasattr(reader, "narrowed"):
                found, worth = reader.narrowed(leaf, rows)
                if worth is not Answer.NONE:
                    return RowSet(found, worth is Answer.EXACT)
        return RowSet.everything()

    def estimate(self, leaf: Predicate) -> int:
        """About how many steps `rows` takes; all rows' where that is not known."""
        _, serving = next(self._answering(leaf), (None, None))
        if serving is None:
            return self.total
        try:
            return int(self._open(serving).reader.estimate(leaf))
        except INDEX_FAILURES:  # `rows` says so, or asks the next one
            return self.total

    def answered(self, leaf: Predicate) -> bool:
        """Whether an entry answers a leaf, or conjuncts at once."""
        return next(self._answering(leaf), None) is not None

    def sample(self, leaf: Predicate, most: int) -> BitMap:
        """Some of the candidates for a leaf that is answered, from all over the base file; none
        where they cannot be had for little."""
        _, serving = next(self._answering(leaf))
        try:
            reader = self._open(serving).reader
            return reader.sample(leaf, most) if hasattr(reader, "sample") else BitMap()
        except INDEX_FAILURES:  # `rows` says so, or asks the next one
            return BitMap()

    def _answering(self, leaf: Predicate) -> Iterator[tuple[Answer, ServingEntry]]:
        """The entries that can answer, in the order in which they are asked."""
        known = self._answers.get(id(leaf))
        if known is None:
            answers = [(each.answer(leaf), each) for each in self._entries]
            ordered = [a for wanted in _IN_ORDER for a in answers if a[0] is wanted]
            known = self._answers[id(leaf)] = (leaf, ordered)
        yield from known[1]

    def pages(self, leaf: Predicate) -> RowSet:
        """The rows of those pages in which, by the base file's column index, a leaf may be TRUE.

        Raises:
            FileNotFoundError: the base file is gone.
            EntryInvalid, NativeModuleMissing, PermissionDenied, StorageFailed: see `rows`.
        """
        return self._any().bounds.rows(leaf)

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

    def value_counts(self, column: str, among: BitMap, most: int) -> "Counter[str | None] | None":
        """How many of the rows have each value of a text column; None if no entry tells, or there
        are more than `most` values.

        Raises:
            EntryInvalid: the entry contradicts itself.
            NativeModuleMissing, PermissionDenied, StorageFailed: it failed.
        """
        for serving in self._entries:
            stored = next((each for each in serving.columns if each.name == column), None)
            if stored is None:
                continue
            reader = self._open(serving).reader
            if not hasattr(reader, "value_counts"):
                continue
            every = len(among) == self.total
            found = reader.value_counts(column, None if every else among, most)
            if found is None:
                continue
            nulls, of_all = len(among) - sum(found.values()), stored.statistics.null_count
            if nulls != of_all if every else not 0 <= nulls <= of_all:
                raise EntryInvalid(f"{serving.entry.data_path} has other values than rows.")
            counts: Counter[str | None] = Counter(found)
            if nulls:
                counts[None] = nulls
            return counts
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


@dataclass(slots=True)
class EntryLookups:
    """See `hudi_index_service.read.sampled_rows.Samples`: of entries, and of the base file's column
    index for leaves that no entry answers.

    Attributes:
        limit: Steps of a look-up as long as no row is known; None for any number.
        put_off: Whether a look-up was not made for that limit.
    """

    entries: SliceEntries
    thrifty: bool
    limit: int | None = None
    put_off: bool = False

    @property
    def total(self) -> int:
        """Rows of the base file."""
        return self.entries.total

    def answers(self, conjuncts: And) -> bool:
        """Whether one entry answers them all at once."""
        return self.entries.answers(conjuncts)

    def estimate(self, asked: Predicate) -> int:
        """See `SliceEntries.estimate`."""
        return self.entries.estimate(asked)

    def answered(self, leaf: Predicate) -> bool:
        """See `SliceEntries.answered`."""
        return self.entries.answered(leaf)

    def narrowed(self, asked: Predicate, rows: BitMap) -> RowSet:
        """See `SliceEntries.narrowed`; everything where that fails: `rows` tells of it then."""
        if isinstance(asked, And | Or | Constant):
            return RowSet.everything()
        try:
            return self.entries.narrowed(asked, rows)
        except INDEX_FAILURES:
            return RowSet.everything()

    def sample(self, asked: Predicate, most: int) -> BitMap:
        """See `SliceEntries.sample`."""
        return self.entries.sample(asked, most)

    def rows(self, asked: Predicate, most: int | None) -> RowSet:
        """See `SliceEntries.rows` and `pages`; raises what these do."""
        try:
            limit = self.limit if most is None else most
            found = self.entries.rows(asked, limit, thrifty=self.thrifty)
        except INDEX_FAILURES:
            if not isinstance(asked, And):
                raise
            # An entry of another index type may answer each of them.
            return candidate_rows(And(asked.operands), self, most)
        if found.rows is not None:
            return found
        if most is None and self.limit is not None:
            self.put_off |= self.entries.answered(asked)
        return found if isinstance(asked, And) else self.entries.pages(asked)
