"""How long entries are kept: as long as their base file, or as long as their instant; and what is
removed with them outside their folders.

RFC-51 ties an index to its instant ("when cleaning instants, the corresponding index dir will be
cleaned together"). That is the policy ``instant``. Hudi archives instants whose base files are
still read, so under this policy live queries fall back to scans. The default, ``file-slice``, keeps
an entry as long as its base file exists.

Index types may keep data outside their entries' files, for example in a database. It is deleted
before the data file that leads to it, so that a later run can repeat a failed removal. If a builder
died before it wrote the data file, the index type itself lists the data.
"""

import logging
from collections import defaultdict
from collections.abc import Collection, Iterable

from hudi_index_service.config import Settings
from hudi_index_service.errors import (
    EntryUnusable,
    IndexServiceError,
    IndexTypeUnknown,
    NativeModuleMissing,
)
from hudi_index_service.hudi.completeness import list_data_files
from hudi_index_service.hudi.table import HudiTable
from hudi_index_service.index.contract import IndexType
from hudi_index_service.index.factory import index_type
from hudi_index_service.index.metadata.documents import INDEX_ROOT
from hudi_index_service.index.metadata.entry import DATA_SUFFIX, EntryListing
from hudi_index_service.index.metadata.manifest import entry_folder
from hudi_index_service.storage.store import Storage, StoredFile

log = logging.getLogger(__name__)


class Retention:
    """The retention policy, applied to the table's state at construction.

    Construct it after listing the entries: a base file and its instant are older than the entry, so
    the base file of every listed entry is seen if it exists.
    """

    def __init__(self, table: HudiTable, settings: Settings) -> None:
        self._base_files = list_data_files(
            table.storage, partitioned=bool(table.partition_columns())
        ).base_files
        self._paths = frozenset(base_file.path for base_file in self._base_files)
        self._retained_instants = retained_instants(table, settings)
        self._instants: dict[str, dict[str, str]] = {}

    def expired(self, index_type: str, folder: str) -> str | None:
        """Why the entry in a folder has expired; None if it has not."""
        if index_type not in self._instants:
            self._instants[index_type] = {
                entry_folder(index_type, base_file): base_file.instant
                for base_file in self._base_files
            }
        instant = self._instants[index_type].get(folder)
        if instant is None:
            return "its base file is gone"
        if self._retained_instants is not None and instant not in self._retained_instants:
            return "its instant has left the active timeline"
        return None

    def has_base_file(self, path: str) -> bool:
        """Whether the base file exists, in the snapshot or not."""
        return path in self._paths


def retained_instants(table: HudiTable, settings: Settings) -> frozenset[str] | None:
    """The instants whose entries are kept under ``retention: instant``, by requested time; None if
    there is no such limit. Entries that are not kept are not built either (design, rule 6)."""
    if settings.clean.retention == "file-slice":
        return None
    return frozenset(table.timeline().by_requested)


def stored_index_types(storage: Storage) -> list[str]:
    """The names of the index types that have files in the table, sorted."""
    folders = (path.rsplit("/", 1)[1] for path in storage.folders(INDEX_ROOT))
    return sorted(name for name in folders if not name.startswith("_"))


def expired_entries(
    table: HudiTable, settings: Settings, listings: Iterable[EntryListing] | None = None
) -> dict[str, list[StoredFile]]:
    """The folders of the entries that outlive their base file or (``retention: instant``) their
    instant, each with all its files. Until the next clean they still hold values that were erased
    from the table.

    Args:
        listings: Listings of the index types; if None, all index types are listed.
    """
    if listings is None:
        names = stored_index_types(table.storage)
        listings = [EntryListing(table.storage, name) for name in names]
    listings = list(listings)
    retention = Retention(table, settings)
    return {
        folder: listing.files(folder)
        for listing in listings
        for folder in listing.folders()
        if retention.expired(listing.index_type, folder) is not None
    }


class Elsewhere:
    """The external data of one table.

    Args:
        table: The table's base path, a URI.
    """

    def __init__(self, table: str, settings: Settings) -> None:
        self._table = table
        self._settings = settings

    def stored(
        self, names: Collection[str], unused: Collection[str] = ()
    ) -> tuple[dict[str, float], dict[str, str]]:
        """The external data that index types list.

        Args:
            names: The types of entries and live indexes.
            unused: Others. If one cannot work here, that is no failure: most likely it never did,
                and whoever can use it cleans up after it.

        Returns:
            Data file path → time of storing, in seconds since 1970; and index type name → reason,
            for types whose listing failed.
        """
        times: dict[str, float] = {}
        reasons: dict[str, str] = {}
        for name in sorted({*names, *unused}):
            kind = self._kind(name)
            if kind is None:
                continue
            try:
                times |= kind.stored(self._table)
            except EntryUnusable as error:
                if name in unused and isinstance(error, NativeModuleMissing):
                    log.info("What %s may store of %s is not listed: %s", name, self._table, error)
                    continue
                reasons[name] = _reason(error, f"Cannot list what {name} stores of {self._table}")
        return times, reasons

    def delete(
        self, storage: Storage, paths: Collection[str], orphans: Iterable[str] = ()
    ) -> dict[str, str]:
        """Deletes files of entries: manifests first, so that an entry disappears before its data;
        then external data, also that of data files that are not there; then the data files, by
        which external data is located.

        Args:
            orphans: The paths of data files that are not there.

        Returns:
            Path → reason for each data file whose external data could not be removed.
        """
        storage.delete([path for path in paths if path.endswith(".json")])
        failures = self._destroy([*paths, *orphans])
        storage.delete([p for p in paths if not p.endswith(".json") and p not in failures])
        return failures

    def _destroy(self, paths: Iterable[str]) -> dict[str, str]:
        by_type: defaultdict[str, list[str]] = defaultdict(list)
        for path in paths:
            if path.endswith(DATA_SUFFIX) and path.startswith(f"{INDEX_ROOT}/"):
                by_type[path.removeprefix(f"{INDEX_ROOT}/").split("/")[0]].append(path)
        reasons: dict[str, str] = {}
        for name, type_paths in by_type.items():
            kind = self._kind(name)
            if kind is None:
                continue
            try:
                kind.destroy(self._table, type_paths)
            except EntryUnusable as error:
                reason = _reason(error, f"Cannot remove what {name} stores of {self._table}")
                reasons |= dict.fromkeys(type_paths, reason)
        return reasons

    def _kind(self, name: str) -> IndexType | None:
        """The index type, if it is installed here."""
        try:
            return index_type(name).configured(self._settings)
        except IndexTypeUnknown:
            return None


def _reason(error: IndexServiceError, action: str) -> str:
    log.warning("%s: %s", action, error)
    return error.message.rstrip(".")
