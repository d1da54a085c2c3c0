"""Makes a query's first plan: which slices are covered, by which entries (design, "covered")."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Literal

import pyarrow as pa

from hudi_index_service.config import Settings
from hudi_index_service.errors import IndexServiceError
from hudi_index_service.index.entry import EntryListing
from hudi_index_service.optimizer import optimize
from hudi_index_service.optimizer.partitions import PartitionValues, Values
from hudi_index_service.optimizer.plan import (
    Access,
    QueryPlan,
    SlicePlan,
    Surroundings,
)
from hudi_index_service.predicate.expression import Constant, Predicate
from hudi_index_service.predicate.simplify import simplified
from hudi_index_service.read.coverage import Coverage
from hudi_index_service.read.index_folder import IndexFolder, IndexFolderReader
from hudi_index_service.read.query import Binding, Query
from hudi_index_service.read.reader_pool import ReaderPool
from hudi_index_service.read.row_reader import column_share
from hudi_index_service.table.protocol import FileSlice, HudiTable, Snapshot

_MOST_SHARES = 1_000  # sets of columns of which is known what they take of a file

UseIndex = Literal["auto", "never", "require"]
QueryType = Literal["snapshot", "read_optimized"]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a query reads, and how.

    Attributes:
        use_index: ``auto``, ``never`` or ``require``.
        as_of: The requested time up to which instants count; None for all.
        query_type: ``snapshot``, or ``read_optimized`` for base files alone.
    """

    use_index: UseIndex = "auto"
    as_of: str | None = None
    query_type: QueryType = "snapshot"


class QueryPlanner:
    """Plans queries on one table.

    A query asks the store for one listing of the timeline and, unless no index could serve it, one
    of the definitions and one of the entries of each index type, a remote store for all at once.

    Args:
        folder: Looks into the table's index folder.
        pool: What is open of entries that a listing no longer shows is closed.
    """

    def __init__(
        self, table: HudiTable, folder: IndexFolderReader, pool: ReaderPool, settings: Settings
    ) -> None:
        self._table = table
        self._folder = folder
        self._pool = pool
        self._settings = settings
        self._partitions: tuple[Snapshot, PartitionValues] | None = None
        self._coverage = Coverage()
        self._shares: dict[tuple[str, ...], float] = {}
        self._schema: pa.Schema | None = None  # of the last query

    def plan(self, binding: Binding, wanted: Wanted) -> tuple[Query, QueryPlan]:
        """The query, bound to the snapshot's schema, and its plan on that snapshot: the present
        one, or the one asked for.

        Raises:
            TableFeatureUnsupported, SnapshotUnavailable, SnapshotChanged: see `HudiTable.snapshot`.
            ColumnNotFound, PredicateInvalid, PredicateUnsupported: see `bind_query`.
            IndexRequired: ``use_index`` requires it, and a slice would be read without.
        """
        # Switched off, or without a predicate, nothing of the index folder is asked for.
        look = (
            binding.where is not None
            and wanted.use_index != "never"
            and self._settings.read.enabled
        )
        at_once = look and self._table.index_reading_enabled()
        snapshot, seen = self._look(wanted, look=at_once and not self._is_in_vain(binding))
        self._schema = snapshot.schema
        query = binding.to(snapshot.schema)
        switched_off = not self._table.index_reading_enabled()

        def covered(plan: QueryPlan) -> QueryPlan:
            if seen is not None:
                return self._covered(plan, seen)
            return self._covered(plan, self._folder_now()) if look and not switched_off else plan

        plan = first_plan(
            snapshot,
            query.normal_form,
            self._partition_values(snapshot),
            use_index=wanted.use_index,
            switched_off=switched_off,
            needed=query.needed,
            table=self._table.storage.uri,
        )
        plan = optimize(plan, self._settings, covered)
        if plan.predicate is not query.normal_form:
            query = replace(query, normal_form=plan.predicate)
        return query, plan

    def base_file_entries(self) -> QueryPlan:
        """The present snapshot, each slice with the entries that may serve its base file, whether
        log files lie above that or not; before any rule has gone over it.

        Raises:
            TableFeatureUnsupported, SnapshotChanged: see `HudiTable.snapshot`.
        """
        look = self._settings.read.enabled and self._table.index_reading_enabled()
        snapshot, folder = self._look(Wanted(), look=look)
        if folder is None and look:
            folder = self._folder_now()
        alone = tuple(
            each if each.base_file is None else replace(each, log_files=())
            for each in snapshot.slices
        )
        plan = first_plan(replace(snapshot, slices=alone), None)
        found = plan.slices if folder is None else self._coverage.slices(plan, folder)
        slices = tuple(
            replace(planned, file_slice=each)
            for planned, each in zip(found, snapshot.slices, strict=True)
        )
        return replace(plan, snapshot=snapshot, slices=slices)

    def _is_in_vain(self, binding: Binding) -> bool:
        """Whether a remote table's index folder need not be looked at while the snapshot is made:
        by the schema of the last query, the predicate is TRUE for no row. Of the first query no
        schema is known: to wait for it would take all others longer."""
        if self._schema is None or self._table.storage.is_local:
            return False
        try:
            predicate = binding.to(self._schema).normal_form
        except IndexServiceError:
            return False  # the present schema decides
        shorter = predicate and simplified(predicate)
        return isinstance(shorter, Constant) and shorter.value is not True

    def _look(self, wanted: Wanted, *, look: bool) -> tuple[Snapshot, IndexFolder | None]:
        """The snapshot and, if it is to be looked at, a remote table's index folder, at once. Who
        wants to look into a local one does it once something is left that is to be read."""
        if not look or self._table.storage.is_local:
            return self._snapshot(wanted), None
        with ThreadPoolExecutor(1, "index-look") as thread:
            looking = thread.submit(self._folder_now)
            snapshot = self._snapshot(wanted)
            return snapshot, looking.result()

    def _folder_now(self) -> IndexFolder:
        folder = self._folder.look()
        for listing in folder.listings.values():
            if isinstance(listing, EntryListing):
                self._pool.keep(listing)
        return folder

    def _covered(self, plan: QueryPlan, folder: IndexFolder) -> QueryPlan:
        """The plan with entries, and with what their costs depend on."""
        slices = self._coverage.slices(plan, folder)
        remote, opened = not self._table.storage.is_local, self._pool.open_paths
        around = Surroundings(remote, opened, self._share(plan, slices))
        return replace(plan, slices=slices, surroundings=around)

    def _share(self, plan: QueryPlan, slices: Sequence[SlicePlan]) -> float | None:
        """What the columns to be read take of a base file's bytes, by the footer of the first one
        whose entry is open; None if none is. Other files of the table are much like it."""
        assert plan.needed is not None
        names = tuple(plan.needed.names)
        share = self._shares.get(names)
        if share is None:
            for each in slices:
                footer = self._pool.open_footer(each.entries[0]) if each.entries else None
                if footer is not None and each.file_slice.base_file is not None:
                    share = column_share(footer, plan.needed, each.file_slice.base_file)
                    break
            if share is not None:
                if len(self._shares) >= _MOST_SHARES:
                    self._shares.clear()
                self._shares[names] = share
        return share

    def _partition_values(self, snapshot: Snapshot) -> PartitionValues:
        """What partitions' paths tell, kept for the next query on the snapshot."""
        last = self._partitions
        if last is None or last[0] is not snapshot:
            values = PartitionValues.of(self._table.partition_paths(), snapshot)
            last = self._partitions = (snapshot, values)
        return last[1]

    def _snapshot(self, wanted: Wanted) -> Snapshot:
        base_files_only = wanted.query_type == "read_optimized"
        return self._table.snapshot(wanted.as_of, base_files_only=base_files_only)


def first_plan(
    snapshot: Snapshot,
    predicate: Predicate | None,
    partitions: PartitionValues | None = None,
    *,
    use_index: UseIndex = "auto",
    switched_off: bool = False,
    needed: pa.Schema | None = None,
    table: str = "",
) -> QueryPlan:
    """Every slice, to be merged with its log files, or else read by entries that have yet to be
    found; the optimizer's rules go on from here.

    Args:
        predicate: In negation normal form.
        partitions: What the paths of partitions tell.
        use_index, switched_off, needed, table: See `QueryPlan`.
    """
    known: Mapping[str, Values] = {} if partitions is None else partitions.by_partition

    def planned(each: FileSlice) -> SlicePlan:
        values = known.get(each.partition, {})
        if each.base_file is None or each.log_files:
            reason = f"{len(each.log_files)} log files lie above the base file"
            return SlicePlan(each, Access.MERGE, reason=reason, values=values)
        return SlicePlan(each, Access.INDEX, values=values)

    return QueryPlan(
        snapshot,
        predicate,
        tuple(map(planned, snapshot.slices)),
        use_index=use_index,
        switched_off=switched_off,
        partitions=partitions,
        needed=needed,
        table=table,
    )
