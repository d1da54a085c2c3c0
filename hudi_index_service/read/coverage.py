"""Finds the entries that may serve the slices of a plan (design, "covered")."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from hudi_index_service.errors import EntryInvalid, PermissionDenied, StorageFailed
from hudi_index_service.hudi.protocol import BaseFile
from hudi_index_service.index.contract import StoredColumn
from hudi_index_service.index.entries.entry import Entry, EntryListing, EntryMissing
from hudi_index_service.index.entries.manifest import Manifest
from hudi_index_service.index.entries.requirements import Requirement, by_index_type, requirements
from hudi_index_service.index.factory import index_type
from hudi_index_service.metadata.definitions import IndexDefinition
from hudi_index_service.optimizer.plan import Access, QueryPlan, SlicePlan
from hudi_index_service.optimizer.serving import ServingEntry
from hudi_index_service.read.index_folder import IndexFolder, Listings
from hudi_index_service.storage.store import StoredFile

log = logging.getLogger(__name__)

_MOST_KNOWN = 100_000  # base files whose entries are cached

_Groups: TypeAlias = Mapping[str, list[Requirement]]


@dataclass(frozen=True, slots=True)
class _Found:
    """The entry that served a base file, or why none did, and the listed files of its folder. The
    result stays valid while the listing does, since no file changes under its name."""

    base_file: BaseFile
    folder: str
    files: list[StoredFile]
    told: ServingEntry | str

    def shown_again(self, listing: EntryListing, base_file: BaseFile) -> bool:
        """Whether the listing still shows the same files for the base file."""
        return self.base_file == base_file and listing.files(self.folder) == self.files


@dataclass(frozen=True, slots=True)
class RequiredColumns:
    """The columns that definitions require of entries, for one schema of the table.

    Attributes:
        groups: The requirements by index type.
        found: The last result by index type and base file path.
    """

    definitions: tuple[IndexDefinition, ...]
    schema: pa.Schema
    groups: _Groups
    found: dict[tuple[str, str], _Found]

    def keep(self, name: str, found: _Found) -> None:
        """Caches the result for a base file for later queries."""
        if len(self.found) >= _MOST_KNOWN:
            self.found.clear()
        self.found[name, found.base_file.path] = found


class Coverage:
    """Finds entries. The entries of a base file are cached while the definitions, the table's
    schema and the listing of the entry stay the same. Safe to use from several threads."""

    def __init__(self) -> None:
        self._asked: RequiredColumns | None = None

    def slices(self, plan: QueryPlan, folder: IndexFolder) -> tuple[SlicePlan, ...]:
        """The plan's slices, with entries for those to be read by index; slices without entries
        are scanned."""
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

    def _required(
        self, definitions: tuple[IndexDefinition, ...], schema: pa.Schema
    ) -> RequiredColumns:
        """The required columns: only those that live definitions still have, with their present
        options."""
        known = self._asked
        if known is None or known.definitions != definitions or not known.schema.equals(schema):
            groups = by_index_type(requirements(definitions, schema))
            known = self._asked = RequiredColumns(definitions, schema, groups, {})
        return known


def _covered(
    plan: SlicePlan,
    base_file: BaseFile,
    asked: RequiredColumns,
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
    listing: EntryListing, name: str, asked: RequiredColumns, base_file: BaseFile
) -> ServingEntry | str:
    """The entry with the columns that it may serve, or why there is none."""
    known = asked.found.get((name, base_file.path))
    if known is not None and known.shown_again(listing, base_file):
        return known.told
    try:
        entry = listing.find(base_file)
        told = _told(entry, name, asked.groups[name])
    except EntryMissing:
        return f"no {name} entry was built for it"
    except (EntryInvalid, PermissionDenied, StorageFailed) as error:
        log.warning("%s is scanned: %s", base_file.path, error)
        return error.message.rstrip(".")
    if listing.shows(entry.data_path):  # otherwise it was found by an extra request
        asked.keep(name, _Found(base_file, entry.folder, listing.files(entry.folder), told))
    return told


def _told(entry: Entry, name: str, required: Sequence[Requirement]) -> ServingEntry | str:
    """A valid entry with the columns that it may serve, or why it does not serve."""
    kind = index_type(name)
    if entry.manifest.index_type_version > kind.version:
        return f"its {name} entry has the newer version {entry.manifest.index_type_version}"
    columns = _served_columns(entry.manifest, required)
    if not columns:
        return f"its {name} entry lacks the columns as they are defined now"
    return ServingEntry(entry, kind, columns)


def _served_columns(
    manifest: Manifest, required: Sequence[Requirement]
) -> tuple[StoredColumn, ...]:
    """The columns, sorted by name. Raises EntryInvalid if the type of one is unknown here."""
    served: dict[str, StoredColumn] = {}
    for requirement in required:
        for spec in requirement.columns:
            column = manifest.column(spec.name)
            # Compares the types too, since only that refuses a type that is unknown here.
            if column is not None and column.holds(spec) and column.type == spec.type:
                served[spec.name] = column
    return tuple(served[name] for name in sorted(served))
