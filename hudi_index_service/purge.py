"""Purging: no byte below ``.hoodie/.index`` is left of columns that no live definition asks for.

Entries that nobody uses are removed. Those that other definitions share are built anew without the
columns, and what they supersede is removed at once.
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from hudi_index_service.build.executor import Executor
from hudi_index_service.build.run import Build, run_build
from hudi_index_service.build.strategy import Strategy
from hudi_index_service.clean import Cleaning, clean
from hudi_index_service.config import Settings
from hudi_index_service.definitions import DefinitionStore
from hudi_index_service.documents import NewerFormat
from hudi_index_service.errors import (
    BuildFailed,
    BuildInProgress,
    EntryInvalid,
    NativeModuleMissing,
    SnapshotChanged,
    TableFeatureUnsupported,
)
from hudi_index_service.index.demand import Demand
from hudi_index_service.index.elsewhere import Elsewhere, without
from hudi_index_service.index.entry import EntryListing, index_type_folder
from hudi_index_service.index.requirements import Requirement, requirements
from hudi_index_service.index.retention import stored_index_types
from hudi_index_service.table.protocol import HudiTable

log = logging.getLogger(__name__)

# What keeps entries from being built anew; the rest of a purge goes on.
_BUILD_FAILURES = (
    BuildFailed,
    BuildInProgress,
    NativeModuleMissing,
    SnapshotChanged,
    TableFeatureUnsupported,
)


@dataclass(frozen=True, slots=True)
class Remainder:
    """An entry that still holds columns which no live definition asks for.

    Attributes:
        folder: The entry's folder, relative to the table.
        base_file: Path of its base file; "" if the entry cannot be read here.
        columns: Their names; empty if the entry cannot be read here.
        reason: Why it is there still, in one sentence.
    """

    folder: str
    base_file: str
    columns: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class Purge:
    """What purging did.

    Attributes:
        build: The entries built anew without the columns; None if that could not be begun.
        cleaning: What was removed.
        remaining: What is left, and why; empty when nothing is.
    """

    build: Build | None
    cleaning: Cleaning
    remaining: tuple[Remainder, ...]


def purge_unasked(table: HudiTable, executor: Executor, settings: Settings) -> Purge:
    """Removes what no live definition asks for.

    Raises:
        PermissionDenied: no write access below ``.hoodie/.index``.
    """
    live, complete = DefinitionStore(table.storage).read()
    asked = requirements(live, table.schema())
    build, reason = _narrowed(table, asked, executor, settings)
    failures = {each.path: each.error or "" for each in build.failed} if build is not None else {}
    here = {each.index_type for each in asked}
    elsewhere = {name for each in live for name in each.index_types} - here
    stored = stored_index_types(table.storage)
    demands = [
        Demand(name, tuple(each for each in asked if each.index_type == name))
        for name in stored
        if name not in elsewhere
    ]
    if complete:
        for demand in demands:
            _remove_outside_snapshot(table, demand, settings)
    else:
        reason = "a definition that cannot be read here may ask for them"
    cleaning = clean(table, settings, grace_seconds=0)
    unknown = [
        Remainder(index_type_folder(name), "", (), f"index type {name} is not installed here")
        for name in stored
        if name in elsewhere
    ]
    narrower = tuple(
        replace(each, reason=failures.get(each.base_file) or each.reason or reason)
        for demand in demands
        for each in _remaining(EntryListing(table.storage, demand.index_type), demand)
    )
    elsewhere_still = [
        Remainder(each.path.rpartition("/")[0], "", (), each.reason) for each in cleaning.unremoved
    ]
    remaining = (*unknown, *narrower, *elsewhere_still)
    for each in remaining:
        log.warning("%s is not purged: %s.", each.folder, each.reason)
    return Purge(build, cleaning, remaining)


def _narrowed(
    table: HudiTable, asked: Sequence[Requirement], executor: Executor, settings: Settings
) -> tuple[Build | None, str]:
    """Builds shared entries anew without what nobody asks for. Returns the build, if it could be
    begun, and why entries may not have been built."""
    try:
        build = run_build(
            table,
            asked,
            strategy=Strategy.REFRESH,
            executor=executor,
            settings=settings,
            indexes=(),
        )
    except _BUILD_FAILURES as error:
        log.warning("Shared entries of %s are not narrowed: %s", table.storage.uri, error)
        return None, error.message.rstrip(".")
    return build, "it was published in the meantime"


def _remove_outside_snapshot(table: HudiTable, demand: Demand, settings: Settings) -> None:
    """Removes the entries with such columns whose base files serve no query any more: they are
    never built anew."""
    try:
        present = {base_file.path for base_file in table.snapshot().base_files()}
    except TableFeatureUnsupported:
        return
    listing = EntryListing(table.storage, demand.index_type)
    for each in _remaining(listing, demand):
        if each.columns and each.base_file not in present:
            # Manifests first: the entry is gone before its data is.
            published = listing.published(each.folder)
            manifests = [path for path in published if path.endswith(".json")]
            table.storage.delete(manifests)
            failed = Elsewhere(table.storage.uri, settings).destroy(published)
            table.storage.delete(without(published.difference(manifests), failed))


def _remaining(listing: EntryListing, demand: Demand) -> Iterator[Remainder]:
    for folder in listing.folders():
        try:
            manifest = listing.newest_valid(folder)
        except NewerFormat as error:
            yield Remainder(folder, "", (), error.message.rstrip("."))
            continue
        except EntryInvalid:
            continue  # nothing serves here; what lies here is the cleaner's
        columns = demand.excess(manifest)
        if columns:
            yield Remainder(folder, manifest.base_file.path, columns, "")
