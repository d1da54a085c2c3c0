"""Makes a query's first plan: which slices are covered, by which entries (design, "covered")."""

import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Literal

from hudi_index_service.config import Settings
from hudi_index_service.errors import EntryInvalid, PermissionDenied, StorageFailed
from hudi_index_service.index.contract import StoredColumn
from hudi_index_service.index.entry import Entry, EntryListing, EntryMissing
from hudi_index_service.index.factory import index_type
from hudi_index_service.index.requirements import Requirement, by_index_type, requirements
from hudi_index_service.optimizer import optimize
from hudi_index_service.optimizer.plan import Access, QueryPlan, ServingEntry, SlicePlan
from hudi_index_service.predicate.expression import Predicate
from hudi_index_service.read.index_folder import IndexFolder, IndexFolderReader, Listings
from hudi_index_service.read.partitions import PartitionValues, Values
from hudi_index_service.read.query import Binding, Query
from hudi_index_service.read.reader_pool import ReaderPool
from hudi_index_service.table.protocol import BaseFile, FileSlice, HudiTable, Snapshot

log = logging.getLogger(__name__)

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
        snapshot, folder = self._look(wanted, look=look and self._table.index_reading_enabled())
        query = binding.to(snapshot.schema)
        switched_off = not self._table.index_reading_enabled()
        if folder is None and look and not switched_off:  # switched on a moment ago
            folder = self._folder.look()
        plan = first_plan(folder, snapshot, query.normal_form, self._partition_values(snapshot))
        plan = replace(plan, use_index=wanted.use_index, switched_off=switched_off)
        return query, optimize(plan, self._settings)

    def base_file_entries(self) -> QueryPlan:
        """The present snapshot, each slice with the entries that may serve its base file, whether
        log files lie above that or not; before any rule has gone over it.

        Raises:
            TableFeatureUnsupported, SnapshotChanged: see `HudiTable.snapshot`.
        """
        look = self._settings.read.enabled and self._table.index_reading_enabled()
        snapshot, folder = self._look(Wanted(), look=look)
        alone = tuple(
            each if each.base_file is None else replace(each, log_files=())
            for each in snapshot.slices
        )
        plan = first_plan(folder, replace(snapshot, slices=alone), None)
        slices = tuple(
            replace(planned, file_slice=each)
            for planned, each in zip(plan.slices, snapshot.slices, strict=True)
        )
        return replace(plan, snapshot=snapshot, slices=slices)

    def _look(self, wanted: Wanted, *, look: bool) -> tuple[Snapshot, IndexFolder | None]:
        """The snapshot and, if it is to be looked at, the index folder."""
        folder: IndexFolder | None = None
        if look and not self._table.storage.is_local:
            with ThreadPoolExecutor(1, "index-look") as thread:
                looking = thread.submit(self._folder.look)
                snapshot = self._snapshot(wanted)
                folder = looking.result()
        else:
            snapshot = self._snapshot(wanted)
            folder = self._folder.look() if look else None
        if folder is not None:
            for listing in folder.listings.values():
                if isinstance(listing, EntryListing):
                    self._pool.keep(listing)
        return snapshot, folder

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
    folder: IndexFolder | None,
    snapshot: Snapshot,
    predicate: Predicate | None,
    partitions: PartitionValues | None = None,
) -> QueryPlan:
    """Every slice with the entries that could serve it; the optimizer's rules go on from here.

    Args:
        folder: None where no index may serve: no entry is looked for then.
        predicate: In negation normal form.
        partitions: What the paths of partitions tell; those that rule the predicate out are not
            read.
    """
    known: Mapping[str, Values] = {} if partitions is None else partitions.by_partition
    pruned = frozenset() if partitions is None else partitions.ruled_out(predicate)
    # Only columns that live definitions still ask for, under their present options, may serve.
    asked = () if folder is None else requirements(folder.definitions, snapshot.schema)
    groups = by_index_type(asked)
    if folder is not None:
        for name in groups:
            if isinstance(listing := folder.listings[name], EntryListing):
                listing.fetch(
                    each.base_file
                    for each in snapshot.slices
                    if each.base_file and not each.log_files and each.partition not in pruned
                )

    def planned(each: FileSlice) -> SlicePlan:
        if each.partition in pruned:
            reason = "the partition's path rules the predicate out"
            return SlicePlan(each, Access.SKIP, reason=reason, rule="partition_pruning")
        if each.base_file is None or each.log_files:
            reason = f"{len(each.log_files)} log files lie above the base file"
            return SlicePlan(each, Access.MERGE, reason=reason)
        if folder is None:
            return SlicePlan(each, Access.INDEX)
        return _slice_plan(each, each.base_file, groups, folder.listings)

    return QueryPlan(
        snapshot,
        predicate,
        tuple(
            replace(planned(each), values=known.get(each.partition, {})) for each in snapshot.slices
        ),
    )


def _slice_plan(
    file_slice: FileSlice,
    base_file: BaseFile,
    groups: Mapping[str, list[Requirement]],
    listings: Listings,
) -> SlicePlan:
    serving: list[ServingEntry] = []
    reasons: list[str] = [] if groups else ["the table has no index"]
    for name, required in groups.items():
        listing = listings[name]
        found = (
            listing if isinstance(listing, str) else _serving(listing, name, required, base_file)
        )
        if isinstance(found, ServingEntry):
            serving.append(found)
        else:
            reasons.append(found)
    if serving:
        reason = " and ".join(sorted(entry.index_type.name for entry in serving)) + " entry"
        return SlicePlan(file_slice, Access.INDEX, tuple(serving), reason)
    return SlicePlan(file_slice, Access.SCAN, reason="; ".join(reasons))


def _serving(
    listing: EntryListing, name: str, requirements: Sequence[Requirement], base_file: BaseFile
) -> ServingEntry | str:
    """The entry with the columns it may serve, or why there is none."""
    try:
        entry = listing.find(base_file)
        kind = index_type(name)
        if entry.manifest.index_type_version > kind.version:
            return f"its {name} entry has the newer version {entry.manifest.index_type_version}"
        columns = _served_columns(entry, requirements)
    except EntryMissing:
        return f"no {name} entry was built for it"
    except (EntryInvalid, PermissionDenied, StorageFailed) as error:
        log.warning("%s is scanned: %s", base_file.path, error)
        return error.message.rstrip(".")
    if not columns:
        return f"its {name} entry lacks the columns as they are defined now"
    return ServingEntry(entry, kind, columns)


def _served_columns(entry: Entry, requirements: Sequence[Requirement]) -> tuple[StoredColumn, ...]:
    served: dict[str, StoredColumn] = {}
    for requirement in requirements:
        for spec in requirement.columns:
            column = entry.manifest.column(spec.name)
            if column is not None and entry.manifest.holds(spec.name, spec.type, spec.fields):
                served[spec.name] = column.stored()
    return tuple(served[name] for name in sorted(served))
