"""What index types keep elsewhere than in the files of their entries, in a database say: finding
it, and removing it.

It goes before the data file by which it is found, so that a removal that fails is made up for by
the next one. What has no data file, because its builder died before that was there, the index type
itself lists.
"""

import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping

from hudi_index_service.config import Settings
from hudi_index_service.documents import INDEX_ROOT
from hudi_index_service.errors import (
    IndexServiceError,
    IndexTypeUnknown,
    NativeModuleMissing,
    PermissionDenied,
    StorageFailed,
)
from hudi_index_service.index.contract import IndexType
from hudi_index_service.index.entry import DATA_SUFFIX
from hudi_index_service.index.factory import index_type, keeps_elsewhere, with_settings

log = logging.getLogger(__name__)

FAILURES = (NativeModuleMissing, PermissionDenied, StorageFailed)
"""What keeps something elsewhere from being listed or removed."""


class Elsewhere:
    """What is kept elsewhere for one table.

    Args:
        table: Its base path, a URI.
    """

    def __init__(self, table: str, settings: Settings) -> None:
        self._table = table
        self._settings = settings

    def stored(self, names: Iterable[str]) -> tuple[dict[str, float], dict[str, str]]:
        """By data file, when the index types of these names stored what belongs to it, in seconds
        since 1970; and by name why an index type cannot tell."""
        found: dict[str, float] = {}
        failed: dict[str, str] = {}
        for name in sorted(set(names)):
            kind = self._kind(name)
            if kind is None:
                continue
            try:
                found |= kind.stored(self._table)
            except FAILURES as error:
                failed[name] = _reason(error, f"What {name} keeps of {self._table} is unknown")
        return found, failed

    def destroy(self, paths: Iterable[str]) -> dict[str, str]:
        """Removes what belongs to those of the files that are data files. Returns, by their paths,
        those for which that failed, and why."""
        by_type: defaultdict[str, list[str]] = defaultdict(list)
        for path in paths:
            if path.endswith(DATA_SUFFIX) and path.startswith(f"{INDEX_ROOT}/"):
                by_type[path.removeprefix(f"{INDEX_ROOT}/").split("/")[0]].append(path)
        failed: dict[str, str] = {}
        for name, some in by_type.items():
            kind = self._kind(name)
            if kind is None:
                continue
            try:
                kind.destroy(self._table, some)
            except FAILURES as error:
                reason = _reason(error, f"What {name} keeps of {self._table} stays")
                failed |= dict.fromkeys(some, reason)
        return failed

    def _kind(self, name: str) -> IndexType | None:
        """The index type, if it is installed here and keeps anything elsewhere."""
        try:
            kind = index_type(name)
        except IndexTypeUnknown:
            return None
        return with_settings(kind, self._settings) if keeps_elsewhere(kind) else None


def without(paths: Iterable[str], failed: Mapping[str, str]) -> list[str]:
    """Those of the paths that did not fail."""
    return [path for path in paths if path not in failed]


def _reason(error: IndexServiceError, what: str) -> str:
    log.warning("%s: %s", what, error)
    return error.message.rstrip(".")
