"""What the entries of a table hold, read back from its files."""

from pathlib import Path

from hudi_index_service import IndexedTable
from hudi_index_service.index.entry import EntryListing
from hudi_index_service.index.manifest import Manifest
from hudi_index_service.storage import Storage


def serving(table: IndexedTable, index_type: str = "lucene") -> list[Manifest]:
    """The serving manifest of every entry of an index type, by base file."""
    listing = EntryListing(Storage(table.uri), index_type)
    found = [listing.newest_valid(folder) for folder in listing.folders()]
    return sorted(found, key=lambda manifest: manifest.base_file.path)


def held(table: IndexedTable, index_type: str = "lucene") -> list[dict[str, tuple[str, ...]]]:
    """Column → fields of every entry of an index type, by base file."""
    return [{c.name: c.fields for c in each.columns} for each in serving(table, index_type)]


def columns(table: IndexedTable, index_type: str = "lucene") -> list[list[str]]:
    """The names of the columns of every entry of an index type, by base file."""
    return [list(each) for each in held(table, index_type)]


def generations(table: IndexedTable, index_type: str = "lucene") -> list[int]:
    """The serving generation of every entry of an index type, by base file."""
    return [each.generation for each in serving(table, index_type)]


def index_files(table: IndexedTable) -> dict[Path, tuple[int, int]]:
    """Every file below the folders of the index types, with size and time of its last change."""
    root = Path(table.uri, ".hoodie/.index")
    return {
        path.relative_to(root): (path.stat().st_size, path.stat().st_mtime_ns)
        for path in root.rglob("*")
        if path.is_file() and path.relative_to(root).parts[0] != "_service"
    }
