"""The tables that callbacks may name."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from hudi_index_service.errors import CallbackRefused, ConfigInvalid, StorageUnsupported
from hudi_index_service.storage.store import normalize_uri


class AllowedTables:
    """An allow-list of base paths that recognizes each path in any spelling.

    Args:
        tables: Base paths: local folders, ``file:/…``, ``s3://…``, …

    Raises:
        ConfigInvalid: the list is empty.
        StorageUnsupported: an unsupported scheme.
    """

    def __init__(self, tables: Iterable[str | Path]) -> None:
        uris = [normalize_uri(table) for table in tables]
        if not uris:
            raise ConfigInvalid(
                "The hook has no table to serve.", remedy="Name at least one table."
            )
        self._uris = {_identity(uri): uri for uri in uris}

    def __iter__(self) -> Iterator[str]:
        return iter(self._uris.values())

    def __len__(self) -> int:
        return len(self._uris)

    def find(self, base_path: str | Path) -> str:
        """The allowed table that `base_path` names, as spelled in the list.

        A caller's path is only compared, never opened.

        Raises:
            CallbackRefused: the table is not on the list.
        """
        identity = path_identity(base_path)
        uri = None if identity is None else self._uris.get(identity)
        if uri is None:
            raise CallbackRefused(
                f"The table {str(base_path)[:200]!r} is not one that this hook serves.",
                remedy="Name the table when you create the hook: IndexHook([table, ...]).",
            )
        return uri


def path_identity(base_path: str | Path) -> str | None:
    """What is equal for all spellings of a path; None if it is none that the service reads. The
    path is not opened."""
    # Hudi sends Hadoop's spelling, file:/x, without escaped characters.
    path = str(base_path).removeprefix("file:")
    try:
        return _identity(normalize_uri(path))
    except (StorageUnsupported, ValueError):  # another scheme, or not a path
        return None


def _identity(uri: str) -> str:
    """A key that is equal for all spellings of one local folder; links are resolved."""
    return os.path.realpath(uri) if uri.startswith("/") else uri
