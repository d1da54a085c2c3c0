"""Open index readers, kept between queries: opening costs more than a look-up."""

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock

from hudi_index_service.config import Settings
from hudi_index_service.index.contract import IndexReader
from hudi_index_service.index.local_copy import packed_index
from hudi_index_service.index.manifest import PARQUET_METADATA
from hudi_index_service.index.packed_file import read_member
from hudi_index_service.optimizer.plan import ServingEntry
from hudi_index_service.storage import Storage


@dataclass(slots=True)
class OpenEntry:
    """An entry opened for reading.

    Attributes:
        reader: Answers predicate leaves.
        parquet_metadata: The base file's stripped footer with its offset index.
    """

    reader: IndexReader
    parquet_metadata: bytes
    users: int = 0


class ReaderPool:
    """Open entries of one table, least recently used first out; one in use is never closed.

    Args:
        capacity: Entries kept open while nobody uses them.
    """

    def __init__(self, storage: Storage, settings: Settings, *, capacity: int = 64) -> None:
        self._storage = storage
        self._settings = settings
        self._capacity = capacity
        self._open: OrderedDict[str, OpenEntry] = OrderedDict()
        self._lock = Lock()

    @contextmanager
    def lease(self, serving: ServingEntry) -> Iterator[OpenEntry]:
        """The entry, open for the length of the block.

        Raises:
            EntryInvalid: the entry is missing or damaged.
            NativeModuleMissing: what the index type runs on is not installed.
        """
        # The same entry is another one to a query that may use other columns of it.
        key = f"{serving.entry.data_path}?{','.join(c.name for c in serving.columns)}"
        opened = self._take(key) or self._add(key, self._opened(serving))
        try:
            yield opened
        finally:
            self._give_back(opened)

    def _opened(self, serving: ServingEntry) -> OpenEntry:
        with packed_index(self._storage, serving.entry, self._settings) as index:
            metadata = read_member(index, PARQUET_METADATA)
            return OpenEntry(serving.index_type.open(index, serving.columns), metadata)

    def _take(self, key: str) -> OpenEntry | None:
        with self._lock:
            opened = self._open.get(key)
            if opened is not None:
                self._open.move_to_end(key)
                opened.users += 1
            return opened

    def _add(self, key: str, fresh: OpenEntry) -> OpenEntry:
        with self._lock:
            opened = self._open.setdefault(key, fresh)
            opened.users += 1
        if opened is not fresh:  # another thread was faster
            fresh.reader.close()
        return opened

    def _give_back(self, opened: OpenEntry) -> None:
        closing: list[OpenEntry] = []
        with self._lock:
            opened.users -= 1
            for key in list(self._open):
                if len(self._open) <= self._capacity:
                    break
                if self._open[key].users == 0:
                    closing.append(self._open.pop(key))
        for each in closing:
            each.reader.close()

    def close(self) -> None:
        """Closes everything that nobody uses."""
        with self._lock:
            idle = [key for key, each in self._open.items() if each.users == 0]
            closing = [self._open.pop(key) for key in idle]
        for each in closing:
            each.reader.close()
