"""Carries out an order in a child: builds, cleans or verifies one table, or changes its
definitions."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from hudi_index_service.build.outcomes import Build
from hudi_index_service.build.strategy import Strategy
from hudi_index_service.config import Settings
from hudi_index_service.errors import BuildInProgress, EntryInvalid, IndexChanged, IndexServiceError
from hudi_index_service.fleet.builds.by_spark import build_by_spark, is_for_spark
from hudi_index_service.fleet.builds.child import Progress
from hudi_index_service.fleet.builds.messages import Ended, Order, ended_by
from hudi_index_service.fleet.definitions import apply, plan_of
from hudi_index_service.fleet.observation import DefinitionsSeen, Refusal
from hudi_index_service.hook.table_upkeep import TableUpkeep
from hudi_index_service.index.metadata.build_records import BuildState
from hudi_index_service.wording import counted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def run(order: Order, progress: Progress, *, spark: "SparkSession | None" = None) -> Ended:
    """Carries out the order; see `Ended` for how errors are told.

    Args:
        spark: Whose executors build; None for this machine, or what the order says of Spark.

    Raises:
        KeyboardInterrupt: it was cancelled.
        MemoryError: there is no more.
    """
    policy = order.policy
    upkeep = TableUpkeep(
        order.table,
        spark=spark,
        storage_options=order.storage_options or None,
        settings=Settings(**order.settings),
        strategy=policy.strategy,
        clean=policy.clean,
        defer_failed=not order.is_asked,
        options=policy.write_config,
    )
    with upkeep:
        return run_with(upkeep, order, progress, tell_version=True)


def run_with(
    upkeep: TableUpkeep, order: Order, progress: Progress, *, tell_version: bool = False
) -> Ended:
    """As `run`, with an upkeep of the table that stays open.

    Args:
        tell_version: Whether the service looks at versions of the table.
    """
    try:
        if order.action == "clean":
            return _clean(upkeep, order)
        if order.action == "verify":
            return _verify(upkeep, order)
        if order.action == "define":
            return _define(upkeep, order)
        version = upkeep.version() if tell_version else ""
        return _build(upkeep, order, progress, version)
    except BuildInProgress as error:
        return ended_by(order, error, outcome="busy")
    except IndexServiceError as error:
        return ended_by(order, error)


def _build(upkeep: TableUpkeep, order: Order, progress: Progress, version: str) -> Ended:
    strategy = Strategy(order.strategy) if order.strategy else None
    if order.policy.spark_above is not None:
        what = strategy or upkeep.peek().strategy
        if is_for_spark(order, upkeep.table, what):
            return build_by_spark(order, progress)
    build = upkeep.run(
        strategy=strategy,
        budget=order.policy.budget,
        backfill=order.policy.backfill,
        details=progress,
    )
    ended = Ended(
        order.request,
        "cancelled" if build.state is BuildState.CANCELLED else "finished",
        built=len(build.built),
        failed=len(build.failed),
        deferred=len(build.deferred),
        retry_seconds=_retry_seconds(build, order),
        version=version,
    )
    try:
        build.raise_for_failures()
    except IndexServiceError as error:
        return replace(ended, outcome="failed", error=Refusal.of(error))
    return ended


def _retry_seconds(build: Build, order: Order) -> float | None:
    """When base files that failed, now or before, are due again."""
    waits = [float(Settings(**order.settings).build.retry_seconds)] if build.failed else []
    if build.retry_at is not None:
        waits.append(max(0.0, (build.retry_at - datetime.now(UTC)).total_seconds()))
    return min(waits, default=None)


def _define(upkeep: TableUpkeep, order: Order) -> Ended:
    """Plans what would bring the table's definitions to what the fleet's file says, and changes
    them if that is approved, or need not be. It may start a JVM."""
    table, policy = upkeep.table, order.policy
    plan = plan_of(table, policy, settings=Settings(**order.settings))
    sentences, drift, failed = plan.sentences, plan.differences.drift, dict(plan.invalid)
    error: IndexServiceError | None = None
    too_much = plan.why_not_as_approved(order.plan_id, order.plan_bytes) if order.is_asked else ""
    if too_much:
        error = IndexChanged(too_much, remedy="Approve the new plan, if it is as it should be.")
    is_approved = order.is_asked and not too_much
    if plan.changes and (is_approved or plan.may_apply_unasked(policy)):
        unchanged = apply(table, policy, plan)
        failed |= unchanged
        too_much, error = "", next(iter(unchanged.values()), None)
        done = {each.name for each in plan.changes} - unchanged.keys()
        sentences, drift = (), tuple(name for name in drift if name not in done)
    found = DefinitionsSeen(
        invalid_definition=next(map(Refusal.of, failed.values()), None),
        clash=plan.differences.clash,
        drift=drift,
        plan=(too_much, *sentences) if too_much else sentences,
        plan_id=plan.id if sentences else "",
        plan_bytes=plan.bytes if sentences else 0,
    )
    if error is None:
        return Ended(order.request, "finished", definitions=found)
    # What failed, as on a full disk, is tried again; another plan waits for its approval. An index
    # that the table cannot have is no failure.
    broke_off = not isinstance(error, IndexChanged)
    return replace(ended_by(order, error), broke_off=broke_off, definitions=found)


def _clean(upkeep: TableUpkeep, order: Order) -> Ended:
    upkeep.peek()  # the write config may say how long entries are kept
    cleaning = upkeep.table.clean(dry_run=order.dry_run)
    done = "would be deleted" if order.dry_run else "deleted"
    summary = f"{counted(len(cleaning.removals), 'file')} {done}."
    return Ended(order.request, "finished", summary=summary)


def _verify(upkeep: TableUpkeep, order: Order) -> Ended:
    fraction = 1.0 if order.is_asked else order.policy.verify_sample
    verification = upkeep.table.verify(repair=order.repair, fraction=fraction)
    damaged = len({each.base_file for each in verification.unrepaired})
    repaired = len({each.base_file for each in verification.problems}) - damaged
    found = f"{damaged} damaged" + (f", {repaired} repaired" if order.repair else "")
    summary = f"{counted(verification.entries, 'entry')} read, {found}."
    if not damaged:
        return Ended(order.request, "finished", summary=summary)
    first = verification.unrepaired[0]
    error = Refusal(
        EntryInvalid.code,
        f"{summary} {first.path}: {first.reason}",
        f"Queries scan these base files. Rebuild their entries: `hudi-index verify {order.table} "
        "--repair`.",
    )
    return Ended(order.request, "failed", error, summary=summary, damaged=damaged)
