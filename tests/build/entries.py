"""The contents of ``.hoodie/.index`` after builds, read from the files."""

from pathlib import Path

from hudi_index_service.index.metadata.entry import EntryListing
from hudi_index_service.index.metadata.manifest import Manifest
from hudi_index_service.storage.store import Storage


def manifests(table: Path | str, index_type: str = "lucene") -> list[Manifest]:
    """The manifest in use of every entry of an index type, ordered by base file; as stored, since
    one that was replaced within a tick of the clock looks the same in a listing."""
    listing = EntryListing(Storage(table), index_type, fresh=True)
    found = [listing.newest_valid(folder) for folder in listing.folders()]
    return sorted(found, key=lambda manifest: manifest.base_file.path)


def all_manifests(table: Path | str) -> list[Path]:
    """The manifest files of every generation."""
    return sorted(Path(table, ".hoodie/.index/lucene").rglob("manifest-*.json"))


def data_files(table: Path | str) -> list[Path]:
    """The data files, whether a manifest names them or not."""
    return sorted(Path(table, ".hoodie/.index").rglob("*.pack*"))


def columns(manifest: Manifest) -> list[str]:
    """The names of an entry's columns."""
    return [column.name for column in manifest.columns]


def assert_no_stray_data(table: Path | str) -> None:
    """Every data file is named by a manifest beside it, and every named data file exists."""
    named = {
        path.parent / Manifest.from_json(path.read_bytes(), source=str(path)).data.name
        for path in all_manifests(table)
    }
    assert named == set(data_files(table))
