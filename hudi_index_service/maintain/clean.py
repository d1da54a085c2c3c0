"""Cleaning: removes the files below ``.hoodie/.index`` that are no longer used.

An entry is removed when its base file is gone, or already when its instant has expired
(`index/metadata/retention.py`). Superseded generations, files of dead builds, and entries that no
live definition uses are removed after a grace period, since a reader or a builder may be using
them. Copies in this user's cache are removed with their originals, and so are temporary folders of
this user's killed builds on this machine. A summary is removed with any of its manifests.
"""

import logging
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from itertools import chain
from math import inf
from time import time

from hudi_index_service.config import Settings
from hudi_index_service.errors import ConfigInvalid, EntryInvalid, IndexTypeUnknown
from hudi_index_service.hudi.table import HudiTable
from hudi_index_service.index.factory import index_type
from hudi_index_service.index.files.local_copy import CachedCopy, copies_but, discard
from hudi_index_service.index.metadata.build_records import BuildRecords
from hudi_index_service.index.metadata.definitions import DefinitionStore
from hudi_index_service.index.metadata.documents import INDEX_ROOT, SERVICE_FOLDER, NewerFormat
from hudi_index_service.index.metadata.entry import EntryListing, by_folder, manifest_path
from hudi_index_service.index.metadata.manifest import (
    Layout,
    Manifest,
    entry_folder_at,
    index_type_folder,
)
from hudi_index_service.index.metadata.retention import Elsewhere, Retention, stored_index_types
from hudi_index_service.index.metadata.segments.segment import ColumnKey
from hudi_index_service.index.metadata.segments.store import SEGMENTS_FOLDER, SegmentStore
from hudi_index_service.index.metadata.summary import stored_summaries
from hudi_index_service.storage.store import Storage, StoredFile
from hudi_index_service.storage.temporary_folder import remove_abandoned

log = logging.getLogger(__name__)

_RECORDS_KEPT_SECONDS = 7 * 24 * 3600.0

# The name of a data file, a part of one or a part's description, complete or not, has its build.
_MADE_BY = re.compile(r"data-(?P<build>\d+)-.+")


@dataclass(frozen=True, slots=True)
class Removal:
    """A file to remove, and the reason."""

    path: str
    size: int
    reason: str


@dataclass(frozen=True, slots=True)
class Cleaning:
    """What a clean removed, or (dry run) would remove.

    Attributes:
        removals: Files below ``.hoodie/.index``; paths are relative to the table.
        copies: Files in this user's cache.
        folders: Number of folders that became empty and were removed; object stores have none.
        stored: External data that index types keep for missing data files; the paths are those of
            the data files, the sizes 0.
        unremoved: Files that were not removed because the index type could not remove its external
            data. The next clean tries again.
        rewritten: Segments with facts of what was removed, which were rewritten without them.
    """

    removals: tuple[Removal, ...]
    copies: tuple[CachedCopy, ...] = ()
    folders: int = 0
    stored: tuple[Removal, ...] = ()
    unremoved: tuple[Removal, ...] = ()
    rewritten: tuple[Removal, ...] = ()

    @property
    def bytes(self) -> int:
        """Bytes freed at the table."""
        return sum(removal.size for removal in self.removals)


def clean(
    table: HudiTable,
    settings: Settings,
    *,
    dry_run: bool = False,
    grace_seconds: float | None = None,
) -> Cleaning:
    """Removes what has expired.

    Args:
        dry_run: Report without removing.
        grace_seconds: Grace period of entries and their files; overrides the settings. Files that a
            living build may be about to publish are kept in any case.

    Raises:
        PermissionDenied: no write access below ``.hoodie/.index``.
        ConfigInvalid: `grace_seconds` is not a number from 0 on.
    """
    if not (
        grace_seconds is None or (isinstance(grace_seconds, int | float) and grace_seconds >= 0)
    ):
        raise ConfigInvalid(
            f"grace_seconds={grace_seconds!r} is not a time.",
            remedy="Use a number of seconds from 0 on.",
        )
    storage = table.storage
    sweep = _Sweep(table, settings, grace_seconds)
    removals = tuple(sweep.removals())
    copies: tuple[CachedCopy, ...] = ()
    if not storage.is_local:
        copies = tuple(copies_but(storage, settings.cache_folder, keep=sweep.serving_sha256))
    orphans = tuple(sweep.orphans({removal.path for removal in removals}))
    if dry_run:
        rewritten = sweep.forget_facts(removals, dry_run=True)
        return Cleaning(
            removals, copies, stored=orphans, unremoved=sweep.unlisted, rewritten=rewritten
        )
    failures = sweep.external_storage.delete(
        storage, [each.path for each in removals], [each.path for each in orphans]
    )
    rewritten = sweep.forget_facts()
    folders = storage.delete_empty_folders(INDEX_ROOT)
    remove_abandoned()
    discard(copies)
    removed, stored = (
        tuple(each for each in group if each.path not in failures) for group in (removals, orphans)
    )
    for each in removed:
        log.info("Removed %s: %s.", each.path, each.reason)
    unremoved = (
        replace(each, reason=failures[each.path])
        for each in (*removals, *orphans)
        if each.path in failures
    )
    return Cleaning(removed, copies, folders, stored, (*sweep.unlisted, *unremoved), rewritten)


def _end_of_grace(seconds: float) -> float:
    """The time, in seconds since the epoch, after which changed files are in their grace period;
    without one, none is, even if the store's clock is wrong."""
    return time() - seconds if seconds > 0 else inf


class _Sweep:
    """One listing of everything below ``.hoodie/.index``.

    The order matters. Base files, their instants, records of builds and definitions are all older
    than the entries that depend on them: listing them after the entries misses none. Living builds
    are listed before, because a build may publish and end in the meantime.
    """

    def __init__(self, table: HudiTable, settings: Settings, grace_seconds: float | None) -> None:
        self._storage = table.storage
        self._settings = settings
        configured = settings.clean.grace_seconds
        self._grace = _end_of_grace(configured if grace_seconds is None else grace_seconds)
        self._definitions_grace = _end_of_grace(configured)
        self._records = BuildRecords(self._storage, stale_seconds=settings.build.stale_seconds)
        known_ids, living = self._records.ids(), self._records.living()
        self._unfinished = by_folder(self._storage.unfinished(INDEX_ROOT))
        # Before the entries, whose listing then includes every valid manifest of a summary.
        self._summaries = list(stored_summaries(self._storage))
        # Before the entries, whose listing then includes every data file finished meanwhile.
        self.external_storage = Elsewhere(self._storage.uri, settings)
        used, unused = self._index_types()
        self._external_data, unlisted = self.external_storage.stored(used, unused)
        self.unlisted = tuple(
            Removal(index_type_folder(name), 0, reason) for name, reason in unlisted.items()
        )
        self._listings = [
            EntryListing(self._storage, name) for name in stored_index_types(self._storage)
        ]
        self._retention = Retention(table, settings)
        self._living = living | (self._records.ids() - known_ids)
        self._definitions = DefinitionStore(self._storage).versions()
        self.serving_sha256: set[str] = set()

    def _index_types(self) -> tuple[set[str], set[str]]:
        """The index types of entries and live definitions, and those that only dropped definitions
        have: killed builds may have left external data without any file here."""
        current = [each.current for each in DefinitionStore(self._storage).versions()]
        known = [each for each in current if each is not None]
        live = chain.from_iterable(each.index_types for each in known if not each.dropped)
        used = {*stored_index_types(self._storage), *live}
        return used, {*chain.from_iterable(each.index_types for each in known)} - used

    def forget_facts(
        self, removals: Iterable[Removal] = (), *, dry_run: bool = False
    ) -> tuple[Removal, ...]:
        """Rewrites segments without facts of entries that are gone, or in `removals`, and, after
        their grace period, of columns of no live index. Returns those that had such facts.

        Raises:
            PermissionDenied, StorageFailed: a segment cannot be read or deleted.
        """
        removed = frozenset(removal.path for removal in removals)
        keeps_columns = self._unused_grace == -inf

        def may_be_used(name: str, key: ColumnKey) -> bool:
            return keeps_columns or any(each.may_use(name, key[0]) for each in self._definitions)

        changed: list[StoredFile] = []
        for folder in self._storage.folders(SEGMENTS_FOLDER):
            name = folder.rsplit("/", 1)[1]
            changed += SegmentStore(self._storage, name).forget(
                _has_entry(self._storage, name, removed),
                partial(may_be_used, name),
                dry_run=dry_run,
            )
        return tuple(_removals(changed, "it states facts of entries or columns that are removed"))

    def orphans(self, removed: Collection[str]) -> Iterator[Removal]:
        """External data whose data file neither exists nor can be under construction."""
        for path, moment in self._external_data.items():
            if self._is_listed(path) or path in removed or moment > self._grace:
                continue
            if not self._may_be_under_construction(path):
                yield Removal(path, 0, "its data file is not there")

    def removals(self) -> Iterator[Removal]:
        """Everything to remove. Whatever a manifest or a listing contains, each path is below the
        index's own folder and not behind a symbolic link."""
        links = tuple(f"{link}/" for link in self._storage.linked_folders(INDEX_ROOT))
        for link in links:
            log.warning("%s is a symbolic link: nothing behind it is removed.", link.rstrip("/"))
        removed: set[str] = set()
        for removal in chain(self._candidates(), self._outdated_summaries(removed)):
            is_below = removal.path.startswith(f"{INDEX_ROOT}/")
            if is_below and not removal.path.startswith(links):
                removed.add(removal.path)
                yield removal

    def _candidates(self) -> Iterator[Removal]:
        for listing in self._listings:
            prefix = f"{INDEX_ROOT}/{listing.index_type}/"
            unfinished = {folder for folder in self._unfinished if folder.startswith(prefix)}
            for folder in sorted({*listing.folders(), *unfinished}):
                files = listing.files(folder) + self._unfinished.pop(folder, [])
                reason = self._retention.expired(listing.index_type, folder)
                if reason is not None:
                    yield from _removals(files, reason)
                else:
                    yield from self._entry_removals(listing, folder, files)
        for folder, files in self._unfinished.items():
            # Definitions and records are also written outside builds.
            is_service = f"{folder}/".startswith(f"{SERVICE_FOLDER}/")
            grace = self._definitions_grace if is_service else self._grace
            expired = (file for file in files if file.modified <= grace)
            yield from self._leftovers(expired, "its writer died")
        yield from self._superseded_definitions()
        old_records = self._records.ended_before(time() - _RECORDS_KEPT_SECONDS)
        yield from _removals(old_records, "the build is long over")

    def _entry_removals(
        self, listing: EntryListing, folder: str, files: list[StoredFile]
    ) -> Iterator[Removal]:
        """The files to remove from the folder of an entry that has not expired."""
        try:
            manifest = listing.newest_valid(folder)
        except NewerFormat:
            return  # left to the newer release
        except EntryInvalid:
            yield from self._leftovers(files, "no valid manifest names it")
            return
        with suppress(IndexTypeUnknown):  # it is not installed here
            if manifest.layout(index_type(listing.index_type)) is Layout.NEWER:
                return
        published = listing.published(folder)
        unpublished = [file for file in files if file.path not in published]
        entry_files = [file for file in files if file.path in published]
        if not self._retention.has_base_file(manifest.base_file.path):
            yield from _removals(entry_files, "its base file is gone")
            yield from self._leftovers(unpublished, "no manifest names it")
        elif self._is_unused(manifest, listing.index_type):
            expired = [file for file in entry_files if file.modified <= self._unused_grace]
            yield from _removals(expired, "no live index uses it")
            yield from self._leftovers(unpublished, "no manifest names it")
        else:
            self.serving_sha256.add(manifest.data.sha256)
            above = [n for n in listing.generations(folder) if n > manifest.generation]
            yield from self._superseded(folder, manifest, entry_files, above)
            yield from self._leftovers(unpublished, "no manifest names it")

    def _superseded(
        self, folder: str, manifest: Manifest, entry_files: list[StoredFile], above: Collection[int]
    ) -> Iterator[Removal]:
        """All generations except the serving one. The grace period of an older one starts when its
        successor was published. A generation above is damaged, otherwise it would serve."""
        newest = manifest_path(folder, manifest.generation)
        serving = {newest, f"{folder}/{manifest.data.name}"}
        if any(file.modified > self._grace for file in entry_files if file.path in serving):
            return
        damaged = {manifest_path(folder, number) for number in above}
        for file in entry_files:
            if file.path not in serving and file.modified <= self._grace:
                is_damaged = file.path in damaged
                reason = "it is damaged" if is_damaged else "a newer generation serves"
                yield Removal(file.path, file.size, reason)

    def _leftovers(self, files: Iterable[StoredFile], reason: str) -> Iterator[Removal]:
        """Files of no living build whose grace period is over."""
        for file in files:
            if file.modified <= self._grace and not self._may_be_under_construction(file.path):
                yield Removal(file.path, file.size, reason)

    def _may_be_under_construction(self, path: str) -> bool:
        match = _MADE_BY.fullmatch(path.rsplit("/", 1)[1])
        return bool(self._living) if match is None else match["build"] in self._living

    def _is_unused(self, manifest: Manifest, name: str) -> bool:
        """Whether no live definition has any column of the entry; False if a definition is
        unreadable, since it may have one."""
        if any(versions.current is None for versions in self._definitions):
            return False
        return not any(
            versions.may_use(name, column.name)
            for column in manifest.columns
            for versions in self._definitions
        )

    @cached_property
    def _unused_grace(self) -> float:
        """The end of the grace period of unused entries, which starts when a definition changes."""
        is_over = all(each.newest.modified <= self._grace for each in self._definitions)
        return self._grace if is_over else -inf

    def _outdated_summaries(self, removed: Collection[str]) -> Iterator[Removal]:
        """The summaries with manifests that are gone or in `removed`, and those that no reader
        accepts. Removing a summary is always safe."""
        for file, unused, holds in self._summaries:
            if unused:
                yield Removal(file.path, file.size, unused)
            elif any(path in removed or not self._is_listed(path) for path in holds):
                yield Removal(file.path, file.size, "it contains manifests that are removed")

    def _is_listed(self, path: str) -> bool:
        return any(listing.shows(path) for listing in self._listings)

    def _superseded_definitions(self) -> Iterator[Removal]:
        """Older versions of definitions, which nothing reads. The highest version is kept forever,
        even if it marks the index as dropped, so that no number is used twice."""
        for versions in self._definitions:
            is_over = versions.newest.modified <= self._definitions_grace
            if versions.current is not None and is_over:
                yield from _removals(versions.older, "a newer version of the definition is current")


def _removals(files: Iterable[StoredFile], reason: str) -> Iterator[Removal]:
    return (Removal(file.path, file.size, reason) for file in files)


def _has_entry(storage: Storage, name: str, removed: frozenset[str]) -> Callable[[str], bool]:
    """Whether the base file at a path has an entry now. All entries are listed once; one that is
    not among them may have been published since."""
    listing = EntryListing(storage, name)

    @cache
    def has_entry(path: str) -> bool:
        folder = entry_folder_at(name, path)
        return folder is not None and (
            is_entry(listing.files(folder)) or is_entry(storage.files(folder))
        )

    def is_entry(files: Iterable[StoredFile]) -> bool:
        return any(each.path.endswith(".json") and each.path not in removed for each in files)

    return has_entry
