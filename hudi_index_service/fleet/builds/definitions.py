"""Brings a table's definitions to what the fleet's file says, in a child: a plan may need a JVM."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from hudi_index_service.config import Settings
from hudi_index_service.errors import IndexServiceError
from hudi_index_service.fleet.builds.messages import Order
from hudi_index_service.fleet.definitions import apply, plan_of
from hudi_index_service.fleet.means import DefinitionsSeen
from hudi_index_service.fleet.observation import Refusal
from hudi_index_service.fleet.policy import DesiredIndex, TablePolicy
from hudi_index_service.index.metadata.definitions import Column
from hudi_index_service.table import IndexedTable


def define(table: IndexedTable, order: Order) -> DefinitionsSeen:
    """Plans the changes, and makes them if they are approved, or need not be.

    Raises:
        IndexServiceError: the table cannot be read, or written.
    """
    policy = _policy_of(order.definitions)
    plan = plan_of(table, policy, settings=Settings(**order.settings))
    found, failed = plan.differences, dict(plan.invalid)
    sentences, drift = plan.sentences, found.drift
    if plan.changes and (order.approved or plan.may_apply_unasked(policy)):
        applied = apply(table, policy, plan)
        failed |= applied.failed
        done = {each.name for each in applied.changes}
        sentences, drift = (), tuple(name for name in drift if name not in done)
    clash = found.clashes[0] if found.clashes else None
    return DefinitionsSeen(
        invalid_definition=next(map(_refusal, failed.values()), None),
        clash=None
        if clash is None
        else Refusal("INDEX_EXISTS", str(clash), "Rename one of the two, or drop the index."),
        drift=drift,
        plan=sentences,
    )


def _policy_of(content: Mapping[str, Any]) -> TablePolicy:
    definitions = tuple(
        DesiredIndex(
            each["name"],
            tuple(Column(**column) for column in each["columns"]),
            tuple(each["index_types"]),
        )
        for each in content["definitions"]
    )
    fields = {
        **content,
        "definitions": definitions,
        "backfill": duration(content["backfill"]),
        "build_on": tuple(content["build_on"]),
    }
    return TablePolicy(**fields)


def duration(seconds: float) -> timedelta:
    """The duration, however long."""
    if seconds >= timedelta.max.total_seconds():
        return timedelta.max
    return timedelta(seconds=seconds)


def _refusal(error: IndexServiceError) -> Refusal:
    return Refusal(error.code, error.message, error.remedies.command)
