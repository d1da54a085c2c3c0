"""Removes what segments state of base files without an entry, and of columns without an index."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from hudi_index_service.index.metadata.definitions import StoredVersions
from hudi_index_service.index.metadata.entry import EntryListing
from hudi_index_service.index.metadata.folders import entry_folder_at
from hudi_index_service.index.metadata.segments.segment import ColumnKey
from hudi_index_service.index.metadata.segments.store import SEGMENTS_FOLDER, SegmentStore
from hudi_index_service.storage.store import Storage, StoredFile


def forget_facts(
    storage: Storage,
    definitions: Sequence[StoredVersions] | None,
    removed: frozenset[str] = frozenset(),
    *,
    dry_run: bool = False,
) -> list[StoredFile]:
    """Rewrites segments with facts of base files that have no entry, or of columns that no live
    definition has, and returns those that had them.

    Args:
        definitions: None to keep all columns.
        removed: Paths that count as removed, for a dry run.
        dry_run: Change nothing.

    Raises:
        PermissionDenied, StorageFailed: a segment cannot be read or deleted.
    """
    changed: list[StoredFile] = []
    for folder in storage.folders(SEGMENTS_FOLDER):
        name = folder.rsplit("/", 1)[1]
        changed += SegmentStore(storage, name).forget(
            _has_entry(storage, name, removed),
            partial(_may_be_used, definitions, name),
            dry_run=dry_run,
        )
    return changed


def _may_be_used(definitions: Sequence[StoredVersions] | None, name: str, key: ColumnKey) -> bool:
    return definitions is None or any(each.may_use(name, key[0]) for each in definitions)


def _has_entry(storage: Storage, name: str, removed: frozenset[str]) -> Callable[[str], bool]:
    """Whether the base file at a path has an entry now. All entries are listed once; one that is
    not among them may have been published since."""
    listing = EntryListing(storage, name)
    known: dict[str, bool] = {}

    def has_entry(path: str) -> bool:
        if path not in known:
            folder = entry_folder_at(name, path)
            known[path] = folder is not None and (
                is_entry(listing.files(folder)) or is_entry(storage.files(folder))
            )
        return known[path]

    def is_entry(files: Iterable[StoredFile]) -> bool:
        return any(each.path.endswith(".json") and each.path not in removed for each in files)

    return has_entry
