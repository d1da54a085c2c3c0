"""Entries on disk: which one serves a base file."""

import logging
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from types import MappingProxyType
from typing import NamedTuple

from hudi_index_service.errors import EntryInvalid, EntryUnusable
from hudi_index_service.hudi.snapshot import BaseFile
from hudi_index_service.index.contract import IndexType
from hudi_index_service.index.metadata.documents import (
    UNREADABLE,
    DocumentCache,
    NewerFormat,
    document_name,
    numbers_of,
)
from hudi_index_service.index.metadata.manifest import (
    Layout,
    Manifest,
    entry_folder,
    index_type_folder,
)
from hudi_index_service.index.metadata.summary import SummaryStore
from hudi_index_service.storage.store import Storage, StoredFile

log = logging.getLogger(__name__)

MANIFEST_STEM = "manifest"
DATA_SUFFIX = ".pack"

_FETCHED_AT_ONCE = 32  # concurrent requests for manifests, which are small and cost only latency

known_manifests = DocumentCache(Manifest)
"""The valid manifests that this process has read, or written."""


class StatedGeneration(NamedTuple):
    """The generation of an entry that a segment states.

    A number may be used again after all generations were removed. Then the segment was rewritten,
    so the number together with the segment's name is not.

    Attributes:
        number: The highest generation that any segment states.
        segment: The name of the segment.
    """

    number: int
    segment: str


@dataclass(frozen=True)
class Entry:
    """A valid entry: its folder, and the manifest that serves.

    Attributes:
        listed: The packed data file as listed, or found without a listing on the local disk; None
            if the listing did not show it.
        stated: The statement by which the entry was found without a listing.
    """

    folder: str
    manifest: Manifest
    listed: StoredFile | None = None
    stated: StatedGeneration | None = None

    @cached_property
    def data_path(self) -> str:
        """Path of the packed data file, relative to the table."""
        return f"{self.folder}/{self.manifest.data.name}"


class EntryMissing(EntryInvalid):
    """No entry has been built yet; nothing is wrong."""


class EntryListing:
    """All entries of one index type, as of one listing, or some. Manifests are read on demand and
    cached for later listings of this process.

    Attributes:
        index_type: The name of the index type.
        is_remote: Whether the entries are in a remote store.
        is_whole: Whether all entries were listed.
        misses_data: Whether a data file was found to be gone, or changed.

    Args:
        storage: The table's storage.
        fresh: Whether to read every manifest from the store, even cached ones.
        only: The folders of the only entries to list; None to list all.
        stated: More folders, each with the generation of its entry that segments state. They are
            not listed unless that generation is gone, or `list_stated` asks for it.
    """

    def __init__(
        self,
        storage: Storage,
        index_type: str,
        *,
        fresh: bool = False,
        only: Sequence[str] | None = None,
        stated: Mapping[str, StatedGeneration] = MappingProxyType({}),
    ) -> None:
        self._storage = storage
        self.index_type = index_type
        self.is_remote = not storage.is_local
        self._fresh = fresh
        self.is_whole = only is None
        self.misses_data = False
        if only is None:
            files = storage.files(index_type_folder(index_type))
        else:
            files = _files_in(storage, only)
        self._files = by_folder(files)
        self._stated = stated

    def folders(self) -> list[str]:
        """The folders that hold files of entries, sorted."""
        return sorted(self._files)

    def files(self, folder: str) -> list[StoredFile]:
        """The listed files in an entry's folder; empty if there is none."""
        return self._files.get(folder, [])

    def state(self, folder: str) -> StatedGeneration | list[StoredFile]:
        """What was known of an entry before any manifest was read: the stated generation, or the
        listed files. If it is the same in a later listing, the same entry serves."""
        return self._stated.get(folder) or self.files(folder)

    def file(self, path: str) -> StoredFile | None:
        """The file at that path; None if the listing does not show it."""
        files = self.files(path.rsplit("/", 1)[0])
        return next((file for file in files if file.path == path), None)

    def shows(self, path: str) -> bool:
        """Whether the listing shows that file."""
        return self.file(path) is not None

    def generations(self, folder: str) -> list[int]:
        """The numbers of the folder's manifests, valid or not, highest first."""
        names = (file.path.rsplit("/", 1)[1] for file in self.files(folder))
        return numbers_of(MANIFEST_STEM, names)

    def newest_valid(self, folder: str) -> Manifest:
        """The valid manifest with the highest number.

        Raises:
            NewerFormat: a manifest of a newer major format has a higher number: the entry belongs
                to another release.
            EntryInvalid: no manifest is valid; the message says why the highest is not.
        """
        reason: EntryInvalid | None = None
        for number in self.generations(folder):
            try:
                manifest = self._manifest(folder, number)
                self._check_data(folder, manifest)
                return manifest
            except FileNotFoundError:  # cleaned since the listing
                continue
            except NewerFormat:
                raise
            except EntryInvalid as error:
                reason = reason or error
        raise reason or EntryInvalid(f"{folder} holds no manifest.")

    def published(self, folder: str) -> frozenset[str]:
        """The folder's manifests, valid or not, and the data files that valid ones name."""
        paths: set[str] = set()
        for number in self.generations(folder):
            path = manifest_path(folder, number)
            paths.add(path)
            with suppress(EntryInvalid, FileNotFoundError):
                manifest = self._manifest(folder, number)
                paths.add(f"{folder}/{manifest.data.name}")
        return frozenset(paths)

    def _manifest(self, folder: str, number: int) -> Manifest:
        """A listed manifest, from the cache or the store: a valid manifest stays valid.

        Raises:
            EntryInvalid: it is damaged, of a newer format, or stored under the wrong number.
            FileNotFoundError: it was deleted.
        """
        path = manifest_path(folder, number)
        load = partial(self._storage.read, path)
        file = None if self._fresh else self.file(path)
        if file is None:
            manifest = Manifest.from_json(load(), source=path)
        else:
            manifest = known_manifests.get((self._storage.uri, file), load, source=path)
        return _numbered(manifest, number, path)

    def _check_data(self, folder: str, manifest: Manifest) -> None:
        """Raises EntryInvalid if the data file is missing or has the wrong length. A listed file
        needs no request."""
        path = f"{folder}/{manifest.data.name}"
        try:
            file = self.file(path)  # it may have been written after the listing
            size = self._storage.size(path) if file is None else file.size
        except FileNotFoundError as error:
            raise EntryInvalid(f"{path} is missing.") from error
        if size != manifest.data.length:
            raise EntryInvalid(f"{path} has {size} bytes, not {manifest.data.length}.")

    def fetch(self, base_files: Iterable[BaseFile]) -> None:
        """Reads the manifests that `find` will need from a remote store, many at once, and those of
        one instant from its summary. Errors are ignored: `find` meets and reports them again."""
        if not self.is_remote:
            return
        folders = [entry_folder(self.index_type, each) for each in base_files]
        stated = {each: self._stated[each] for each in folders if self._is_unlisted(each)}
        unread = [
            folder
            for folder, each in stated.items()
            if not is_manifest_cached(self._storage, folder, each)
        ]
        _at_once(self._stated_manifest, unread)  # lists folders in which they are gone
        unknown: dict[str, StoredFile] = {}
        for folder in folders:
            for number in self.generations(folder)[:1]:
                listed = self.file(manifest_path(folder, number))
                if listed is not None and not known_manifests.knows((self._storage.uri, listed)):
                    unknown[listed.path] = listed
        for path, manifest in SummaryStore(self._storage, self.index_type).manifests(unknown):
            # It is the listed one if the listing shows its data file, whose name is never reused.
            data = self.file(f"{path.rsplit('/', 1)[0]}/{manifest.data.name}")
            if data is not None and data.size == manifest.data.length:
                file = unknown.pop(path)
                known_manifests.put((self._storage.uri, file), manifest, file.size)
        _at_once(self._fetch, list(unknown))

    def _stated_manifest(self, folder: str) -> Manifest | None:
        """The stated generation of an entry; None if it is gone or damaged. Then the folder is
        listed, as if nothing were stated.

        Raises:
            PermissionDenied, StorageFailed: the folder cannot be listed.
        """
        stated = self._stated[folder]
        key, path = _key(self._storage, folder, stated), manifest_path(folder, stated.number)
        try:
            manifest = known_manifests.get(key, partial(self._storage.read, path), source=path)
            return _numbered(manifest, stated.number, path)
        except UNREADABLE as error:
            log.info("%s is listed: %s", folder, error)
        self._list(folder)
        return None

    def still_serves(self, entry: Entry) -> bool:
        """Whether an entry that was found by what segments state needs not be looked for again: its
        manifest is cached, and on the local disk its data file is as it was."""
        folder, stated = entry.folder, entry.stated
        if stated is None or not is_manifest_cached(self._storage, folder, stated):
            return False
        if self.is_remote:
            return True
        try:
            return self._data_file(folder, entry.manifest) == entry.listed
        except EntryUnusable:  # `find` meets and reports it again
            return False

    def _data_file(self, folder: str, manifest: Manifest) -> StoredFile | None:
        """The data file of a stated generation on the local disk; None if it is gone, or has
        another length. To ask a remote store would take a request for each entry: there, opening
        the entry finds out."""
        try:
            file = self._storage.status(f"{folder}/{manifest.data.name}")
        except FileNotFoundError:
            file = None
        if file is not None and file.size == manifest.data.length:
            return file
        self.misses_data = True
        return None

    def list_stated(self, folders: Iterable[str]) -> None:
        """Lists those folders of which only the stated generation was looked for, many at once:
        another generation of the entry may be there. Errors are ignored: without a listing, the
        stated generation serves."""
        _at_once(self._list, list(filter(self._is_unlisted, folders)))

    def _list(self, folder: str) -> None:
        self._files[folder] = self._storage.files(folder)

    def _is_unlisted(self, folder: str) -> bool:
        return folder in self._stated and folder not in self._files

    def _fetch(self, path: str) -> None:
        folder, name = path.rsplit("/", 1)
        self._manifest(folder, numbers_of(MANIFEST_STEM, [name])[0])

    def find(self, base_file: BaseFile) -> Entry:
        """The entry that serves the base file.

        Raises:
            EntryMissing: no entry was built.
            EntryInvalid: the entry is damaged, of a newer format, or names another file.
        """
        folder = entry_folder(self.index_type, base_file)
        entry = self._stated_entry(folder) or self._listed_entry(folder, base_file)
        indexed_file = entry.manifest.base_file
        if (indexed_file.path, indexed_file.length) != (base_file.path, base_file.size):
            raise EntryInvalid(
                f"{folder} was built from {indexed_file.path} ({indexed_file.length} bytes), "
                f"not from {base_file.path} ({base_file.size} bytes)."
            )
        if entry.manifest.index_type != self.index_type:
            raise EntryInvalid(
                f"{folder} holds an entry of index type {entry.manifest.index_type}, not "
                f"{self.index_type}."
            )
        return entry

    def _stated_entry(self, folder: str) -> Entry | None:
        """The entry with the stated generation; None if none is stated, or it is gone: then the
        folder is listed."""
        manifest = self._stated_manifest(folder) if self._is_unlisted(folder) else None
        if manifest is None:
            return None
        data = None if self.is_remote else self._data_file(folder, manifest)
        if data is None and not self.is_remote:
            known_manifests.drop(_key(self._storage, folder, self._stated[folder]))
            self._list(folder)
            return None
        return Entry(folder, manifest, data, self._stated[folder])

    def _listed_entry(self, folder: str, base_file: BaseFile) -> Entry:
        """The entry with the highest valid generation in a listed folder."""
        if not self.files(folder):
            raise EntryMissing(f"{base_file.path} has no {self.index_type} entry.")
        manifest = self.newest_valid(folder)
        return Entry(folder, manifest, self.file(f"{folder}/{manifest.data.name}"))


def present_manifest(
    listing: EntryListing, base_file: BaseFile, kind: IndexType, *, damaged: int = 0
) -> Manifest | None:
    """The manifest that a build finds for a base file, even one of an older layout; None if none is
    valid.

    Args:
        damaged: The highest generation known to be damaged: up to it, manifests count as missing.

    Raises:
        NewerFormat: a newer release wrote the entry, and serves it.
    """
    try:
        manifest = listing.find(base_file).manifest
    except NewerFormat:
        raise
    except EntryInvalid:
        return None
    refuse_newer(manifest, kind)
    return manifest if manifest.generation > damaged else None


def refuse_newer(manifest: Manifest, kind: IndexType) -> None:
    """Raises NewerFormat if the entry has a newer layout of the index type than this release's."""
    if manifest.layout(kind) is Layout.NEWER:
        raise NewerFormat(
            f"The {kind.name} entry of {manifest.base_file.path} has version "
            f"{manifest.index_type_version}; this release writes version {kind.version}."
        )


def _numbered(manifest: Manifest, number: int, path: str) -> Manifest:
    if manifest.generation != number:
        raise EntryInvalid(
            f"{path} contains generation {manifest.generation}, not {number} as its name says."
        )
    return manifest


def is_manifest_cached(storage: Storage, folder: str, stated: StatedGeneration) -> bool:
    """Whether the manifest of a stated generation needs no request."""
    return known_manifests.knows(_key(storage, folder, stated))


def forget_stated(storage: Storage, entry: Entry) -> None:
    """Drops the cached manifest of an entry that was found by what segments state, and turned out
    to be missing or damaged: another one may have taken its place."""
    if entry.stated is not None:
        known_manifests.drop(_key(storage, entry.folder, entry.stated))


def _key(storage: Storage, folder: str, stated: StatedGeneration) -> Hashable:
    """The key of a cached manifest that no listing has shown. On the local disk the data file is
    looked at, whose name is never used again, so the number is enough."""
    return storage.uri, folder, stated.number if storage.is_local else stated


def _at_once(work: Callable[[str], object], paths: Sequence[str]) -> None:
    """Does work on many paths of a remote store at once. Errors are ignored: `EntryListing.find`
    meets and reports them again."""
    if not paths:
        return
    with ThreadPoolExecutor(min(len(paths), _FETCHED_AT_ONCE), "manifest") as threads:
        for future in [threads.submit(work, each) for each in paths]:
            with suppress(*UNREADABLE):
                future.result()


def manifest_path(folder: str, generation: int) -> str:
    """The path of a manifest in an entry's folder."""
    return f"{folder}/{document_name(MANIFEST_STEM, generation)}"


def _files_in(storage: Storage, folders: Sequence[str]) -> list[StoredFile]:
    """The files of some entries, from a remote store many folders at once."""
    if storage.is_local or len(folders) < 2:
        return [file for folder in folders for file in storage.files(folder)]
    with ThreadPoolExecutor(min(len(folders), _FETCHED_AT_ONCE), "entry-list") as threads:
        return [file for files in threads.map(storage.files, folders) for file in files]


def by_folder(files: Iterable[StoredFile]) -> dict[str, list[StoredFile]]:
    """Folder → the files directly in it."""
    folders: defaultdict[str, list[StoredFile]] = defaultdict(list)
    for file in files:
        folders[file.path.rsplit("/", 1)[0]].append(file)
    return dict(folders)
