"""Reads a table's index folder for a query: the live definitions, the segments, and then the
entries of the base files that segments do not exclude."""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from types import MappingProxyType

from hudi_index_service.errors import (
    IndexTypeUnknown,
    PermissionDenied,
    SnapshotChanged,
    StorageFailed,
)
from hudi_index_service.hudi.snapshot import BaseFile
from hudi_index_service.index.factory import index_type
from hudi_index_service.index.metadata.definitions import Definitions, IndexDefinition
from hudi_index_service.index.metadata.entry import (
    EntryListing,
    StatedGeneration,
    is_manifest_cached,
)
from hudi_index_service.index.metadata.manifest import entry_folder
from hudi_index_service.index.metadata.segments.segment_file import SegmentFile, stated_generations
from hudi_index_service.index.metadata.segments.store import OpenSegments, SegmentStore
from hudi_index_service.storage.store import Storage

log = logging.getLogger(__name__)

Listings = Mapping[str, EntryListing | str]
"""Index type → its entries, or why they cannot be listed."""

_ONE_BY_ONE = 16
"""Base files up to which each one's entry is looked for by itself."""

_SHARE_ONE_BY_ONE = 8
"""The same, for many: if all entries of the segments are so many times as many."""


@dataclass(frozen=True, slots=True)
class IndexFolder:
    """The index folder at one moment.

    Attributes:
        definitions: The live definitions; none if the table's indexes are disabled.
        segments: Index type → the segments of its entries.
        listed: Index type → all its entries, as far as they were listed already.
        storage: Where the entries are listed; None if there is no index.
        disabled: Whether the table's indexes are disabled; see `DefinitionStore.disable`.
    """

    definitions: tuple[IndexDefinition, ...] = ()
    segments: Mapping[str, tuple[SegmentFile, ...]] = field(default_factory=dict)
    listed: Listings = field(default_factory=dict)
    storage: Storage | None = field(default=None, repr=False)
    disabled: bool = False

    @property
    def index_types(self) -> list[str]:
        """The index types of the definitions, sorted."""
        return sorted(_index_types(self.definitions))

    def on(self, columns: Collection[str]) -> list[IndexDefinition]:
        """The definitions with one of a predicate's columns."""
        return [
            each
            for each in self.definitions
            if any(column.name in columns for column in each.columns)
        ]

    def start_runtimes(self, columns: Collection[str]) -> None:
        """Starts the runtimes of the index types that hold one of a predicate's columns, so that
        they start while a remote store answers. A local table's plan takes no time to wait for, and
        needs the cores itself."""
        for name in _index_types(self.on(columns)):
            with suppress(IndexTypeUnknown):  # coverage reports it
                index_type(name).start_runtime()

    def listings(self, base_files: Sequence[BaseFile]) -> Listings:
        """The entries of each index type, as of now; at least those of these base files."""
        return {name: self._listing(name, base_files) for name in self.index_types}

    def _listing(self, name: str, base_files: Sequence[BaseFile]) -> EntryListing | str:
        if name in self.listed:
            return self.listed[name]
        storage = self.storage
        assert storage is not None, "there are definitions"
        segments = self.segments.get(name, ())
        known = sum(each.document.files for each in segments)
        most = max(_ONE_BY_ONE, known // _SHARE_ONE_BY_ONE)
        folders = {each.path: entry_folder(name, each) for each in base_files}
        generations = stated_generations(segments, base_files)
        stated = {folders.pop(path): each for path, each in generations.items()}
        # Those whose manifests need no request to a remote store.
        at_hand = sum(
            storage.is_local or is_manifest_cached(storage, folder, each)
            for folder, each in stated.items()
        )
        if len(base_files) - at_hand > most:
            return _listed(storage, name)
        return _listed(storage, name, list(folders.values()), stated)


class IndexFolderReader:
    """Reads the index folder of one table. Users who may read the table but not this folder still
    get correct answers, by a scan.

    Args:
        definitions: Reads the definitions.
    """

    def __init__(self, storage: Storage, definitions: Callable[[], Definitions]) -> None:
        self._storage = storage
        self._definitions = definitions
        self._last_index_types: frozenset[str] = frozenset()
        self._segments: dict[str, OpenSegments] = {}

    def look(self) -> IndexFolder:
        """The folder as it is now: definitions and segments. From a remote store, the definitions,
        and the segments of the last known index types, are listed in parallel; entries too, if no
        segment states their generations."""
        if self._storage.is_local:
            definitions, _, disabled = self._read()
            if disabled:
                return IndexFolder(disabled=True)
            segments = {name: self._opened(name) for name in sorted(_index_types(definitions))}
            return IndexFolder(definitions, segments, {}, self._storage)
        last_types = sorted(self._last_index_types)
        at_once = [name for name in last_types if not self._segments[name].last]
        with ThreadPoolExecutor(1 + len(last_types) + len(at_once), "index-list") as threads:
            read = threads.submit(self._read)
            entries = {name: threads.submit(_listed, self._storage, name) for name in at_once}
            segments = dict(zip(last_types, threads.map(self._opened, last_types), strict=True))
            definitions, _, disabled = read.result()
            listed = {name: future.result() for name, future in entries.items()}
        if disabled:
            return IndexFolder(disabled=True)
        index_types = frozenset(_index_types(definitions))
        for name in sorted(index_types - segments.keys()):
            segments[name] = self._opened(name)
        self._last_index_types = index_types
        return IndexFolder(definitions, segments, listed, self._storage)

    def _read(self) -> Definitions:
        try:
            return self._definitions()
        except (PermissionDenied, SnapshotChanged, StorageFailed) as error:
            log.warning("%s is read without index: %s", self._storage.uri, error)
            return Definitions((), complete=False)

    def _opened(self, name: str) -> tuple[SegmentFile, ...]:
        """The segments as listed now; those that were open stay so."""
        if name not in self._segments:
            self._segments[name] = OpenSegments(SegmentStore(self._storage, name))
        return self._segments[name].now()


def _index_types(definitions: Iterable[IndexDefinition]) -> set[str]:
    return {name for definition in definitions for name in definition.index_types}


def _listed(
    storage: Storage,
    name: str,
    only: Sequence[str] | None = None,
    stated: Mapping[str, StatedGeneration] = MappingProxyType({}),
) -> EntryListing | str:
    """The entries of an index type, or why they cannot be listed; see `EntryListing`."""
    try:
        return EntryListing(storage, name, only=only, stated=stated)
    except (PermissionDenied, StorageFailed) as error:
        log.warning("The table is scanned: %s", error)
        return error.message.rstrip(".")
