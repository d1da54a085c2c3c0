"""Plans queries: finds the entries that cover each slice (design, "covered")."""

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Literal, Self, get_args

import pyarrow as pa

from hudi_index_service.cancellation import check
from hudi_index_service.config import Settings
from hudi_index_service.errors import (
    ConfigInvalid,
    IndexServiceError,
    NotCovered,
    TableFeatureUnsupported,
)
from hudi_index_service.hudi.gate import (
    Refusal,
    unsupported_columns,
    unsupported_partition_values,
)
from hudi_index_service.hudi.snapshot import Snapshot
from hudi_index_service.hudi.table import HudiTable
from hudi_index_service.hudi.timeline import instant_of
from hudi_index_service.index.metadata.segments.segment import ColumnKey
from hudi_index_service.index.metadata.segments.segment_file import SegmentFile
from hudi_index_service.optimizer.partitions import PartitionValues
from hudi_index_service.optimizer.plan import Access, QueryPlan, SlicePlan
from hudi_index_service.optimizer.rules import no_index_serves, optimize
from hudi_index_service.predicate.expression import Constant
from hudi_index_service.predicate.simplify import simplified
from hudi_index_service.read.base_file.row_reader import column_share
from hudi_index_service.read.coverage import Coverage
from hudi_index_service.read.freshness import ANY, Freshness
from hudi_index_service.read.index_folder import IndexFolder, IndexFolderReader
from hudi_index_service.read.query import Binding, Query, Where
from hudi_index_service.read.segment_slices import SegmentSlices
from hudi_index_service.read.slices.open_slices import OpenSlices
from hudi_index_service.read.slices.reader_pool import ReaderPool
from hudi_index_service.read.turn import Turn

_MOST_SHARES = 1_000  # sets of columns whose share of a file's bytes is kept

UseIndex = Literal["auto", "never", "require"]
QueryType = Literal["snapshot", "read_optimized"]


@dataclass(frozen=True, slots=True)
class ScanOptions:
    """The options of a query. Make them by `of`.

    Attributes:
        use_index: ``auto``; ``never`` scans; ``require`` raises an error instead of scanning a
            slice.
        as_of: The requested time up to which instants count, for rows and schema; None for all.
        query_type: ``snapshot``; ``read_optimized`` reads base files alone, like Spark's query type
            of that name, without the changes in log files.
        freshness: What is asked of coverage.
    """

    use_index: UseIndex = "auto"
    as_of: str | None = None
    query_type: QueryType = "snapshot"
    freshness: Freshness = ANY

    @classmethod
    def of(
        cls,
        as_of: str | None,
        query_type: QueryType,
        use_index: UseIndex = "auto",
        freshness: Freshness = ANY,
    ) -> Self:
        """The options from a user's arguments.

        Args:
            as_of: A time in one of the forms of `instant_of`.

        Raises:
            ConfigInvalid: `as_of` is not a time, `use_index` or `query_type` is not one of its
                values, or they contradict `freshness`.
        """
        if use_index not in get_args(UseIndex):
            raise ConfigInvalid(
                f"Unknown value: use_index={use_index!r}.", remedy="Use auto, never or require."
            )
        if query_type not in get_args(QueryType):
            raise ConfigInvalid(
                f"Unknown value: query_type={query_type!r}.",
                remedy="Use snapshot or read_optimized.",
            )
        if use_index == "never" and freshness != ANY:
            raise ConfigInvalid(
                'use_index="never" reads nothing by what indexes cover.',
                remedy="Leave it out, or leave out fast and only_if_covered_to.",
            )
        instant = None if as_of is None else instant_of(as_of)
        if instant is not None and instant < (freshness.covered_to or ""):
            raise ConfigInvalid(
                f"as_of={as_of!r} is before only_if_covered_to.",
                remedy="Ask for an instant that the snapshot has.",
            )
        return cls(use_index, instant, query_type, freshness)


class QueryPlanner:
    """Plans queries on one table.

    Each query lists the timeline once, unless the caller has (`HudiTable.listed_by_caller`), and
    the definitions and segments once, unless no index could serve it. On a remote store these
    listings run in parallel. Queries on a local table are planned one at a time.

    Attributes:
        turn: Of a thread that plans, or runs a short query.

    Args:
        folder: Reads the table's index folder.
        pool: Closes the readers of entries that are no longer there.
    """

    def __init__(
        self, table: HudiTable, folder: IndexFolderReader, pool: ReaderPool, settings: Settings
    ) -> None:
        self._table = table
        self._folder = folder
        self._pool = pool
        self._settings = settings
        self._start: _Start | None = None
        self._coverage = Coverage()
        self._shares: dict[tuple[str, ...], float] = {}
        self._schema: pa.Schema | None = None  # of the last query
        self._segments: Mapping[str, Sequence[SegmentFile]] = {}  # likewise
        self.turn = Turn(is_needed=table.storage.is_local)

    def look_ahead(self, where: Where | None, options: ScanOptions) -> "LookAhead | None":
        """Begins to read a remote table's index folder before the first query is planned, while
        the caller reads the schema. None if that is not the case, or the query needs no index."""
        if self._schema is not None or self._table.storage.is_local:
            return None
        is_wanted = self._may_look(where, options) and self._table.index_reading_enabled()
        return LookAhead(self._look) if is_wanted else None

    def _may_look(self, where: Where | None, options: ScanOptions) -> bool:
        """Whether a query may read the index folder, unless the table switches indexes off."""
        return where is not None and options.use_index != "never" and self._settings.read.enabled

    def plan(
        self, binding: Binding, options: ScanOptions, ahead: "LookAhead | None" = None
    ) -> tuple[Query, QueryPlan]:
        """Binds a query to the schema of the present or requested snapshot, and plans it there.

        Args:
            ahead: What `look_ahead` returned.

        Raises:
            TableFeatureUnsupported, SnapshotUnavailable, SnapshotChanged: see `HudiTable.snapshot`.
            ColumnNotFound, PredicateInvalid, PredicateUnsupported: see `Binding.to`.
            IndexRequired: ``use_index`` requires the index, and a slice would be read without it;
                or the query asks what indexes cover, and none can serve it.
            NotCovered: the table is not covered as the query asks, after the time to wait.
        """
        return options.freshness.awaited(lambda: self._planned(binding, options, ahead))

    def _planned(
        self, binding: Binding, options: ScanOptions, ahead: "LookAhead | None"
    ) -> tuple[Query, QueryPlan]:
        if options.freshness.covered_to is not None:
            self._require_reached(options.freshness.covered_to)
        # The index folder is not read if indexes are switched off or there is no predicate.
        look = self._may_look(binding.where, options)
        at_once = look and self._table.index_reading_enabled()
        with self.turn:
            snapshot, folder = self._snapshot_and_folder(
                options, look=at_once and not self._matches_no_row(binding), ahead=ahead
            )
            return self._plan(binding, options, snapshot, folder, look=look)

    def _require_reached(self, instant: str) -> None:
        """Raises NotCovered if the next snapshot may lack an instant that is on the timeline or is
        to come. Called before the snapshot is taken, so that it has what is completed here."""
        timeline = self._table.timeline()
        latest = timeline.latest or ""
        if instant in timeline.by_requested or (
            instant <= latest and instant not in timeline.pending
        ):
            return
        raise NotCovered(
            f"{self._table.storage.uri} has no completed instant {instant}: the last one is "
            f"{latest or 'none'}.",
            remedy="Wait for its commit (wait=seconds), or ask for an earlier instant.",
        )

    def _plan(
        self,
        binding: Binding,
        options: ScanOptions,
        snapshot: Snapshot,
        folder: IndexFolder | None,
        *,
        look: bool,
    ) -> tuple[Query, QueryPlan]:
        """Plans on a snapshot.

        Args:
            folder: The index folder, if it was read with the snapshot.
            look: Whether it may be read.
        """
        self._schema = snapshot.schema
        query = binding.to(snapshot.schema)
        switched_off = not self._table.index_reading_enabled()

        may_look = look and not switched_off

        def looked() -> IndexFolder | None:
            nonlocal folder
            if folder is None and may_look:
                folder = self._look()
            return folder

        def without_excluded(plan: QueryPlan) -> QueryPlan:
            seen = looked()
            if seen is None:
                return plan
            if not self._table.storage.is_local:
                seen.start_runtimes(query.columns)
            return self._without_excluded(plan, seen, binding.counting)

        def covered(plan: QueryPlan) -> QueryPlan:
            seen = looked()
            if seen is not None and seen.disabled:
                return replace(plan, switched_off=True)
            if plan.asks_coverage and seen is not None and not seen.on(query.columns):
                raise no_index_serves("none has a column of the condition")
            return self._covered(plan, seen) if seen else plan

        start = self._start_of(snapshot)
        for name in query.needed_roots if start.unreadable else ():
            if name in start.unreadable:
                raise TableFeatureUnsupported(
                    f"{self._table.storage.uri}: {start.unreadable[name]}",
                    remedy=TableFeatureUnsupported.default_remedy
                    + "Or leave the column out of the query.",
                )
        if ambiguity := start.partitions.ambiguity(query.normal_form):
            reason = Refusal.PARTITION_TEXT.value.format(column=ambiguity[0], text=ambiguity[1])
            raise TableFeatureUnsupported(f"{self._table.storage.uri}: {reason}")
        plan = QueryPlan(
            snapshot,
            query.normal_form,
            start.slices,
            use_index=options.use_index,
            switched_off=switched_off,
            fast=options.freshness.fast,
            covered_to=options.freshness.covered_to,
            partitions=start.partitions,
            needed=query.needed,
            table=self._table.storage.uri,
        )
        plan = optimize(plan, self._settings, covered, without_excluded)
        if plan.predicate is not query.normal_form:
            query = replace(query, normal_form=plan.predicate)
        return query, plan

    def base_files(self) -> "BaseFiles":
        """The present snapshot, with the index folder.

        Raises:
            TableFeatureUnsupported, SnapshotChanged: see `HudiTable.snapshot`.
        """
        look = self._settings.read.enabled and self._table.index_reading_enabled()
        snapshot, folder = self._snapshot_and_folder(ScanOptions(), look=look)
        if folder is None and look:
            folder = self._look()
        columns: Mapping[str, frozenset[ColumnKey]] = {}
        if folder is not None:
            columns = self._coverage.required(folder.definitions, snapshot.schema).keys
        start = self._start_of(snapshot)
        return BaseFiles(snapshot, folder, start.segment_slices, start.open_slices, columns)

    def base_file_entries(
        self, base_files: "BaseFiles", among: Collection[int] | None = None
    ) -> QueryPlan:
        """The slices of a snapshot, each with the entries that may serve its base file, with or
        without log files. No rule has been applied.

        Args:
            among: The numbers of the slices that need entries; None for all.
        """
        snapshot, folder = base_files.snapshot, base_files.folder
        wanted = range(len(snapshot.slices)) if among is None else frozenset(among)
        slices = (
            SlicePlan(each, Access.INDEX if number in wanted else Access.SKIP)
            for number, each in enumerate(snapshot.slices)
        )
        plan = QueryPlan(snapshot, None, tuple(slices))
        if folder is None:
            return plan
        if self._table.storage.is_local:
            required = self._coverage.required(folder.definitions, snapshot.schema)
            plan = base_files.open_slices.applied(plan, folder, required, self._pool)
        return replace(plan, slices=self._with_entries(plan, folder))

    def _matches_no_row(self, binding: Binding) -> bool:
        """Whether reading a remote table's index folder in parallel to the snapshot is useless:
        by the schema of the last query, the predicate is TRUE for no row. For the first query no
        schema is known; waiting for the snapshot's would slow down all other queries."""
        if self._schema is None or self._table.storage.is_local:
            return False
        try:
            predicate = binding.to(self._schema).normal_form
        except IndexServiceError:
            return False  # the present schema decides
        shorter = predicate and simplified(predicate)
        return isinstance(shorter, Constant) and shorter.value is not True

    def _snapshot_and_folder(
        self, options: ScanOptions, *, look: bool, ahead: "LookAhead | None" = None
    ) -> tuple[Snapshot, IndexFolder | None]:
        """The snapshot and, with `look`, a remote table's index folder, read in parallel. A local
        index folder is read later, if any slice is left to read."""
        if not look or self._table.storage.is_local:
            return self._snapshot(options), None
        with ThreadPoolExecutor(1, "index-look") as thread:
            future = (ahead and ahead.take()) or thread.submit(self._look)
            snapshot = self._snapshot(options)
            return snapshot, future.result()

    def _look(self) -> IndexFolder:
        folder = self._folder.look()
        if folder.segments != self._segments:  # entries were built, or removed
            self._segments = folder.segments
            self._pool.close_deleted()
        return folder

    def _without_excluded(self, plan: QueryPlan, folder: IndexFolder, counting: bool) -> QueryPlan:
        """The plan without slices that segments exclude, in which open entries find no row, or,
        for a count, whose rows they count."""
        required = self._coverage.required(folder.definitions, plan.snapshot.schema)
        start = self._start_of(plan.snapshot)
        plan = start.segment_slices.skip(plan, folder, required)
        plan = replace(plan, routes=start.segment_slices.routes(folder, required, plan.in_paths))
        if self._table.storage.is_local:
            plan = start.open_slices.applied(plan, folder, required, self._pool, counting=counting)
        return plan

    def _covered(self, plan: QueryPlan, folder: IndexFolder) -> QueryPlan:
        """The plan with entries and their cost context."""
        slices = self._with_entries(plan, folder)
        remote, open_paths = not self._table.storage.is_local, self._pool.open_paths
        share = self._share(plan, slices)
        return replace(plan, slices=slices, remote=remote, opened=open_paths, share=share)

    def _with_entries(self, plan: QueryPlan, folder: IndexFolder) -> tuple[SlicePlan, ...]:
        """The slices with their entries. Open entries that are no longer there are closed."""
        slices, listings = self._coverage.slices(plan, folder)
        for listing in listings:
            if listing.is_whole:
                self._pool.keep(listing)
            elif listing.misses_data:
                self._pool.close_deleted()
        return slices

    def _share(self, plan: QueryPlan, slices: Sequence[SlicePlan]) -> float | None:
        """The share of a base file's bytes that the columns to be read take; None if no entry is
        open. The footer of the first file with an open entry is taken as typical of the table's
        files."""
        assert plan.needed is not None
        names = tuple(plan.needed.names)
        share = self._shares.get(names)
        if share is None:
            for each in slices:
                footer = self._pool.open_footer(each.entries[0]) if each.entries else None
                if footer is not None:
                    share = column_share(footer, plan.needed, each.file_slice.base_file)
                    break
            if share is not None:
                if len(self._shares) >= _MOST_SHARES:
                    self._shares.clear()
                self._shares[names] = share
        return share

    def _start_of(self, snapshot: Snapshot) -> "_Start":
        """What all plans on a snapshot begin with, cached for the next query on it."""
        last = self._start
        if last is None or last.snapshot is not snapshot:
            partitions = PartitionValues.of(self._table.partition_paths(), snapshot)
            slices = first_slices(snapshot, partitions)
            last = self._start = _Start(
                snapshot,
                unsupported_columns(snapshot.schema)
                | unsupported_partition_values(partitions.uncertain),
                partitions,
                slices,
                SegmentSlices(snapshot),
                OpenSlices(slices),
            )
        return last

    def _snapshot(self, options: ScanOptions) -> Snapshot:
        check()
        base_files_only = options.query_type == "read_optimized"
        return self._table.snapshot(options.as_of, base_files_only=base_files_only)


class LookAhead:
    """A look into the index folder that began before its query is planned, for one plan.

    The folder may be older than the plan's snapshot: entries built since are not used yet, and
    those removed since are found missing.
    """

    def __init__(self, look: Callable[[], IndexFolder]) -> None:
        thread = ThreadPoolExecutor(1, "index-look")
        self._looks = [thread.submit(look)]
        thread.shutdown(wait=False)

    def take(self) -> Future[IndexFolder] | None:
        """The look; None if a plan has taken it."""
        try:
            return self._looks.pop()
        except IndexError:
            return None


@dataclass(frozen=True, slots=True)
class _Start:
    """A snapshot, the values from its partitions' paths, its slices as yet unplanned, and what
    segments and open entries say of them.

    Attributes:
        unreadable: See `unsupported_columns` and `unsupported_partition_values`.
    """

    snapshot: Snapshot
    unreadable: Mapping[str, str]
    partitions: PartitionValues
    slices: tuple[SlicePlan, ...]
    segment_slices: SegmentSlices
    open_slices: OpenSlices


@dataclass(frozen=True, slots=True)
class BaseFiles:
    """The base files of a snapshot, and what segments say of them.

    Attributes:
        folder: The index folder of the same moment; None if indexes are switched off.
        segment_slices: Applies segments to the snapshot.
        open_slices: Knows its slices whose entries are open.
        columns: Index type → the columns whose facts may be used.
    """

    snapshot: Snapshot
    folder: IndexFolder | None
    segment_slices: SegmentSlices
    open_slices: OpenSlices
    columns: Mapping[str, frozenset[ColumnKey]]


def first_slices(snapshot: Snapshot, partitions: PartitionValues) -> tuple[SlicePlan, ...]:
    """The slices before any rule: all are read by index, with entries still to be found."""
    values = partitions.by_partition
    return tuple(
        SlicePlan(each, Access.INDEX, values=values.get(each.partition, {}))
        for each in snapshot.slices
    )
