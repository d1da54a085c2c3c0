"""Finds the entries that may serve the slices of a plan (design, "covered")."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from hudi_index_service.definitions import IndexDefinition
from hudi_index_service.errors import EntryInvalid, PermissionDenied, StorageFailed
from hudi_index_service.index.contract import StoredColumn
from hudi_index_service.index.entry import EntryListing, EntryMissing
from hudi_index_service.index.factory import index_type
from hudi_index_service.index.manifest import Manifest
from hudi_index_service.index.requirements import Requirement, by_index_type, requirements
from hudi_index_service.optimizer.plan import Access, QueryPlan, ServingEntry, SlicePlan
from hudi_index_service.read.index_folder import IndexFolder, Listings
from hudi_index_service.table.protocol import BaseFile

log = logging.getLogger(__name__)

_MOST_KNOWN = 100_000  # manifests of which is known what they serve

_Groups: TypeAlias = Mapping[str, list[Requirement]]
_Columns: TypeAlias = tuple[StoredColumn, ...]


@dataclass(frozen=True, slots=True)
class _Asked:
    """What definitions ask of entries of a table of some schema.

    Attributes:
        groups: By index type.
        served: What manifests serve, by their ids, with them, so that none has the id of one that
            is gone.
    """

    definitions: tuple[IndexDefinition, ...]
    schema: pa.Schema
    groups: _Groups
    served: dict[int, tuple[Manifest, _Columns]]

    def columns(self, manifest: Manifest, required: Sequence[Requirement]) -> _Columns:
        """The columns that an entry may serve."""
        known = self.served.get(id(manifest))
        if known is None:
            if len(self.served) >= _MOST_KNOWN:
                self.served.clear()
            known = self.served[id(manifest)] = manifest, _served_columns(manifest, required)
        return known[1]


class Coverage:
    """Looks entries up. What a manifest serves is worked out once, as long as the definitions and
    the table's schema stay. Safe to use from several threads."""

    def __init__(self) -> None:
        self._asked: _Asked | None = None

    def slices(self, plan: QueryPlan, folder: IndexFolder) -> tuple[SlicePlan, ...]:
        """The plan's slices with the entries that may serve each that is to be read by index; those
        without any are scanned."""
        asked = self._required(folder.definitions, plan.snapshot.schema)
        for name in asked.groups:
            if isinstance(listing := folder.listings[name], EntryListing):
                listing.fetch(
                    each.file_slice.base_file
                    for each in plan.slices
                    if each.access is Access.INDEX and each.file_slice.base_file
                )

        def covered(each: SlicePlan) -> SlicePlan:
            base_file = each.file_slice.base_file
            if each.access is not Access.INDEX or base_file is None:
                return each
            return _covered(each, base_file, asked, folder.listings)

        return tuple(map(covered, plan.slices))

    def _required(self, definitions: tuple[IndexDefinition, ...], schema: pa.Schema) -> _Asked:
        """Only columns that live definitions still ask for, under their present options, serve."""
        known = self._asked
        if known is None or known.definitions != definitions or not known.schema.equals(schema):
            groups = by_index_type(requirements(definitions, schema))
            known = self._asked = _Asked(definitions, schema, groups, {})
        return known


def _covered(
    plan: SlicePlan,
    base_file: BaseFile,
    asked: _Asked,
    listings: Listings,
) -> SlicePlan:
    serving: list[ServingEntry] = []
    reasons: list[str] = [] if asked.groups else ["the table has no index"]
    for name in asked.groups:
        listing = listings[name]
        found: ServingEntry | str = listing if isinstance(listing, str) else ""
        if isinstance(listing, EntryListing):
            found = _serving(listing, name, asked, base_file)
        if isinstance(found, ServingEntry):
            serving.append(found)
        else:
            reasons.append(found)
    if serving:
        reason = " and ".join(sorted(entry.index_type.name for entry in serving)) + " entry"
        return plan.served(tuple(serving), reason)
    return plan.declined("; ".join(reasons), "coverage")


def _serving(
    listing: EntryListing, name: str, asked: _Asked, base_file: BaseFile
) -> ServingEntry | str:
    """The entry with the columns it may serve, or why there is none."""
    try:
        entry = listing.find(base_file)
        kind = index_type(name)
        if entry.manifest.index_type_version > kind.version:
            return f"its {name} entry has the newer version {entry.manifest.index_type_version}"
        columns = asked.columns(entry.manifest, asked.groups[name])
    except EntryMissing:
        return f"no {name} entry was built for it"
    except (EntryInvalid, PermissionDenied, StorageFailed) as error:
        log.warning("%s is scanned: %s", base_file.path, error)
        return error.message.rstrip(".")
    if not columns:
        return f"its {name} entry lacks the columns as they are defined now"
    return ServingEntry(entry, kind, columns)


def _served_columns(manifest: Manifest, required: Sequence[Requirement]) -> _Columns:
    served: dict[str, StoredColumn] = {}
    for requirement in required:
        for spec in requirement.columns:
            column = manifest.column(spec.name)
            if column is not None and manifest.holds(spec.name, spec.type, spec.fields):
                served[spec.name] = column.stored()
    return tuple(served[name] for name in sorted(served))
