"""The contents of a table's entries, read from its files."""

from pathlib import Path

from hudi_index_service import IndexedTable
from tests.build.entries import manifests


def fields_by_column(
    table: IndexedTable, index_type: str = "lucene"
) -> list[dict[str, tuple[str, ...]]]:
    """Column → fields of every entry of an index type, ordered by base file."""
    return [{c.name: c.fields for c in each.columns} for each in manifests(table.uri, index_type)]


def columns(table: IndexedTable, index_type: str = "lucene") -> list[list[str]]:
    """The column names of every entry of an index type, ordered by base file."""
    return [list(each) for each in fields_by_column(table, index_type)]


def generations(table: IndexedTable, index_type: str = "lucene") -> list[int]:
    """The generation in use of every entry of an index type, ordered by base file."""
    return [each.generation for each in manifests(table.uri, index_type)]


def index_files(table: IndexedTable) -> dict[Path, tuple[int, int]]:
    """Every file in the index types' folders, with its size and modification time."""
    root = Path(table.uri, ".hoodie/.index")
    return {
        path.relative_to(root): (path.stat().st_size, path.stat().st_mtime_ns)
        for path in root.rglob("*")
        if path.is_file() and path.relative_to(root).parts[0] != "_service"
    }
