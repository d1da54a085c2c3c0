"""Makes a query's first plan: which slices are covered, by which entries (design, "covered")."""

import logging
from collections.abc import Mapping, Sequence
from typing import Literal

from hudi_index_service.errors import EntryInvalid, PermissionDenied, StorageFailed
from hudi_index_service.index.contract import StoredColumn
from hudi_index_service.index.entry import Entry, EntryListing, EntryMissing
from hudi_index_service.index.factory import index_type
from hudi_index_service.index.requirements import Requirement, by_index_type
from hudi_index_service.optimizer.plan import Access, QueryPlan, ServingEntry, SlicePlan
from hudi_index_service.predicate.expression import Predicate
from hudi_index_service.storage import Storage
from hudi_index_service.table.protocol import BaseFile, FileSlice, Snapshot

log = logging.getLogger(__name__)

UseIndex = Literal["auto", "never", "require"]


def first_plan(
    storage: Storage,
    requirements: Sequence[Requirement],
    snapshot: Snapshot,
    predicate: Predicate | None,
    use_index: UseIndex,
) -> QueryPlan:
    """Every slice with the entries that could serve it; the optimizer's rules go on from here.

    Args:
        requirements: Of the live definitions: only columns that they still ask for, under their
            present options, may serve.
        predicate: In negation normal form.
    """
    groups = by_index_type(requirements)
    # Without a predicate, or with indexes off, no entry is looked for.
    wanted = groups if predicate is not None and use_index != "never" else {}
    listings = {name: _listing(storage, name) for name in wanted}
    slices = tuple(
        _slice_plan(each, groups, listings, looked=bool(wanted) or not groups)
        for each in snapshot.slices
    )
    return QueryPlan(snapshot, predicate, slices, use_index)


def _slice_plan(
    file_slice: FileSlice,
    groups: Mapping[str, list[Requirement]],
    listings: Mapping[str, EntryListing | str],
    *,
    looked: bool,
) -> SlicePlan:
    if file_slice.base_file is None or file_slice.log_files:
        reason = f"{len(file_slice.log_files)} log files lie above the base file"
        return SlicePlan(file_slice, Access.MERGE, reason=reason)
    if not looked:
        return SlicePlan(file_slice, Access.INDEX)
    serving: list[ServingEntry] = []
    reasons: list[str] = [] if groups else ["the table has no index"]
    for name, listing in listings.items():
        found = (
            listing
            if isinstance(listing, str)
            else _serving(listing, name, groups[name], file_slice.base_file)
        )
        if isinstance(found, ServingEntry):
            serving.append(found)
        else:
            reasons.append(found)
    if serving:
        reason = " and ".join(sorted(entry.index_type.name for entry in serving)) + " entry"
        return SlicePlan(file_slice, Access.INDEX, tuple(serving), reason)
    return SlicePlan(file_slice, Access.SCAN, reason="; ".join(reasons))


def _listing(storage: Storage, name: str) -> EntryListing | str:
    """The entries of an index type, or why they cannot be listed: doubt means scan."""
    try:
        return EntryListing(storage, name)
    except (PermissionDenied, StorageFailed) as error:
        log.warning("The table is scanned: %s", error)
        return error.message.rstrip(".")


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
