"""Brings a table's definitions to what the fleet's file says, in a child: a plan may need a JVM."""

from hudi_index_service.config import Settings
from hudi_index_service.errors import IndexChanged, IndexServiceError
from hudi_index_service.fleet.builds.messages import Order
from hudi_index_service.fleet.definitions import apply, plan_of
from hudi_index_service.fleet.observation import DefinitionsSeen, Refusal
from hudi_index_service.table import IndexedTable


def define(table: IndexedTable, order: Order) -> tuple[DefinitionsSeen, IndexServiceError | None]:
    """Plans the changes, and makes them if they are approved, or need not be. Returns also why what
    was to be made was not: `IndexChanged` if the approved plan was another one. An index that the
    table cannot have is no such failure.

    Raises:
        IndexServiceError: the table cannot be read, or written.
    """
    policy = order.policy
    plan = plan_of(table, policy, settings=Settings(**order.settings))
    found, failed = plan.differences, dict(plan.invalid)
    sentences, drift = plan.sentences, found.drift
    too_much = plan.why_not_as_approved(order.plan_id, order.plan_bytes) if order.is_asked else ""
    may_apply = order.is_asked and not too_much
    error: IndexServiceError | None = None
    if too_much:
        error = IndexChanged(too_much, remedy="Approve the new plan, if it is as it should be.")
    if plan.changes and (may_apply or plan.may_apply_unasked(policy)):
        too_much, error = "", None
        applied = apply(table, policy, plan)
        failed |= applied.failed
        error = next(iter(applied.failed.values()), None)
        done = {each.name for each in applied.changes}
        sentences, drift = (), tuple(name for name in drift if name not in done)
    found_now = DefinitionsSeen(
        invalid_definition=next(map(Refusal.of, failed.values()), None),
        clash=found.clash,
        drift=drift,
        plan=(too_much, *sentences) if too_much else sentences,
        plan_id=plan.id if sentences else "",
        plan_bytes=plan.bytes if sentences else 0,
    )
    return found_now, error
