"""Reads a table's index folder for a query: the live definitions, and one listing of the entries
per index type."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from hudi_index_service.errors import (
    IndexServiceError,
    PermissionDenied,
    SnapshotChanged,
    StorageFailed,
)
from hudi_index_service.index.entries.entry import EntryListing
from hudi_index_service.metadata.definitions import IndexDefinition
from hudi_index_service.storage.store import Storage

log = logging.getLogger(__name__)

Listings = Mapping[str, EntryListing | str]
"""Index type → its entries, or why they cannot be listed."""


@dataclass(frozen=True, slots=True)
class IndexFolder:
    """The index folder at one moment.

    Attributes:
        definitions: The live definitions.
        listings: The entries of every index type of the definitions.
    """

    definitions: tuple[IndexDefinition, ...] = ()
    listings: Listings = field(default_factory=dict)


class IndexFolderReader:
    """Reads the index folder of one table. Users who may read the table but not this folder still
    get correct answers, by a scan.

    Args:
        definitions: Lists the live definitions.
    """

    def __init__(
        self, storage: Storage, definitions: Callable[[], Sequence[IndexDefinition]]
    ) -> None:
        self._storage = storage
        self._definitions = definitions
        self._last_index_types: frozenset[str] = frozenset()

    def look(self) -> IndexFolder:
        """The folder as it is now. From a remote store, the definitions and the entries of the last
        known index types are listed in parallel."""
        if self._storage.is_local:
            definitions, listings = self._live(), {}
        else:
            last_types = sorted(self._last_index_types)
            with ThreadPoolExecutor(1 + len(last_types), "index-list") as threads:
                live = threads.submit(self._live)
                listings = dict(
                    zip(last_types, threads.map(self._listing, last_types), strict=True)
                )
                definitions = live.result()
        index_types = frozenset(_index_types(definitions))
        for name in index_types - listings.keys():
            listings[name] = self._listing(name)
        self._last_index_types = index_types
        return IndexFolder(definitions, {name: listings[name] for name in sorted(index_types)})

    def _live(self) -> tuple[IndexDefinition, ...]:
        try:
            return tuple(self._definitions())
        except (PermissionDenied, SnapshotChanged, StorageFailed) as error:
            log.warning("%s is read without index: %s", self._storage.uri, error)
            return ()

    def _listing(self, name: str) -> EntryListing | str:
        try:
            return EntryListing(self._storage, name)
        except (PermissionDenied, StorageFailed) as error:
            log.warning("The table is scanned: %s", error)
            return _sentence(error)


def _index_types(definitions: Iterable[IndexDefinition]) -> set[str]:
    return {name for definition in definitions for name in definition.index_types}


def _sentence(error: IndexServiceError) -> str:
    return error.message.rstrip(".")
