"""Keeps index readers open between queries, since opening costs more than a look-up."""

import resource
from collections import OrderedDict
from collections.abc import Callable, Iterator, KeysView, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import TypeAlias

import numpy as np
from hudi_index_parquet import Footer, ParquetReadError

from hudi_index_service.config import Settings
from hudi_index_service.errors import EntryInvalid, EntryUnusable
from hudi_index_service.hudi.files.parquet_file import row_source
from hudi_index_service.index.contract import (
    IndexReader,
    ManyReaders,
    PackedIndex,
    Positions,
    Truths,
)
from hudi_index_service.index.files.local_copy import BlockCopy, packed_index, readable_index
from hudi_index_service.index.files.opened_file import OpenedFile, OpenedFiles, count
from hudi_index_service.index.files.stored_values import values_footer
from hudi_index_service.index.metadata.entry import EntryListing, forget_stated
from hudi_index_service.index.metadata.manifest import PARQUET_METADATA, index_type_folder
from hudi_index_service.index.packed_file import read_member
from hudi_index_service.optimizer.serving import ServingEntry
from hudi_index_service.read.base_file.page_bounds import PageBounds
from hudi_index_service.storage.store import Storage

MOST_OPEN = 12_000
"""Each holds about 14 KiB of Java's heap, and one of the 65,530 mappings that Linux allows."""

OTHER_FILES = 224
"""Open files that are left to the rest of the process, and a quarter of all others."""

_FEW = 8  # times as many entries are open

_Key: TypeAlias = tuple[str, tuple[str, ...], tuple[str, ...]]
"""The path of the data file and the columns that the reader, and reads of stored values, may use; a
query that may use others of the same entry needs another reader."""

_Layout: TypeAlias = tuple[str, int]
"""The name of the index type and the number of the layout."""


@dataclass(slots=True)
class OpenEntry:
    """An entry opened for reading.

    Attributes:
        serving: The entry, listed before it was opened.
        reader: Answers predicate leaves.
        bounds: The page bounds of the base file, with its stripped footer.
        file: The data file, or its local copy.
        size: The size of the data file in bytes.
        values: The footer of the values that the entry stores; None if it stores none.
        blocks: Fetches missing blocks of the data file; None if it is complete.
        asked: Whether it has answered a call to many entries since it was last looked for one to
            close.
        users: The number of current leases.
        pooled: Whether it stays in the pool after the last lease.
    """

    serving: ServingEntry
    reader: IndexReader
    bounds: PageBounds
    file: OpenedFile
    size: int
    values: Footer | None = None
    blocks: BlockCopy | None = None
    asked: bool = False
    users: int = 0
    pooled: bool = True

    def is_listed_by(self, serving: ServingEntry) -> bool:
        """Whether no listing has shown another size or time of the data file since. (An entry may
        have been found without a listing.)"""
        known, listed = self.serving.entry.listed, serving.entry.listed
        return known is None or listed is None or known == listed

    def close(self) -> None:
        """Closes the reader and releases its blocks."""
        self.reader.close()
        if self.blocks is not None:
            self.blocks.close()


@dataclass(frozen=True, slots=True)
class OpenGroup:
    """Open entries whose columns have one layout, to be asked by one call.

    Attributes:
        readers: Asks them.
        entries: The entries, in the order of their positions.
    """

    readers: ManyReaders
    entries: Sequence[OpenEntry]
    _positions: Mapping[_Key, int]
    _files: OpenedFiles | None

    @classmethod
    def of(cls, members: Mapping[_Key, OpenEntry], *, are_copies: bool) -> "OpenGroup | None":
        """Some entries of one layout; None if there are none, or each is asked by itself.

        Args:
            are_copies: Whether the data files are copies in the user's cache.
        """
        entries = list(members.values())
        if not entries:
            return None
        try:
            kind = entries[0].serving.index_type
            readers = kind.together([each.reader for each in entries])
        except EntryUnusable:  # looking up each slice reports it
            return None
        if readers is None:
            return None
        files = None if are_copies else OpenedFiles([each.file for each in entries])
        return cls(readers, entries, {key: n for n, key in enumerate(members)}, files)

    def position(self, serving: ServingEntry) -> int:
        """The position of an entry; -1 if it is not open, or a later listing shows another data
        file."""
        position = self._positions.get(_key(serving), -1)
        if position >= 0 and not self.entries[position].is_listed_by(serving):
            return -1
        return position

    def are_as_opened(self, positions: Positions) -> Truths:
        """Whether the data files of entries are as they were when they were opened."""
        if self._files is not None:
            return self._files.are_as_opened(positions)
        unchanged = [not self.entries[each].file.has_changed() for each in positions.tolist()]
        return np.array(unchanged, dtype=bool)


@dataclass(frozen=True, slots=True)
class HeldEntries:
    """Open entries that are not closed while they are held; see `ReaderPool.held`.

    Attributes:
        version: The same for the same open entries.
    """

    version: int
    _entries: Mapping[_Key, OpenEntry]
    _groups: dict[_Layout, OpenGroup | None]
    _are_copies: bool

    def get(self, serving: ServingEntry) -> OpenEntry | None:
        """The entry, if it is open."""
        return self._entries.get(_key(serving))

    def group(self, servings: Sequence[ServingEntry]) -> OpenGroup | None:
        """Open entries, among them those that are open of some that serve a query; None if there
        are none, or each is asked by itself.

        Args:
            servings: Of one index type and layout.
        """
        layout = _layout(servings[0])
        if layout in self._groups:
            return self._groups[layout]
        if _FEW * len(servings) < len(self._entries):  # to group all would take longer
            keys = map(_key, servings)
            some = {key: each for key in keys if (each := self._entries.get(key)) is not None}
            return OpenGroup.of(some, are_copies=self._are_copies)
        members = {
            key: each
            for key, each in list(self._entries.items())
            if _layout(each.serving) == layout
        }
        self._groups[layout] = OpenGroup.of(members, are_copies=self._are_copies)
        return self._groups[layout]


class ReaderPool:
    """An LRU pool of open entries of one table; an entry in use is never closed. One that has
    answered a call to many entries, which leases none, gets a second chance.

    Unused entries stay open while all open entries together exceed neither `read.open_mb` (of index
    data, which is mapped rather than read) nor `capacity` entries, nor three quarters of the files
    that the process may open.
    """

    def __init__(self, storage: Storage, settings: Settings, *, capacity: int = MOST_OPEN) -> None:
        self._storage = storage
        self._settings = settings
        self._capacity = capacity
        self._most_bytes = settings.read.open_mb * 2**20
        self._open: dict[_Key, OpenEntry] = {}
        self._idle: OrderedDict[_Key, OpenEntry] = OrderedDict()  # least recently used first
        self._bytes = 0
        self._paths: dict[str, int] = {}  # of open entries, with their number of readers
        self._version = 0  # grows with each entry that is opened or removed
        self._groups: dict[_Layout, OpenGroup | None] = {}  # of the version `_grouped`
        self._grouped = 0
        self._scans: dict[str, int] = {}  # of base files in place of opening their entries
        self._holders = 0
        self._removed: list[OpenEntry] = []  # to be closed when nobody holds the entries
        self._lock = Lock()

    @property
    def settings(self) -> Settings:
        """The settings that it was made with."""
        return self._settings

    @property
    def is_remote(self) -> bool:
        """Whether the entries are in a remote store."""
        return not self._storage.is_local

    @property
    def open_paths(self) -> KeysView[str]:
        """Paths of the data files of entries that are open; a view that follows the pool."""
        return self._paths.keys()

    def is_open(self, serving: ServingEntry) -> bool:
        """Whether the entry is open, for the columns that a query may use."""
        return _key(serving) in self._open

    def room(self) -> tuple[int, int]:
        """How many more entries, and bytes of them, may be opened before others are closed."""
        with self._lock:
            return self._most_open() - len(self._open), self._most_bytes - self._bytes

    def open_footer(self, serving: ServingEntry) -> Footer | None:
        """The base file's footer, if the entry is open."""
        open_entry = self._open.get(_key(serving))
        return None if open_entry is None else open_entry.bounds.footer

    def scans(self, base_file: str) -> int:
        """How often a base file was scanned in place of opening its entry."""
        return self._scans.get(base_file, 0)

    def add_scan(self, base_file: str) -> None:
        """Counts such a scan. All are forgotten once they are of more files than may be open."""
        if len(self._scans) >= self._capacity:
            self._scans = {}
        self._scans[base_file] = self.scans(base_file) + 1

    @contextmanager
    def lease(self, serving: ServingEntry) -> Iterator[OpenEntry]:
        """The entry, open for the length of the block. Its answers are invalid if leaving the block
        raises, since Lucene does not check mapped data again.

        Raises:
            EntryInvalid: the entry is missing or damaged, or its data file changed while it was
                open.
            NativeModuleMissing: the index type's native module is not installed.
        """
        key = _key(serving)
        open_entry = self._take(key, serving) or self._add(key, self._open_entry(serving))
        try:
            yield open_entry
            if open_entry.file.has_changed():
                self._discard(key, open_entry)
                forget_stated(self._storage, serving.entry)
                raise EntryInvalid(f"{serving.entry.data_path} was changed while it was open.")
        finally:
            self._release(key, open_entry)

    @contextmanager
    def held(self) -> Iterator["HeldEntries"]:
        """All entries that are open now. None of them is closed for the length of the block; the
        caller checks whether their files have changed. Unlike a lease, this takes no time for each
        entry, and an entry does not count as used."""
        with self._lock:
            self._holders += 1
            if self._grouped != self._version:
                self._groups, self._grouped = {}, self._version
            held = HeldEntries(self._version, self._open, self._groups, self.is_remote)
        try:
            yield held
        finally:
            closing: list[OpenEntry] = []
            with self._lock:
                self._holders -= 1
                if not self._holders:
                    closing, self._removed = self._removed, closing
            for each in closing:
                each.close()

    def keep(self, listing: EntryListing) -> None:
        """Closes open entries of the listing's index type that are no longer listed, since an open
        file occupies disk space after its deletion. Entries in use are closed when they are
        returned."""
        prefix = f"{index_type_folder(listing.index_type)}/"
        self._close_if(lambda key, _: key[0].startswith(prefix) and not listing.shows(key[0]))

    def close_deleted(self) -> None:
        """Closes open entries of a local table whose data files were deleted. Those of a remote one
        occupy the user's cache alone, which evicts them."""
        if not self.is_remote:
            self._close_if(lambda _, entry: entry.file.is_deleted())

    def close(self) -> None:
        """Closes all unused entries, and the others when they are returned."""
        self._close_if(lambda key, entry: True)

    def _close_if(self, is_unwanted: Callable[[_Key, OpenEntry], bool]) -> None:
        """Closes some entries, those in use when they are returned."""
        with self._lock:
            unwanted = [key for key, entry in self._open.items() if is_unwanted(key, entry)]
            closing = [entry for key in unwanted if (entry := self._remove(key)).users == 0]
        self._close(closing)

    def _open_entry(self, serving: ServingEntry) -> OpenEntry:
        serving.index_type.check_runtime()  # before anything is fetched
        try:
            return self._opened(serving)
        except EntryInvalid:  # another generation may have taken its place
            forget_stated(self._storage, serving.entry)
            raise

    def _opened(self, serving: ServingEntry) -> OpenEntry:
        count(opened=1)
        with ExitStack() as stack:
            index, blocks = stack.enter_context(self._readable(serving))
            file = OpenedFile(index.path, is_copy=self.is_remote)
            with ExitStack() as on_failure:
                if blocks is not None:
                    on_failure.callback(blocks.close)
                bounds = self._bounds(serving, read_member(index, PARQUET_METADATA))
                values = values_footer(index) if serving.stored else None
                kind = serving.index_type.configured(self._settings)
                reader = kind.open(index, serving.columns)
                on_failure.pop_all()
            return OpenEntry(serving, reader, bounds, file, index.length, values, blocks)

    @contextmanager
    def _readable(self, serving: ServingEntry) -> Iterator[tuple[PackedIndex, BlockCopy | None]]:
        if serving.index_type.fetches_blocks:
            with readable_index(self._storage, serving.entry, self._settings) as readable:
                yield readable
        else:
            with packed_index(self._storage, serving.entry, self._settings) as index:
                yield index, None

    def _bounds(self, serving: ServingEntry, metadata: bytes) -> PageBounds:
        base_file = serving.entry.manifest.base_file
        try:
            footer = Footer(metadata)
        except ParquetReadError as error:
            raise EntryInvalid(
                f"{serving.entry.data_path} holds no footer of {base_file.path}: {error}."
            ) from error
        return PageBounds(footer, row_source(self._storage, base_file.path), base_file.length)

    def _take(self, key: _Key, serving: ServingEntry) -> OpenEntry | None:
        """The open entry, unless a later listing shows another data file."""
        with self._lock:
            open_entry = self._open.get(key)
            if open_entry is None:
                return None
            if open_entry.is_listed_by(serving):
                self._idle.pop(key, None)
                open_entry.users += 1
                return open_entry
            closing = [] if self._remove(key).users else [open_entry]
        self._close(closing)
        return None

    def _add(self, key: _Key, fresh: OpenEntry) -> OpenEntry:
        with self._lock:
            open_entry = self._open.setdefault(key, fresh)
            self._idle.pop(key, None)
            open_entry.users += 1
            if open_entry is fresh:
                self._version += 1
                self._bytes += fresh.size
                self._paths[key[0]] = self._paths.get(key[0], 0) + 1
        if open_entry is not fresh:  # another thread was faster
            fresh.close()
        return open_entry

    def _remove(self, key: _Key) -> OpenEntry:
        open_entry = self._open.pop(key)
        self._version += 1
        self._idle.pop(key, None)
        open_entry.pooled = False
        self._bytes -= open_entry.size
        self._paths[key[0]] -= 1
        if not self._paths[key[0]]:
            del self._paths[key[0]]
        return open_entry

    def _discard(self, key: _Key, changed: OpenEntry) -> None:
        """Removes a changed entry from the pool, so that the next lease opens it again."""
        with self._lock:
            if self._open.get(key) is changed:
                self._remove(key)

    def _release(self, key: _Key, open_entry: OpenEntry) -> None:
        closing = []
        with self._lock:
            open_entry.users -= 1
            if open_entry.users == 0 and open_entry.pooled:
                self._idle[key] = open_entry
            elif open_entry.users == 0:
                closing.append(open_entry)
            while self._idle and self._is_over():
                oldest, unused = next(iter(self._idle.items()))
                if unused.asked:  # calls to many entries lease none
                    unused.asked = False
                    self._idle.move_to_end(oldest)
                else:
                    closing.append(self._remove(oldest))
        self._close(closing)

    def _close(self, entries: list[OpenEntry]) -> None:
        """Closes entries that were removed, now or when nobody holds them any more."""
        if not entries:
            return
        with self._lock:
            if self._holders:
                self._removed += entries
                return
        for each in entries:
            each.close()

    def _is_over(self) -> bool:
        return self._bytes > self._most_bytes or len(self._open) > self._most_open()

    def _most_open(self) -> int:
        """Read anew each time, since Java raises the process's limit when it starts."""
        files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        if files == resource.RLIM_INFINITY:
            return self._capacity
        return min(self._capacity, max(1, (files - OTHER_FILES) * 3 // 4))


def _key(serving: ServingEntry) -> _Key:
    return serving.entry.data_path, serving.names, serving.stored


def _layout(serving: ServingEntry) -> _Layout:
    return serving.index_type.name, serving.layout
