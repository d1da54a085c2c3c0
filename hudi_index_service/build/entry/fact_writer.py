"""Writes what the tasks of a process state of their base files, many base files to a segment."""

import logging
from collections.abc import Sequence
from threading import Lock

from hudi_index_service.errors import PermissionDenied, StorageFailed
from hudi_index_service.index.metadata.entry import EntryListing
from hudi_index_service.index.metadata.folders import entry_folder_at
from hudi_index_service.index.metadata.segments.segment import Facts, merged
from hudi_index_service.index.metadata.segments.store import SegmentStore
from hudi_index_service.storage.store import Storage

log = logging.getLogger(__name__)

_MOST_FILES = 32
_MOST_PAIRS = 2**21
"""Pairs that wait to be written, 24 MB."""


class FactWriter:
    """Collects the facts of base files whose entries are built, and writes them to segments. As a
    context manager, it writes the rest at its end. Safe to use from several threads.

    Queries do not need segments, so a failure is only logged.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._waiting: dict[tuple[str, str], _Waiting] = {}

    def __enter__(self) -> "FactWriter":
        return self

    def __exit__(self, *_: object) -> None:
        while self._waiting:
            self._waiting.popitem()[1].write()

    def add(self, storage: Storage, index_type: str, facts: Facts) -> None:
        """Adds the facts of a base file whose entry is published."""
        key = storage.uri, index_type
        with self._lock:
            waiting = self._waiting.setdefault(key, _Waiting(storage, index_type))
            waiting.add(facts)
            if not waiting.is_full:
                return
            del self._waiting[key]
        waiting.write()


class _Waiting:
    def __init__(self, storage: Storage, index_type: str) -> None:
        self._storage = storage
        self._index_type = index_type
        self._facts: list[Facts] = []
        self._pairs = 0

    def add(self, facts: Facts) -> None:
        self._facts.append(facts)
        self._pairs += sum(len(pairs.keys) for pairs in facts.pairs.values())

    @property
    def is_full(self) -> bool:
        return len(self._facts) >= _MOST_FILES or self._pairs >= _MOST_PAIRS

    def write(self) -> None:
        facts = merged(self._facts)
        paths = facts.files["path"].to_pylist()
        try:
            store = SegmentStore(self._storage, self._index_type)
            store.add(facts)
            # A cleaner that removed an entry while its facts waited did not see this segment.
            gone = set(paths) - self._with_entry(paths)
            if gone:
                store.forget(lambda path: path not in gone, lambda column: True)
        except (PermissionDenied, StorageFailed) as error:
            log.warning("No segment was written for %s and others: %s", paths[0], error)

    def _with_entry(self, paths: Sequence[str]) -> set[str]:
        folders = {path: entry_folder_at(self._index_type, path) for path in paths}
        only = [folder for folder in folders.values() if folder is not None]
        listing = EntryListing(self._storage, self._index_type, only=only)
        return {path for path, folder in folders.items() if folder and listing.generations(folder)}
