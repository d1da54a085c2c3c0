"""A look at one table: at a timeline that has not changed, two requests to the store; at one that
has, the table's status too. It starts no JVM and needs no Spark."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hudi_index_service.config import Settings
from hudi_index_service.errors import IndexServiceError
from hudi_index_service.fleet.definitions import Differences, differences
from hudi_index_service.fleet.policies.policy import TablePolicy, settings_for
from hudi_index_service.fleet.policies.references import resolved
from hudi_index_service.fleet.timeline import SeenInstant, seen_instants
from hudi_index_service.hook.table_upkeep import TableUpkeep
from hudi_index_service.maintain.status import TableStatus


@dataclass(frozen=True, slots=True)
class Look:
    """What a look found.

    Attributes:
        version: See `TableUpkeep.version`.
        status: None if the version is the known one.
        differences: How the definitions differ from the policy's, with a status.
        timeline: The last instants, with a status.
    """

    version: str
    status: TableStatus | None
    differences: Differences = field(default_factory=Differences)
    timeline: tuple[SeenInstant, ...] = ()

    def fields(self) -> dict[str, Any]:
        """What it tells of the table, as fields of an `Observation`; none without a status."""
        if self.status is None:
            return {}
        return {
            "status": self.status,
            "erased": self.status.outliving.entries,
            "orphaned_bytes": self.status.outliving.bytes,
            "drift": self.differences.drift,
            "clash": self.differences.clash,
            "timeline": self.timeline,
        }


class Looker:
    """Looks at one table, which stays open. For one thread at a time."""

    def __init__(self) -> None:
        self._upkeep: TableUpkeep | None = None
        self._options: Mapping[str, str] = {}
        self._settings: Settings | None = None

    def look(self, policy: TablePolicy, settings: Settings, known: str = "") -> Look:
        """Looks at the table.

        Args:
            settings: The service's. If they, or the options of the table's store, have changed, it
                is opened again.
            known: The version whose status is known; "" for none.

        Raises:
            IndexServiceError: it cannot be read. The next look opens it again.
        """
        options, settings = resolved(policy.storage), settings_for(policy, settings)
        if (settings, options) != (self._settings, self._options):
            self.close()
        if self._upkeep is None:
            self._settings, self._options = settings, options
            self._upkeep = TableUpkeep(
                policy.uri,
                storage_options=options or None,
                settings=settings,
                options=policy.write_config,
            )
        try:
            version = self._upkeep.version()
            if version == known:
                return Look(version, None)
            self._upkeep.peek()  # notices an overwritten table, and how long entries are kept
            table = self._upkeep.table
            status = table.status()
            instants = seen_instants(table.hudi_table, status.indexes)
            return Look(version, status, differences(table.indexes(), policy), instants)
        except (IndexServiceError, OSError):
            self.close()
            raise

    def close(self) -> None:
        """Closes the table."""
        if self._upkeep is not None:
            self._upkeep.close()
        self._upkeep = None
