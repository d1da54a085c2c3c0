"""The tables that requests read, opened once for all."""

from collections.abc import Mapping
from threading import Lock

from hudi_index_service.config import Settings
from hudi_index_service.fleet.policies.policy import TablePolicy, settings_for
from hudi_index_service.fleet.policies.references import resolved
from hudi_index_service.table import IndexedTable, open_table


class ReadTables:
    """Opens the tables of a fleet. May be used in any thread.

    Args:
        settings: The process's.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = Lock()
        self._opened: dict[str, tuple[IndexedTable, Mapping[str, str]]] = {}

    def table(self, policy: TablePolicy) -> IndexedTable:
        """The table of a policy. One whose options have changed is opened again.

        Raises:
            ConfigInvalid, TableNotFound, NotAHudiTable, StorageFailed: it cannot be opened.
        """
        options = resolved(policy.storage)
        with self._lock:
            found = self._opened.get(policy.uri)
        if found is not None and found[1] == options:
            return found[0]
        table = open_table(
            policy.uri,
            storage_options=options or None,
            settings=settings_for(policy, self._settings),
        )
        with self._lock:
            now = self._opened.get(policy.uri)
            if now is not None and now is not found and now[1] == options:
                return now[0]  # another thread was faster: what it has made ready is there
            self._opened[policy.uri] = table, options
        return table

    def close(self) -> None:
        """Closes the tables."""
        with self._lock:
            opened, self._opened = self._opened, {}
        for table, _ in opened.values():
            table.close()
