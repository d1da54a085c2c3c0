"""The tables that callbacks may name."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from hudi_index_service.errors import CallbackRefused, ConfigInvalid, StorageUnsupported
from hudi_index_service.storage import normalise_uri


class AllowedTables:
    """An allow-list of base paths, whichever way they are spelled.

    Args:
        tables: Base paths: local folders, ``file:/…``, ``s3://…``, …

    Raises:
        ConfigInvalid: the list is empty.
        StorageUnsupported: a scheme that is not served.
    """

    def __init__(self, tables: Iterable[str | Path]) -> None:
        uris = [normalise_uri(table) for table in tables]
        if not uris:
            raise ConfigInvalid(
                "The hook has no table to serve.", remedy="Name one table at least."
            )
        self._uris = {_identity(uri): uri for uri in uris}

    def __iter__(self) -> Iterator[str]:
        return iter(self._uris.values())

    def __len__(self) -> int:
        return len(self._uris)

    def find(self, base_path: str | Path) -> str:
        """The allowed table that `base_path` names, as it was given to the list: what a caller
        sends is compared and never opened.

        Raises:
            CallbackRefused: no such table is allowed.
        """
        # Hudi sends Hadoop's spelling, file:/x, in which no character is escaped.
        spelled = str(base_path).removeprefix("file:")
        try:
            uri = self._uris.get(_identity(normalise_uri(spelled)))
        except (StorageUnsupported, ValueError):  # another scheme, or no path at all
            uri = None
        if uri is None:
            raise CallbackRefused(
                f"The table {str(base_path)[:200]!r} is not among those this hook serves.",
                remedy="Name the table when the hook is made: IndexHook([table, ...]).",
            )
        return uri


def _identity(uri: str) -> str:
    """Equal for two spellings of one local folder, links followed."""
    return os.path.realpath(uri) if uri.startswith("/") else uri
