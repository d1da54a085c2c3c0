"""Verifying entries: every byte against its checksum, every base file's footer against the one the
entry was built from."""

from collections.abc import Iterable

from hudi_index_service.config import Settings
from hudi_index_service.errors import EntryInvalid
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
        listing = EntryListing(table.storage, index_type)
        for base_file in base_files:
            try:
                _verify_entry(table.storage, listing.find(base_file), settings)
            except EntryMissing:
                continue
            except EntryInvalid as error:
                found.append(error)
    return found


def _verify_entry(storage: Storage, entry: Entry, settings: Settings) -> None:
    """Raises EntryInvalid for the first thing that is wrong."""
    named = entry.manifest.base_file
    index = packed_index(storage, entry, settings.cache_folder)
    crc32s, sha256 = checksums(index.path)
    if crc32s != tuple(index.block_crc32) or sha256 != entry.manifest.data.sha256:
        raise EntryInvalid(f"{entry.data_path} is damaged: its checksums are not the manifest's.")
    if footer_sha256(storage, named.path, named.length) != named.footer_sha256:
        raise EntryInvalid(f"{entry.folder}: the footer of {named.path} is another one now.")
