"""The tables that callbacks may name."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from hudi_index_service.catalog import table_location
from hudi_index_service.columns import require_list
from hudi_index_service.errors import CallbackRefused, ConfigInvalid, StorageUnsupported
from hudi_index_service.storage.store import normalize_uri

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class AllowedTables:
    """An allow-list of base paths that recognizes each path in any spelling.

    Args:
        tables: Base paths (local folders, ``file:/…``, ``s3://…``, …), or names in a catalog.
        spark: The session whose catalog knows names without a scheme.

    Raises:
        ConfigInvalid: the list is empty.
        StorageUnsupported: an unsupported scheme.
        TableNotFound, TableAmbiguous, NotAHudiTable, PermissionDenied, CatalogFailed: of names.
    """

    def __init__(self, tables: Iterable[str | Path], spark: "SparkSession | None" = None) -> None:
        require_list(tables, "tables")
        by_name = {table: normalize_uri(table_location(table, spark)) for table in tables}
        if not by_name:
            raise ConfigInvalid(
                "The hook has no table to serve.", remedy="Name at least one table."
            )
        self._by_name = {str(name): uri for name, uri in by_name.items()}
        self._uris = dict.fromkeys(by_name.values())

    def __iter__(self) -> Iterator[str]:
        return iter(self._uris)

    def __len__(self) -> int:
        return len(self._uris)

    def find(self, base_path: str | Path) -> str:
        """The allowed table that `base_path`, or a name in the list, stands for.

        A caller's path is only compared, never opened.

        Raises:
            CallbackRefused: the table is not on the list.
        """
        named = self._by_name.get(str(base_path))
        if named is not None:
            return named
        uri = path_identity(base_path)
        if uri is None or uri not in self._uris:
            raise CallbackRefused(
                f"The table {str(base_path)[:200]!r} is not one that this hook serves.",
                remedy="Name the table when you create the hook: IndexHook([table, ...]).",
            )
        return uri


def path_identity(base_path: str | Path) -> str | None:
    """What is equal for all spellings of a path; None if it is none that the service reads. The
    path is not opened."""
    try:
        return normalize_uri(base_path)
    except (StorageUnsupported, ValueError):  # another scheme, or not a path
        return None
