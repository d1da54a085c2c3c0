"""Finds the entries that may serve the slices of a plan (design, "covered")."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from hudi_index_service.errors import EntryUnusable
from hudi_index_service.hudi.snapshot import BaseFile
from hudi_index_service.index.contract import StoredColumn
from hudi_index_service.index.factory import index_type
from hudi_index_service.index.metadata.definitions import IndexDefinition
from hudi_index_service.index.metadata.entry import (
    Entry,
    EntryListing,
    EntryMissing,
    StatedGeneration,
)
from hudi_index_service.index.metadata.manifest import Manifest, entry_folder
from hudi_index_service.index.metadata.requirements import (
    Requirement,
    by_index_type,
    indexed,
    requirements,
    stored_names,
)
from hudi_index_service.index.metadata.segments.segment import ColumnKey
from hudi_index_service.optimizer.plan import Access, QueryPlan, SlicePlan
from hudi_index_service.optimizer.serving import ServingEntry
from hudi_index_service.read.index_folder import IndexFolder, Listings
from hudi_index_service.storage.store import StoredFile

log = logging.getLogger(__name__)

_MOST_CACHED = 100_000  # base files whose entries are cached


@dataclass(frozen=True, slots=True)
class _CoverageResult:
    """The entry that served a base file, or why none did, and what was known of its folder. The
    result is valid as long as that is, since files are never changed in place."""

    base_file: BaseFile
    folder: str
    state: StatedGeneration | list[StoredFile]
    entry_or_reason: ServingEntry | str

    def is_current(self, listing: EntryListing, base_file: BaseFile) -> bool:
        """Whether the same is known of the base file's entry. A stated one may turn out to be
        missing."""
        if self.base_file != base_file or listing.state(self.folder) != self.state:
            return False
        if isinstance(self.entry_or_reason, str):
            return True
        entry = self.entry_or_reason.entry
        return entry.stated is None or listing.still_serves(entry)


@dataclass(slots=True, eq=False)
class RequiredColumns:
    """The columns that definitions require of entries, for one schema of the table.

    Attributes:
        groups: The requirements by index type.
        keys: The columns required of an index type's entries, as segments name them.
        results: The last result by index type and base file path.
        version: Another one whenever a result is another one.
    """

    definitions: tuple[IndexDefinition, ...]
    schema: pa.Schema
    groups: Mapping[str, list[Requirement]]
    keys: Mapping[str, frozenset[ColumnKey]]
    results: dict[tuple[str, str], _CoverageResult] = field(default_factory=dict)
    version: int = 0

    @classmethod
    def of(cls, definitions: tuple[IndexDefinition, ...], schema: pa.Schema) -> "RequiredColumns":
        """Those of some definitions; nothing is known yet of any base file."""
        groups = by_index_type(requirements(definitions, schema))
        keys = {
            name: frozenset(
                (spec.name, spec.type_name) for each in some for spec in indexed(each.columns)
            )
            for name, some in groups.items()
        }
        return cls(definitions, schema, groups, keys)

    def result(self, listing: EntryListing, base_file: BaseFile) -> ServingEntry | str | None:
        """The last result for a base file, if it is still valid; see `is_current`."""
        result = self.results.get((listing.index_type, base_file.path))
        if result is None or not result.is_current(listing, base_file):
            return None
        return result.entry_or_reason

    def last_serving(self, name: str, base_file: BaseFile) -> ServingEntry | None:
        """The entry that served a base file when it was last planned. It may be gone now."""
        last = self.results.get((name, base_file.path))
        if last is None or last.base_file != base_file or isinstance(last.entry_or_reason, str):
            return None
        return last.entry_or_reason

    def keep(self, name: str, result: _CoverageResult) -> None:
        """Caches the result for a base file for later queries."""
        if len(self.results) >= _MOST_CACHED:
            self.results.clear()
        self.results[name, result.base_file.path] = result
        self.version += 1


class Coverage:
    """Finds entries. The entries of a base file are cached while the definitions, the table's
    schema and the listing of the entry stay the same. Safe to use from several threads."""

    def __init__(self) -> None:
        self._last_required: RequiredColumns | None = None

    def slices(
        self, plan: QueryPlan, folder: IndexFolder
    ) -> tuple[tuple[SlicePlan, ...], list[EntryListing]]:
        """The plan's slices, with entries for those to be read by index that have none yet, and the
        listings that the entries are from; slices without entries are scanned."""
        required = self.required(folder.definitions, plan.snapshot.schema)
        base_files = [
            each.file_slice.base_file
            for each in plan.slices
            if each.access is Access.INDEX and not each.entries
        ]
        if not base_files:
            return plan.slices, []
        listings = folder.listings(base_files)
        listed = [each for each in listings.values() if isinstance(each, EntryListing)]
        for listing in listed:
            if listing.is_remote:
                _fetch(listing, required, base_files)
        slices = (
            _covered(each, required, listings)
            if each.access is Access.INDEX and not each.entries
            else each
            for each in plan.slices
        )
        return tuple(slices), listed

    def required(
        self, definitions: tuple[IndexDefinition, ...], schema: pa.Schema
    ) -> RequiredColumns:
        """The required columns: only those that live definitions still have, with their present
        options."""
        last = self._last_required
        if (
            last is None
            or last.definitions != definitions
            or not last.schema.equals(schema, check_metadata=True)
        ):
            last = self._last_required = RequiredColumns.of(definitions, schema)
        return last


def _fetch(
    listing: EntryListing, required: RequiredColumns, base_files: Sequence[BaseFile]
) -> None:
    """Reads what is not known yet of the entries of base files from a remote store, many requests
    at once. Where the stated generation does not serve, another one may."""
    name = listing.index_type
    unknown = [each for each in base_files if required.result(listing, each) is None]
    listing.fetch(unknown)

    def serves(base_file: BaseFile) -> bool:
        try:
            entry = listing.find(base_file)
        except EntryUnusable:
            return False
        return isinstance(_entry_or_reason(entry, required.groups[name]), ServingEntry)

    folders = [entry_folder(name, each) for each in unknown if not serves(each)]
    listing.list_stated(folders)


def _covered(plan: SlicePlan, required: RequiredColumns, listings: Listings) -> SlicePlan:
    serving: list[ServingEntry] = []
    reasons: list[str] = [] if required.groups else ["the table has no index"]
    for name in required.groups:
        found: EntryListing | ServingEntry | str = listings[name]
        if isinstance(found, EntryListing):
            found = _serving(found, required, plan.file_slice.base_file)
        if isinstance(found, ServingEntry):
            serving.append(found)
        else:
            reasons.append(found)
    if serving:
        return served_by(plan, serving)
    return plan.declined("; ".join(reasons), "coverage")


def served_by(plan: SlicePlan, servings: Sequence[ServingEntry]) -> SlicePlan:
    """A slice with its entries, one of each index type."""
    reason = " and ".join(sorted(each.index_type.name for each in servings)) + " entry"
    return plan.served(tuple(servings), reason)


def _serving(
    listing: EntryListing, required: RequiredColumns, base_file: BaseFile
) -> ServingEntry | str:
    """The entry with the columns that it may serve, or why there is none."""
    name = listing.index_type
    cached = required.result(listing, base_file)
    if cached is not None:
        return cached
    try:
        entry = listing.find(base_file)
        entry_or_reason = _entry_or_reason(entry, required.groups[name])
        if isinstance(entry_or_reason, str) and entry.stated:  # another generation may serve
            listing.list_stated([entry.folder])
            entry = listing.find(base_file)
            entry_or_reason = _entry_or_reason(entry, required.groups[name])
    except EntryMissing:
        return f"no {name} entry was built for it"
    except EntryUnusable as error:
        log.warning("%s is scanned: %s", base_file.path, error)
        return error.message.rstrip(".")
    if isinstance(entry_or_reason, str) or entry.stated:
        state = listing.state(entry.folder)
    else:
        state = listing.files(entry.folder)
    if entry.stated or listing.shows(entry.data_path):  # else it was found by an extra request
        required.keep(name, _CoverageResult(base_file, entry.folder, state, entry_or_reason))
    return entry_or_reason


def _entry_or_reason(entry: Entry, required: Sequence[Requirement]) -> ServingEntry | str:
    """A valid entry with the columns that it may serve, or why it does not serve."""
    name = entry.manifest.index_type
    kind = index_type(name)
    if (unread := entry.manifest.not_read(kind)) is not None:
        return f"its {name} entry has {unread}"
    columns = _usable_columns(entry.manifest, required)
    if not indexed(columns):
        specs = (spec for requirement in required for spec in requirement.columns)
        reason = next(filter(None, map(entry.manifest.skips, specs)), None)
        if reason is not None:
            return reason.rstrip(".")
        return f"its {name} entry lacks the columns as they are defined now"
    return ServingEntry(entry, kind, indexed(columns), stored_names(columns))


def _usable_columns(
    manifest: Manifest, required: Sequence[Requirement]
) -> tuple[StoredColumn, ...]:
    """The columns, sorted by name. Raises EntryInvalid if the type of one is unknown here."""
    columns: dict[str, StoredColumn] = {}
    for requirement in required:
        for spec in requirement.columns:
            column = manifest.column(spec.name)
            # Compares the types too, since only that refuses a type that is unknown here.
            if column is not None and column.holds(spec) and column.type == spec.type:
                columns[spec.name] = column
    return tuple(columns[name] for name in sorted(columns))
