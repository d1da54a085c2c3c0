"""The entries of one slice while it is asked. Each is opened when it is needed; if one is damaged,
entries of other index types answer its leaves."""

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from threading import Lock
from time import perf_counter_ns
from typing import TypeVar

import pyarrow as pa
from hudi_index_parquet import Footer
from pyroaring import BitMap

from hudi_index_service.columns import root_column, without_millis
from hudi_index_service.errors import (
    EntryInvalid,
    EntryUnusable,
    IndexServiceError,
    NativeModuleMissing,
)
from hudi_index_service.index.contract import Answer, RankedRows
from hudi_index_service.index.files.opened_file import Fetched, counted
from hudi_index_service.optimizer.cost.constants import load_constants
from hudi_index_service.optimizer.cost.index_types import answering_ms, costs_of
from hudi_index_service.optimizer.cost.model import opening_cost
from hudi_index_service.optimizer.estimates import estimated_rows
from hudi_index_service.optimizer.plan import SlicePlan
from hudi_index_service.optimizer.serving import BEST_FIRST, ServingEntry
from hudi_index_service.predicate.expression import Match, Predicate
from hudi_index_service.predicate.fold import fold
from hudi_index_service.read.base_file.row_reader import RowReader
from hudi_index_service.read.row_ids import Bounds
from hudi_index_service.read.slices.reader_pool import OpenEntry, ReaderPool
from hudi_index_service.read.statistics import SliceStatistics
from hudi_index_service.storage.store import Storage

log = logging.getLogger(__name__)

T = TypeVar("T")

_logged_messages: set[str] = set()
_logging_lock = Lock()


def warn_of(error: IndexServiceError, what: str) -> None:
    """Logs what is read without an index, and why. A missing native module affects all entries of
    its index type and is logged once per process."""
    if not isinstance(error, NativeModuleMissing):
        log.warning("%s: %s", what, error)
        return
    with _logging_lock:
        is_new = str(error) not in _logged_messages
        _logged_messages.add(str(error))
    if is_new:
        log.warning("Queries are answered without an index: %s", error)
    log.debug("%s: %s", what, error)


class SliceEntries:
    """The entries of one slice. Make it by `leased`.

    Attributes:
        plan: The slice's plan.
    """

    def __init__(self, plan: SlicePlan, pool: ReaderPool, stack: ExitStack) -> None:
        self.plan = plan
        self._entries = plan.entries
        self._pool = pool
        self._stack = stack
        self._open_entries: dict[str, OpenEntry] = {}
        self._failures: dict[str, IndexServiceError] = {}
        self._answers: dict[Predicate, list[tuple[Answer, ServingEntry]]] = {}

    @classmethod
    @contextmanager
    def leased(
        cls, plan: SlicePlan, pool: ReaderPool, statistics: SliceStatistics | None = None
    ) -> "Iterator[SliceEntries]":
        """The slice's entries; opened entries stay open for the length of the block.

        Args:
            statistics: Counts the index data that this thread fetches in the block.
        """
        with nullcontext() if statistics is None else statistics.timed():
            fetched, started = Fetched(), perf_counter_ns()
            try:
                with counted(fetched), ExitStack() as stack:
                    yield cls(plan, pool, stack)
            finally:
                if statistics is not None:
                    statistics.add_fetched(fetched)
                    statistics.lookup_ms += (perf_counter_ns() - started) / 1e6

    @property
    def total(self) -> int:
        """Rows of the base file."""
        return self.plan.total

    def rows(
        self, leaf: Predicate, most: int | None = None, *, superset_ok: bool = False
    ) -> Bounds:
        """The rows of a leaf, or of conjuncts looked up together, from the first usable entry.
        Exact entries are tried before those that return a superset, and cheaper ones before more
        expensive ones. Unanswered if no entry can answer.

        Args:
            superset_ok: Whether a superset may be returned if that is cheaper, or nothing be
                answered if the look-up takes more than `most` steps.

        Raises:
            EntryUnusable: every entry that could answer it failed.
        """
        failure: IndexServiceError | None = None
        for answer, serving in self._answering(leaf):
            try:
                reader = self._open(serving).reader
                if superset_ok:
                    return Bounds(BitMap(), reader.candidates(leaf, most))
                return Bounds.of(reader.row_ids(leaf), exact=answer is Answer.EXACT)
            except EntryUnusable as error:
                warn_of(error, f"{serving.entry.folder} cannot be used")
                self._failures[serving.entry.folder] = error
                failure = failure or error
        if failure is not None:
            raise failure
        return Bounds.unanswered()

    def _lookup_cost_ms(self, serving: ServingEntry, leaf: Predicate) -> float:
        """The part of an entry's look-up cost that differs between entries, in milliseconds."""
        constants, opening = load_constants(self._pool.settings), 0.0
        path = serving.entry.data_path
        if serving.entry.folder not in self._open_entries and path not in self._pool.open_paths:
            open_ms = costs_of(serving.index_type, constants).open_ms
            opening, _ = opening_cost(serving, open_ms, constants, remote=self._pool.is_remote)
        estimate = estimated_rows(self.plan, leaf)
        rows = self.total if estimate is None else estimate.expected
        return opening + answering_ms(serving.index_type, leaf, rows, constants)

    def narrowed(self, leaf: Predicate, rows: BitMap) -> Bounds:
        """The given rows for which the leaf may be TRUE; unanswered if the entry cannot
        check single rows, or fails."""

        def ask(opened: OpenEntry) -> Bounds:
            remaining, answer = opened.reader.narrowed(leaf, rows)
            if answer is Answer.NONE:
                return Bounds.unanswered()
            return Bounds.of(remaining, exact=answer is Answer.EXACT)

        return self._told(leaf, ask, Bounds.unanswered())

    def estimate(self, leaf: Predicate) -> int:
        """The approximate number of rows of a leaf; the number of all rows if unknown."""
        return self._told(leaf, lambda opened: opened.reader.estimate(leaf), self.total)

    def steps(self, predicate: Predicate, *, exact: bool = False) -> int:
        """The approximate number of steps of looking up a grouped predicate.

        Args:
            exact: Whether all conjuncts of an AND are looked up to their end, in place of the
                cheapest.
        """

        def of_leaf(leaf: Predicate) -> int:
            return self._told(leaf, lambda opened: opened.reader.steps(leaf), self.total)

        of_all = sum if exact else partial(min, default=0)
        steps: int = fold(predicate, of_leaf, of_all, sum, together=True)
        return steps

    def row_bounds(self, leaf: Predicate) -> tuple[int, int] | None:
        """The minimum and maximum number of matching rows of a leaf, or of conjuncts looked up
        together; None if no entry answers, or the answering entry has no bounds.

        Raises:
            EntryUnusable: the entry failed.
        """
        serving = self._first(leaf)
        return None if serving is None else self._open(serving).reader.row_bounds(leaf)

    def count(self, leaf: Predicate) -> int | None:
        """The number of matching rows of a leaf, or of conjuncts looked up together, if an entry
        knows it without listing them; else None."""
        bounds = self._told(leaf, lambda opened: opened.reader.row_bounds(leaf), None)
        least, most = bounds or (0, self.total)
        return least if least == most else None

    def _answering(self, leaf: Predicate) -> Iterator[tuple[Answer, ServingEntry]]:
        """The entries that can answer, in order of preference."""
        ordered = self._answers.get(leaf)
        if ordered is None:
            answers = ((each.answer(leaf), each) for each in self._entries)
            ordered = [each for each in answers if each[0] in BEST_FIRST]
            if len(ordered) > 1:
                ordered.sort(
                    key=lambda a: (BEST_FIRST.index(a[0]), self._lookup_cost_ms(a[1], leaf))
                )
            self._answers[leaf] = ordered
        yield from ordered

    def _first(self, leaf: Predicate) -> ServingEntry | None:
        """The entry that a look-up of a leaf asks first; None if none answers it."""
        return next((serving for _, serving in self._answering(leaf)), None)

    def _told(self, leaf: Predicate, ask: Callable[[OpenEntry], T], unknown: T) -> T:
        """What that entry tells; `unknown` if there is none, or it fails."""
        serving = self._first(leaf)
        try:
            return unknown if serving is None else ask(self._open(serving))
        except EntryUnusable:  # `rows` reports it, or uses the next entry
            return unknown

    def pages(self, leaf: Predicate) -> Bounds:
        """The rows of the pages where, by the base file's column index, a leaf may be TRUE.

        Raises:
            FileNotFoundError: the base file is gone.
            EntryUnusable: see `rows`.
        """
        return self._any().bounds.rows(leaf)

    def has_pages_at_hand(self, leaf: Predicate) -> bool:
        """Whether `pages` needs no request to a remote store.

        Raises:
            EntryUnusable: see `rows`.
        """
        return self._any().bounds.is_at_hand(leaf)

    def ranked(self, match: Match) -> RankedRows | None:
        """The rows to be scored, from the first entry that can rank; None if none can.

        Raises:
            EntryUnusable: the entry failed.
        """
        for serving in self._entries:
            if serving.answer(match) is Answer.EXACT:
                ranked = self._open(serving).reader.ranked(match)
                if ranked is not None:
                    return ranked
        return None

    def value_counts(self, column: str, among: BitMap, most: int) -> "Counter[str | None] | None":
        """The number of the rows per value of a text column; None if no entry can count them, or
        there are more than `most` values.

        Raises:
            EntryInvalid: the entry contradicts itself.
            NativeModuleMissing, PermissionDenied, StorageFailed: the entry failed.
        """
        for serving in self._entries:
            stored = next((each for each in serving.columns if each.name == column), None)
            if stored is None:
                continue
            all_rows = len(among) == self.total
            reader = self._open(serving).reader
            by_value = reader.value_counts(column, None if all_rows else among, most)
            if by_value is None:
                continue
            nulls, all_nulls = len(among) - sum(by_value.values()), stored.null_count
            if nulls != all_nulls if all_rows else not 0 <= nulls <= all_nulls:
                raise EntryInvalid(
                    f"{serving.entry.data_path} does not have one value for each row."
                )
            counts: Counter[str | None] = Counter(by_value)
            if nulls:
                counts[None] = nulls
            return counts
        return None

    def footer(self) -> Footer:
        """The base file's footer, from an open entry, or else from any.

        Raises: see `rows`.
        """
        return self._any().bounds.footer

    def footer_for(self, leaf: Predicate) -> Footer | None:
        """The same from the entry that a look-up of a leaf asks first, and no other is opened; None
        if there is none, or it fails."""
        return self._told(leaf, lambda opened: opened.bounds.footer, None)

    def stored_rows(self, storage: Storage, columns: pa.Schema) -> RowReader | None:
        """Reads rows from the values that an entry stores, if possible one that is open; None if
        none stores all the columns.

        Args:
            columns: The columns to read, in the table's types.
        """
        base_file = self.plan.file_slice.base_file
        roots = {root_column(name) for name in columns.names}
        if not roots:
            return None
        storing = [each for each in self._entries if roots.issubset(each.stored)]
        for serving in sorted(
            storing, key=lambda each: each.entry.folder not in self._open_entries
        ):
            try:
                opened = self._open(serving)
            except EntryUnusable as error:
                warn_of(error, f"{serving.entry.folder} cannot be used")
                continue
            if opened.values is not None:
                packed = replace(base_file, path=serving.entry.data_path, size=opened.size)
                stored = pa.schema([without_millis(each) for each in columns])
                return RowReader(storage, packed, opened.values, stored)
        return None

    def _any(self) -> OpenEntry:
        """An entry: one that a look-up has opened, else one that is open already, else any."""
        for opened in self._open_entries.values():
            return opened
        open_paths, failure = self._pool.open_paths, None
        for serving in sorted(
            self._entries, key=lambda each: each.entry.data_path not in open_paths
        ):
            try:
                return self._open(serving)
            except EntryUnusable as error:
                failure = failure or error
        assert failure is not None, "a slice that is looked up has entries"
        raise failure

    def _open(self, serving: ServingEntry) -> OpenEntry:
        folder = serving.entry.folder
        if folder in self._failures:
            raise self._failures[folder]
        if folder not in self._open_entries:
            self._open_entries[folder] = self._stack.enter_context(self._pool.lease(serving))
        return self._open_entries[folder]
