"""What the supervisor needs of a policy, as the fleet's file has it."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from hudi_index_service.build.strategy import Budget
from hudi_index_service.config import Settings
from hudi_index_service.fleet.definitions import differences
from hudi_index_service.fleet.means import Differences, Means
from hudi_index_service.fleet.observation import Refusal
from hudi_index_service.fleet.policies.policy import TablePolicy, settings_for
from hudi_index_service.fleet.policies.references import resolved
from hudi_index_service.table import IndexedTable


class PolicyMeans(Means):
    """See `Means`."""

    def storage_options(self, policy: TablePolicy) -> Mapping[str, str]:
        """See `Means.storage_options`."""
        return resolved(policy.storage)

    def settings(self, policy: TablePolicy, settings: Settings) -> Settings:
        """See `Means.settings`."""
        return settings_for(policy, settings)

    def differences(self, policy: TablePolicy, table: IndexedTable) -> Differences:
        """See `Means.differences`."""
        found = differences(table.indexes(), policy)
        clash = found.clashes[0] if found.clashes else None
        return Differences(
            clash=None
            if clash is None
            else Refusal("INDEX_EXISTS", str(clash), "Rename one of the two, or drop the index."),
            drift=found.drift,
            changes=bool(found.changes),
        )

    def definitions(self, policy: TablePolicy) -> Mapping[str, Any]:
        """See `Means.definitions`."""
        return policy_as_json(policy)

    def may_build(self, policy: TablePolicy, now: datetime) -> bool:
        """See `Means.may_build`."""
        return policy.windows.is_open(now)

    def budget(self, policy: TablePolicy) -> Budget:
        """See `Means.budget`."""
        return policy.budget

    def backfill_seconds(self, policy: TablePolicy) -> float:
        """See `Means.backfill_seconds`."""
        return policy.backfill.total_seconds()


def policy_as_json(policy: TablePolicy) -> dict[str, Any]:
    """What of a policy changes definitions."""
    return {
        "name": policy.name,
        "uri": policy.uri,
        "enabled": policy.enabled,
        "definitions": [
            {
                "name": each.name,
                "columns": [column.model_dump() for column in each.columns],
                "index_types": each.index_types,
            }
            for each in policy.definitions
        ],
        "apply": policy.apply,
        "max_backfill_bytes": policy.max_backfill_bytes,
        "backfill": policy.backfill.total_seconds(),
        "on_removed": policy.on_removed,
        "on": policy.on,
        "retention": policy.retention,
    }
