"""Verifying entries: every byte against its checksum, every base file's footer against the one the
entry was built from."""

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from hudi_index_service.config import Settings
from hudi_index_service.errors import EntryInvalid
from hudi_index_service.index.contract import PackedIndex
from hudi_index_service.index.entry import Entry, EntryListing, EntryMissing
from hudi_index_service.index.local_copy import packed_index
from hudi_index_service.index.packed_file import checksums
from hudi_index_service.storage import Storage
from hudi_index_service.table.base_file import footer_sha256
from hudi_index_service.table.protocol import HudiTable


def verify(table: HudiTable, index_types: Iterable[str], settings: Settings) -> list[EntryInvalid]:
    """What is wrong with the entries of the present snapshot; missing ones are not wrong.

    Raises:
        TableFeatureUnsupported: the table cannot be read whole here.
    """
    found: list[EntryInvalid] = []
    base_files = table.snapshot().base_files()
    for index_type in index_types:
        listing = EntryListing(table.storage, index_type, fresh=True)
        for base_file in base_files:
            try:
                _verify_entry(table.storage, listing.find(base_file), settings)
            except (EntryMissing, FileNotFoundError):  # not built, or its base file just cleaned
                continue
            except EntryInvalid as error:
                found.append(error)
    return found


def _verify_entry(storage: Storage, entry: Entry, settings: Settings) -> None:
    """Raises EntryInvalid for the first thing that is wrong."""
    named = entry.manifest.base_file
    with _as_stored(storage, entry, settings) as index:
        crc32s, sha256 = checksums(index.path)
    if crc32s != tuple(index.block_crc32) or sha256 != entry.manifest.data.sha256:
        raise EntryInvalid(f"{entry.data_path} is damaged: its checksums are not the manifest's.")
    if footer_sha256(storage, named.path, named.length) != named.footer_sha256:
        raise EntryInvalid(f"{entry.folder}: the footer of {named.path} is another one now.")


@contextmanager
def _as_stored(storage: Storage, entry: Entry, settings: Settings) -> Iterator[PackedIndex]:
    """The data file as the store has it now, never an older copy from the user's cache."""
    if storage.is_local:
        yield packed_index(storage, entry, settings.cache_folder)
        return
    settings.cache_folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=settings.cache_folder) as scratch:
        yield packed_index(storage, entry, Path(scratch))
