"""The folders whose tables sessions may ask for."""

from collections.abc import Iterable
from pathlib import Path

from hudi_index_service.errors import ConfigInvalid, RequestRefused
from hudi_index_service.hook.allowed_tables import path_identity
from hudi_index_service.storage.store import normalize_uri


class AllowedFolders:
    """An allow-list of tables and of folders with tables, in any spelling.

    Args:
        folders: Base paths of tables, or folders above them: local ones, ``s3://…``, …

    Raises:
        ConfigInvalid: the list is empty.
        StorageUnsupported: an unsupported scheme.
    """

    def __init__(self, folders: Iterable[str | Path]) -> None:
        self._folders = tuple(normalize_uri(each) for each in folders)
        if not self._folders:
            raise ConfigInvalid(
                "The daemon has no table to read.", remedy="Name at least one table or folder."
            )
        self._identities = [(path_identity(each) or each).rstrip("/") for each in self._folders]

    def __str__(self) -> str:
        return ", ".join(self._folders)

    def missing(self) -> list[str]:
        """The local folders that do not exist now."""
        return [each for each in self._folders if "://" not in each and not Path(each).exists()]

    def checked(self, base_path: str) -> str:
        """The path of a table, as it is opened.

        Raises:
            RequestRefused: it is neither one of the folders nor below one.
        """
        path = path_identity(base_path)
        if path is not None and ".." not in path.split("/"):
            for each in self._identities:
                if path == each or path.startswith(f"{each}/"):
                    return path
        raise RequestRefused(
            f"The table {base_path[:200]!r} is in none of the folders that this daemon reads.",
            remedy="Start hudi-index serve-spark with the table, or with a folder above it.",
        )
