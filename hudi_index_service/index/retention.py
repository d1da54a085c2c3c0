"""How long entries are kept: with their base file, or with their instant.

RFC-51 has an index live as long as its instant ("when cleaning instants, the corresponding index
dir will be cleaned together"). Hudi archives instants whose base files are still read, so that
taken by the letter live queries fall back to scans: that is the policy ``instant``. The default,
``file-slice``, keeps an entry while its base file is there.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from hudi_index_service.config import Settings
from hudi_index_service.documents import INDEX_ROOT
from hudi_index_service.index.entry import EntryListing, entry_folder
from hudi_index_service.storage import Storage, StoredFile
from hudi_index_service.table.completeness import list_data_files
from hudi_index_service.table.protocol import HudiTable


@dataclass(frozen=True, slots=True)
class ExpiredEntry:
    """An entry that outlives what it was built for: the next clean removes it.

    Attributes:
        index_type: Name of the index type.
        folder: Where it lies, relative to the table.
        files: Every file in it.
        reason: Why it goes, for people.
    """

    index_type: str
    folder: str
    files: tuple[StoredFile, ...]
    reason: str

    @property
    def bytes(self) -> int:
        """Bytes of its files."""
        return sum(file.size for file in self.files)


class Retention:
    """The retention policy, and the state of the table that it judges entries by.

    Make it after the entries were listed: a base file and its instant are older than the entry, so
    no listed entry can miss a base file that is there.
    """

    def __init__(self, table: HudiTable, settings: Settings) -> None:
        self._base_files = list_data_files(table.storage).base_files()
        self._paths = frozenset(base_file.path for base_file in self._base_files)
        self._retained = retained_instants(table, settings)
        self._instants: dict[str, dict[str, str]] = {}

    def expired(self, index_type: str, folder: str) -> str | None:
        """Why the entry in a folder of the index type has expired; None if it has not."""
        if index_type not in self._instants:
            self._instants[index_type] = {
                entry_folder(index_type, base_file): base_file.instant
                for base_file in self._base_files
            }
        instant = self._instants[index_type].get(folder)
        if instant is None:
            return "its base file is gone"
        if self._retained is not None and instant not in self._retained:
            return "its instant has left the active timeline"
        return None

    def has_base_file(self, path: str) -> bool:
        """Whether the base file is there, in the snapshot or not."""
        return path in self._paths


def retained_instants(table: HudiTable, settings: Settings) -> frozenset[str] | None:
    """With ``retention: instant``, the only instants whose entries are kept, by requested time;
    None for no such limit. What is not kept is not built either (design, rule 6)."""
    if settings.clean.retention == "file-slice":
        return None
    return frozenset(instant.requested for instant in table.completed_instants())


def stored_index_types(storage: Storage) -> list[str]:
    """The names of the index types of which the table has files, sorted."""
    folders = (path.rsplit("/", 1)[1] for path in storage.folders(INDEX_ROOT))
    return sorted(name for name in folders if not name.startswith("_"))


def expired_entries(
    table: HudiTable, settings: Settings, listings: Iterable[EntryListing] | None = None
) -> list[ExpiredEntry]:
    """The entries that outlive their base file or (``retention: instant``) their instant. After an
    erasure, its values are still in them until the next clean.

    Args:
        listings: Of the index types, if they are at hand; else all are listed.
    """
    if listings is None:
        names = stored_index_types(table.storage)
        listings = [EntryListing(table.storage, name) for name in names]
    listings = list(listings)
    retention = Retention(table, settings)
    found = []
    for listing in listings:
        for folder in listing.folders():
            reason = retention.expired(listing.index_type, folder)
            if reason is not None:
                files = tuple(listing.files(folder))
                found.append(ExpiredEntry(listing.index_type, folder, files, reason))
    return found
