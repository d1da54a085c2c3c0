"""Finds and removes data that index types keep outside their entries' files, for example in a
database.

This data is deleted before the data file that leads to it, so that a later run can repeat a failed
removal. If a builder died before it wrote the data file, the index type itself lists the data.
"""

import logging
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

from hudi_index_service.config import Settings
from hudi_index_service.errors import (
    EntryUnusable,
    IndexServiceError,
    IndexTypeUnknown,
    NativeModuleMissing,
)
from hudi_index_service.index.contract import IndexType
from hudi_index_service.index.factory import index_type
from hudi_index_service.index.metadata.documents import INDEX_ROOT
from hudi_index_service.index.metadata.entry import DATA_SUFFIX

log = logging.getLogger(__name__)


class Elsewhere:
    """The external data of one table.

    Args:
        table: The table's base path, a URI.
    """

    def __init__(self, table: str, settings: Settings) -> None:
        self._table = table
        self._settings = settings

    def stored(
        self, names: Collection[str], unused: Collection[str] = ()
    ) -> tuple[dict[str, float], dict[str, str]]:
        """The external data that index types list.

        Args:
            names: The types of entries and live indexes.
            unused: Others. If one cannot work here, that is no failure: most likely it never did,
                and whoever can use it cleans up after it.

        Returns:
            Data file path → time of storing, in seconds since 1970; and index type name → reason,
            for types whose listing failed.
        """
        times: dict[str, float] = {}
        reasons: dict[str, str] = {}
        for name in sorted({*names, *unused}):
            kind = self._kind(name)
            if kind is None:
                continue
            try:
                times |= kind.stored(self._table)
            except EntryUnusable as error:
                if name in unused and isinstance(error, NativeModuleMissing):
                    log.info("What %s may store of %s is not listed: %s", name, self._table, error)
                    continue
                reasons[name] = _reason(error, f"Cannot list what {name} stores of {self._table}")
        return times, reasons

    def destroy(self, paths: Iterable[str]) -> dict[str, str]:
        """Removes the external data of those of the files that are data files. Returns path →
        reason for each failed removal."""
        by_type: defaultdict[str, list[str]] = defaultdict(list)
        for path in paths:
            if path.endswith(DATA_SUFFIX) and path.startswith(f"{INDEX_ROOT}/"):
                by_type[path.removeprefix(f"{INDEX_ROOT}/").split("/")[0]].append(path)
        reasons: dict[str, str] = {}
        for name, type_paths in by_type.items():
            kind = self._kind(name)
            if kind is None:
                continue
            try:
                kind.destroy(self._table, type_paths)
            except EntryUnusable as error:
                reason = _reason(error, f"Cannot remove what {name} stores of {self._table}")
                reasons |= dict.fromkeys(type_paths, reason)
        return reasons

    def _kind(self, name: str) -> IndexType | None:
        """The index type, if it is installed here."""
        try:
            return index_type(name).configured(self._settings)
        except IndexTypeUnknown:
            return None


def without(paths: Iterable[str], failed: Mapping[str, str]) -> list[str]:
    """The paths that did not fail."""
    return [path for path in paths if path not in failed]


def _reason(error: IndexServiceError, action: str) -> str:
    log.warning("%s: %s", action, error)
    return error.message.rstrip(".")
