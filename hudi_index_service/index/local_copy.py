"""A packed data file on the local disk: itself where the table is local, else a checked copy in the
user's cache folder."""

import hashlib
import os
import tempfile
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from time import time

from hudi_index_service.errors import EntryInvalid
from hudi_index_service.index.contract import PackedIndex
from hudi_index_service.index.entry import Entry
from hudi_index_service.index.packed_file import checksums
from hudi_index_service.storage import Storage

_FOLDER = "entries"
_SUFFIX = ".pack"
_PART_SUFFIX = ".part"
_PART_ABANDONED_SECONDS = 3600.0  # no download takes that long


def packed_index(storage: Storage, entry: Entry, cache_folder: Path) -> PackedIndex:
    """The entry's data file, ready to be opened.

    Raises:
        EntryInvalid: the file is missing, or its length or checksum is not the manifest's.
    """
    data = entry.manifest.data
    path = (
        storage.local_path(entry.data_path)
        if storage.is_local
        else _cached(storage, entry, cache_folder)
    )
    try:
        length = path.stat().st_size
    except OSError as error:
        raise EntryInvalid(f"{entry.data_path} is missing: {error.strerror}.") from error
    if length != data.length:
        raise EntryInvalid(f"{entry.data_path} has {length} bytes, not {data.length}.")
    crc32s = data.crc32s()
    if len(crc32s) != -(-length // data.block_size):
        raise EntryInvalid(f"{entry.folder}: the manifest lacks checksums of some blocks.")
    members = {member.name: (member.offset, member.length) for member in data.members}
    if any(offset + size > length for offset, size in members.values()):
        raise EntryInvalid(f"{entry.folder}: the manifest names bytes beyond the data file.")
    return PackedIndex(
        path, members, length, data.block_size, crc32s, entry.manifest.base_file.rows
    )


def _cached(storage: Storage, entry: Entry, cache_folder: Path) -> Path:
    """The copy, named by content: one of an older entry can never be taken for it."""
    folder = cache_folder / _FOLDER
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    copy = folder / f"{_table_digest(storage)}-{entry.manifest.data.sha256}{_SUFFIX}"
    if copy.exists() and copy.stat().st_size == entry.manifest.data.length:
        return copy
    handle, name = tempfile.mkstemp(
        dir=folder, prefix=f"{_table_digest(storage)}-", suffix=_PART_SUFFIX
    )
    os.close(handle)
    part = Path(name)
    try:
        storage.download(entry.data_path, part)
        if checksums(part)[1] != entry.manifest.data.sha256:
            raise EntryInvalid(f"{entry.data_path} is damaged: its SHA-256 is not the manifest's.")
        part.rename(copy)
    except FileNotFoundError as error:
        raise EntryInvalid(f"{entry.data_path} is missing.") from error
    finally:
        part.unlink(missing_ok=True)
    return copy


def purge_copies(storage: Storage, cache_folder: Path, *, keep: Collection[str]) -> int:
    """Deletes this user's cached copies of the table's entries, but those whose SHA-256 is to be
    kept: erased data must leave the caches, too. Returns how many went."""
    gone = 0
    prefix = f"{_table_digest(storage)}-"
    for copy in (cache_folder / _FOLDER).glob(f"{prefix}*{_SUFFIX}"):
        if copy.name.removeprefix(prefix).removesuffix(_SUFFIX) not in keep:
            copy.unlink(missing_ok=True)
            gone += 1
    for part in (cache_folder / _FOLDER).glob(f"{prefix}*{_PART_SUFFIX}"):
        with suppress(FileNotFoundError):  # just completed
            if time() - part.stat().st_mtime > _PART_ABANDONED_SECONDS:
                part.unlink()
                gone += 1
    return gone


def _table_digest(storage: Storage) -> str:
    return hashlib.sha256(storage.uri.encode()).hexdigest()[:16]
