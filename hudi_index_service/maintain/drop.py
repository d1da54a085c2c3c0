"""Drops an index by name, or columns from every index (RFC-51: dropIndex), and purges: removes
every byte below ``.hoodie/.index`` of columns that no live definition has.

A purge removes unused entries. It rebuilds entries that other definitions share without the
columns, and removes the superseded generations at once.
"""

import logging
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import pyarrow as pa

from hudi_index_service.build.executor import Executor
from hudi_index_service.build.outcomes import Build
from hudi_index_service.build.run import run_build
from hudi_index_service.build.strategy import Strategy
from hudi_index_service.columns import column_path, find_column, require_list
from hudi_index_service.config import Settings
from hudi_index_service.errors import (
    BuildFailed,
    BuildInProgress,
    ColumnAmbiguous,
    ColumnNotFound,
    ConfigInvalid,
    EntryInvalid,
    IndexChanged,
    IndexNotFound,
    NativeModuleMissing,
    Remedy,
    SnapshotChanged,
    TableFeatureUnsupported,
)
from hudi_index_service.hudi.table import HudiTable
from hudi_index_service.index.metadata.definitions import (
    Definitions,
    DefinitionStore,
    IndexDefinition,
)
from hudi_index_service.index.metadata.documents import NewerFormat
from hudi_index_service.index.metadata.entry import EntryListing
from hudi_index_service.index.metadata.manifest import index_type_folder
from hudi_index_service.index.metadata.requirements import DesiredEntry, by_index_type, requirements
from hudi_index_service.index.metadata.retention import Elsewhere, stored_index_types
from hudi_index_service.maintain.clean import Cleaning, clean
from hudi_index_service.maintain.define import without_columns

log = logging.getLogger(__name__)

# Errors that prevent entries from being rebuilt; the rest of a purge continues.
_BUILD_FAILURES = (
    BuildFailed,
    BuildInProgress,
    NativeModuleMissing,
    SnapshotChanged,
    TableFeatureUnsupported,
)


@dataclass(frozen=True, slots=True)
class Remainder:
    """An entry that still has columns that no live definition has.

    Attributes:
        folder: The entry's folder, relative to the table.
        base_file: Path of its base file; "" if the entry cannot be read here.
        columns: Their names; empty if the entry cannot be read here.
        reason: Why it was not removed, in one sentence.
    """

    folder: str
    base_file: str
    columns: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class Purge:
    """The result of a purge.

    Attributes:
        build: The entries rebuilt without the columns; None if the build could not start.
        cleaning: The removed files.
        remaining: Entries that are left, with reasons; empty if there are none.
    """

    build: Build | None
    cleaning: Cleaning
    remaining: tuple[Remainder, ...]


@dataclass(frozen=True, slots=True)
class Dropped:
    """The result of a drop.

    Attributes:
        indexes: Dropped indexes, as they were.
        narrowed: Indexes that lost columns, as they are now.
        purge: The files removed, and those that could not be; None without a purge.
    """

    indexes: tuple[IndexDefinition, ...] = ()
    narrowed: tuple[IndexDefinition, ...] = ()
    purge: Purge | None = None


def drop(
    table: HudiTable,
    definitions: DefinitionStore,
    name: str | None,
    columns: Sequence[str] | None,
    *,
    again: bool,
) -> Dropped:
    """Drops an index, or removes columns from every index; an index that has none left is dropped.

    Args:
        name, columns: One of the two.
        again: Accept an index that has already been dropped, and a column of the table that no
            index has.

    Raises:
        IndexNotFound: there is no such index, or a column is in no index; nothing was changed.
        ConfigInvalid: neither or both of name and columns are given, or `columns` is not a list.
        PermissionDenied.
    """
    if (name is None) == (columns is None):
        raise ConfigInvalid(
            "An index is dropped by its name, or by columns.",
            remedy=Remedy("Give one of name and columns.", command="Give either NAME or --column."),
        )
    if name is not None:
        return _by_name(definitions, name, again=again)
    require_list(columns, "columns")
    return _columns(definitions, columns or (), table.schema(), again=again)


def _by_name(definitions: DefinitionStore, name: str, *, again: bool) -> Dropped:
    try:
        return Dropped((definitions.drop(name),))
    except IndexNotFound:
        names = {each.current.name for each in definitions.versions() if each.current is not None}
        if again and name in names:
            return Dropped()
        raise


def _columns(
    definitions: DefinitionStore, columns: Sequence[str], schema: pa.Schema, *, again: bool
) -> Dropped:
    live = definitions.live()
    for column in columns:
        if not without_columns(live, [column]) and not (again and _is_column(schema, column)):
            raise IndexNotFound(f"No index of the table has column {column}.")
    dropped: dict[str, IndexDefinition] = {}
    narrowed: dict[str, IndexDefinition] = {}
    while affected := without_columns(definitions.live(), columns):
        for definition, remaining in affected:
            with suppress(IndexChanged):  # the next pass sees the change
                changed = definitions.change(definition, remaining)
                if changed.dropped:
                    narrowed.pop(definition.name, None)
                    dropped[definition.name] = definition
                else:
                    narrowed[definition.name] = changed
    return Dropped(tuple(dropped.values()), tuple(narrowed.values()))


def _is_column(schema: pa.Schema, name: str) -> bool:
    try:
        find_column(schema, column_path(name))
    except (ColumnNotFound, ColumnAmbiguous):
        return False
    return True


def purge_unasked(table: HudiTable, executor: Executor, settings: Settings) -> Purge:
    """Removes columns that no live definition has, whichever index they were built for. Entries
    that other indexes share are rebuilt without them.

    Raises:
        PermissionDenied: no write access below ``.hoodie/.index``.
    """
    definitions = DefinitionStore(table.storage).read()
    live = definitions.live
    required = by_index_type(requirements(live, table.schema()))
    build, reason = _rebuild_shared_entries(table, definitions, executor, settings)
    failures = {each.path: each.error or "" for each in build.failed} if build is not None else {}
    missing_types = {name for each in live for name in each.index_types} - required.keys()
    stored_types = stored_index_types(table.storage)
    demands = [
        DesiredEntry(name, tuple(required.get(name, ())))
        for name in stored_types
        if name not in missing_types
    ]
    if definitions.complete:
        for demand in demands:
            _remove_outside_snapshot(table, demand, settings)
    else:
        reason = "a definition that cannot be read here may use them"
    cleaning = clean(table, settings, grace_seconds=0)
    uninstalled = [
        Remainder(index_type_folder(name), "", (), f"index type {name} is not installed here")
        for name in stored_types
        if name in missing_types
    ]
    excess = tuple(
        replace(each, reason=failures.get(each.base_file) or each.reason or reason)
        for demand in demands
        for each in _remaining(EntryListing(table.storage, demand.index_type), demand)
    )
    unremoved = [
        Remainder(each.path.rpartition("/")[0], "", (), each.reason) for each in cleaning.unremoved
    ]
    remaining = (*uninstalled, *excess, *unremoved)
    for each in remaining:
        log.warning("%s is not purged: %s.", each.folder, each.reason)
    return Purge(build, cleaning, remaining)


def _rebuild_shared_entries(
    table: HudiTable, definitions: Definitions, executor: Executor, settings: Settings
) -> tuple[Build | None, str]:
    """Rebuilds shared entries without the unused columns. Returns the build, or None if it could
    not start, and the reason for entries that were not rebuilt."""
    try:
        build = run_build(
            table,
            definitions,
            strategy=Strategy.REFRESH,
            executor=executor,
            settings=settings,
            indexes=(),
        )
    except _BUILD_FAILURES as error:
        log.warning("Shared entries of %s are not rebuilt: %s", table.storage.uri, error)
        return None, error.message.rstrip(".")
    return build, "it was published in the meantime"


def _remove_outside_snapshot(table: HudiTable, demand: DesiredEntry, settings: Settings) -> None:
    """Removes the entries with such columns whose base files are outside the snapshot, since no
    build replaces them."""
    try:
        present = {base_file.path for base_file in table.snapshot().base_files()}
    except TableFeatureUnsupported:
        return
    listing = EntryListing(table.storage, demand.index_type)
    for each in _remaining(listing, demand):
        if each.columns and each.base_file not in present:
            published = listing.published(each.folder)
            Elsewhere(table.storage.uri, settings).delete(table.storage, published)


def _remaining(listing: EntryListing, demand: DesiredEntry) -> Iterator[Remainder]:
    for folder in listing.folders():
        try:
            manifest = listing.newest_valid(folder)
        except NewerFormat as error:
            yield Remainder(folder, "", (), error.message.rstrip("."))
            continue
        except EntryInvalid:
            continue  # no generation serves here; cleaning removes the files
        columns = demand.excess(manifest)
        if columns:
            yield Remainder(folder, manifest.base_file.path, columns, "")
