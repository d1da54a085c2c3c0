"""Caches for one query which tables have an index, since each check lists a folder."""

from collections.abc import Callable

from hudi_index_service.table import IndexedTable


class IndexedTables:
    """The tables of one query that have an index.

    Args:
        table: Opens the table of a path.
    """

    def __init__(self, table: Callable[[str], IndexedTable]) -> None:
        self._table = table
        self._has_index: dict[str, bool] = {}

    def __contains__(self, uri: str) -> bool:
        """Raises IndexServiceError or OSError for a table that cannot be opened, or listed."""
        if uri not in self._has_index:
            self._has_index[uri] = bool(self._table(uri).indexes())
        return self._has_index[uri]
