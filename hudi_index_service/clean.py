"""Cleaning: what lies below ``.hoodie/.index`` and serves nobody any more goes.

An entry goes with its base file (``retention: file-slice``), or already with its instant
(``retention: instant``, as RFC-51 has it: "when cleaning instants, the corresponding index dir will
be cleaned together"). Superseded generations, data files that no manifest names and entries that no
live definition uses go after a grace period, since a reader or a builder may be using them. Copies
in this user's cache go with what they were copied from.
"""

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from time import time

from hudi_index_service.build.record import BuildRecords
from hudi_index_service.config import Settings
from hudi_index_service.documents import INDEX_ROOT, NewerFormat, document_name
from hudi_index_service.errors import EntryInvalid, IndexTypeUnknown
from hudi_index_service.index.entry import MANIFEST_STEM, EntryListing, entry_folder
from hudi_index_service.index.factory import index_type
from hudi_index_service.index.local_copy import purge_copies
from hudi_index_service.index.manifest import Manifest
from hudi_index_service.storage import StoredFile
from hudi_index_service.table.completeness import list_data_files
from hudi_index_service.table.protocol import HudiTable

log = logging.getLogger(__name__)

_RECORDS_KEPT_SECONDS = 7 * 24 * 3600.0


@dataclass(frozen=True, slots=True)
class Removal:
    """A file that goes, and why."""

    path: str
    size: int
    reason: str


@dataclass(frozen=True, slots=True)
class Cleaning:
    """What a clean removed, or (dry run) would remove."""

    removals: tuple[Removal, ...]
    folders: int = 0

    @property
    def bytes(self) -> int:
        """Bytes freed."""
        return sum(removal.size for removal in self.removals)


def clean(
    table: HudiTable,
    live_columns: Mapping[str, Collection[str]],
    settings: Settings,
    *,
    dry_run: bool = False,
    grace_seconds: float | None = None,
) -> Cleaning:
    """Removes what has expired.

    Args:
        live_columns: Index type → the columns that live definitions ask for.
        grace_seconds: For entries that no live definition uses, instead of the settings' own;
            what a running build may be about to publish is not touched by it.

    Raises:
        PermissionDenied: no write access below ``.hoodie/.index``.
    """
    sweep = _Sweep(table, live_columns, settings, grace_seconds)
    removals = tuple(sweep.removals())
    if dry_run:
        return Cleaning(removals)
    # Manifests first: an entry is gone before its data is.
    ordered = sorted(removals, key=lambda removal: not removal.path.endswith(".json"))
    table.storage.delete([removal.path for removal in ordered])
    table.storage.delete_unfinished(INDEX_ROOT, before=sweep.grace_ends)
    folders = table.storage.delete_empty_folders(INDEX_ROOT)
    if not table.storage.is_local:
        purge_copies(table.storage, settings.cache_folder, keep=sweep.serving_sha256)
    for removal in removals:
        log.info("Removed %s: %s.", removal.path, removal.reason)
    return Cleaning(removals, folders)


class _Sweep:
    def __init__(
        self,
        table: HudiTable,
        live_columns: Mapping[str, Collection[str]],
        settings: Settings,
        grace_seconds: float | None,
    ) -> None:
        self._table = table
        self._storage = table.storage
        self._live_columns = live_columns
        self._settings = settings
        grace = settings.clean.grace_seconds
        self.grace_ends = time() - grace
        self._unused_since = time() - (grace if grace_seconds is None else grace_seconds)
        self._paths: set[str] = set()
        self.serving_sha256: set[str] = set()

    def removals(self) -> Iterator[Removal]:
        """Everything that goes. Entries are listed before base files: an entry is younger than its
        base file, so no listed entry can miss a base file that is there."""
        listings = {name: EntryListing(self._storage, name) for name in self._index_types()}
        base_files = list_data_files(self._storage).base_files()
        self._paths = {base_file.path for base_file in base_files}
        instants = {instant.requested for instant in self._table.completed_instants()}
        for name, listing in listings.items():
            expected = {entry_folder(name, base_file): base_file for base_file in base_files}
            for folder in listing.folders():
                files = listing.files(folder)
                base_file = expected.get(folder)
                if base_file is None:
                    yield from _all(files, "its base file is gone")
                elif self._settings.clean.retention == "instant" and (
                    base_file.instant not in instants
                ):
                    yield from _all(files, "its instant has left the active timeline")
                else:
                    yield from self._within(listing, folder, name)
        records = BuildRecords(
            self._storage, stale_seconds=self._settings.build.stale_seconds
        ).ended_before(time() - _RECORDS_KEPT_SECONDS)
        yield from (Removal(path, 0, "the build is long over") for path in records)

    def _index_types(self) -> list[str]:
        folders = (path.rsplit("/", 1)[1] for path in self._storage.folders(INDEX_ROOT))
        return sorted(name for name in folders if not name.startswith("_"))

    def _within(self, listing: EntryListing, folder: str, name: str) -> Iterator[Removal]:
        """What goes from the folder of an entry whose base file lives."""
        files = listing.files(folder)
        try:
            manifest = listing.newest_valid(folder)
        except NewerFormat:
            return  # another release's to judge
        except EntryInvalid:
            yield from _older(files, self.grace_ends, "no valid manifest names it")
            return
        if _is_of_newer_version(manifest, name):
            return
        live = self._live_columns.get(name, ())
        if manifest.base_file.path not in self._paths:
            yield from self._published(listing, folder, time(), "its base file is gone")
        elif not any(column.name in live for column in manifest.columns):
            yield from self._published(listing, folder, self._unused_since, "no live index uses it")
        else:
            yield from self._superseded(listing, folder, manifest)

    def _published(
        self, listing: EntryListing, folder: str, moment: float, reason: str
    ) -> Iterator[Removal]:
        """Every generation published by that moment. Data files without a manifest are left for
        the grace period: a build may be about to publish them."""
        published = listing.published(folder)
        files = listing.files(folder)
        yield from _older((f for f in files if f.path in published), moment, reason)
        yield from _older((f for f in files if f.path not in published), self.grace_ends, reason)

    def _superseded(
        self, listing: EntryListing, folder: str, manifest: Manifest
    ) -> Iterator[Removal]:
        self.serving_sha256.add(manifest.data.sha256)
        if any(number > manifest.generation for number in listing.generations(folder)):
            return  # damaged: nothing here is surely superfluous
        newest = f"{folder}/{document_name(MANIFEST_STEM, manifest.generation)}"
        serving = {newest, f"{folder}/{manifest.data.name}"}
        files = listing.files(folder)
        # Superseded when its successor was published, however old it was by then.
        if all(file.modified <= self.grace_ends for file in files if file.path in serving):
            others = [file for file in files if file.path not in serving]
            yield from _older(others, self.grace_ends, "a newer generation serves")


def _is_of_newer_version(manifest: Manifest, name: str) -> bool:
    """Whether a newer release of the index type wrote the entry; one that is not installed here
    cannot tell."""
    try:
        return manifest.index_type_version > index_type(name).version
    except IndexTypeUnknown:
        return False


def _older(files: Iterable[StoredFile], moment: float, reason: str) -> Iterator[Removal]:
    return (Removal(file.path, file.size, reason) for file in files if file.modified <= moment)


def _all(files: Iterable[StoredFile], reason: str) -> Iterator[Removal]:
    return (Removal(file.path, file.size, reason) for file in files)
