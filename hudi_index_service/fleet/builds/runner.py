"""Carries out an order in a child: builds, cleans or verifies one table."""

from datetime import UTC, datetime

from hudi_index_service.build.outcomes import Build
from hudi_index_service.build.strategy import Budget, Strategy
from hudi_index_service.config import Settings
from hudi_index_service.errors import BuildInProgress, IndexServiceError
from hudi_index_service.fleet.builds.child import Progress
from hudi_index_service.fleet.builds.definitions import define, duration
from hudi_index_service.fleet.builds.messages import Ended, Order
from hudi_index_service.hook.table_upkeep import TableUpkeep
from hudi_index_service.index.metadata.build_records import BuildState
from hudi_index_service.wording import counted


def run(order: Order, progress: Progress) -> Ended:
    """Carries out the order; see `Ended` for how errors are told.

    Raises:
        KeyboardInterrupt: it was cancelled.
        MemoryError: there is no more.
    """
    settings = Settings(**order.settings)
    upkeep = TableUpkeep(
        order.table,
        storage_options=order.storage_options or None,
        settings=settings,
        strategy=Strategy(order.usual_strategy),
        clean=order.clean,
        defer_failed=order.defer_failed,
    )
    with upkeep:
        try:
            if order.action == "clean":
                return _clean(upkeep, order)
            if order.action == "verify":
                return _verify(upkeep, order)
            if order.action == "define":
                found = define(upkeep.table, order)
                return Ended(order.request, "finished", definitions=found.to_dict())
            return _build(upkeep, order, progress, settings)
        except BuildInProgress as error:
            return _error(order, error, outcome="busy")
        except IndexServiceError as error:
            return _error(order, error)


def _build(upkeep: TableUpkeep, order: Order, progress: Progress, settings: Settings) -> Ended:
    version = upkeep.version()
    strategy = Strategy(order.strategy) if order.strategy else None
    build = upkeep.run(
        strategy=strategy,
        budget=Budget(**order.budget),  # type: ignore[arg-type]
        backfill=duration(order.backfill_seconds),
        details=progress,
    )
    ended = Ended(
        order.request,
        "cancelled" if build.state is BuildState.CANCELLED else "finished",
        built=len(build.built),
        retry_seconds=_retry_seconds(build, settings),
        version=version,
    )
    try:
        build.raise_for_failures()
    except IndexServiceError as error:
        return Ended(
            order.request,
            "failed",
            code=error.code,
            message=error.message,
            remedy=error.remedy,
            built=ended.built,
            retry_seconds=ended.retry_seconds,
            version=version,
        )
    return ended


def _retry_seconds(build: Build, settings: Settings) -> float | None:
    """When base files that failed, now or before, are due again."""
    waits = [float(settings.build.retry_seconds)] if build.failed else []
    if build.retry_at is not None:
        waits.append(max(0.0, (build.retry_at - datetime.now(UTC)).total_seconds()))
    return min(waits, default=None)


def _clean(upkeep: TableUpkeep, order: Order) -> Ended:
    upkeep.peek()  # the write config may say how long entries are kept
    cleaning = upkeep.table.clean(dry_run=order.dry_run)
    done = "would be deleted" if order.dry_run else "deleted"
    summary = f"{counted(len(cleaning.removals), 'file')} {done}."
    return Ended(order.request, "finished", summary=summary)


def _verify(upkeep: TableUpkeep, order: Order) -> Ended:
    verification = upkeep.table.verify(repair=order.repair, fraction=order.fraction)
    damaged = len({each.base_file for each in verification.unrepaired})
    repaired = len({each.base_file for each in verification.problems}) - damaged
    found = f"{damaged} damaged" + (f", {repaired} repaired" if order.repair else "")
    summary = f"{counted(verification.entries, 'entry')} read, {found}."
    if not damaged:
        return Ended(order.request, "finished", summary=summary)
    first = verification.unrepaired[0]
    return Ended(
        order.request,
        "failed",
        code="ENTRY_INVALID",
        message=f"{summary} {first.path}: {first.reason}",
        remedy=f"Queries scan these base files. Rebuild their entries: `hudi-index verify "
        f"{order.table} --repair`.",
        summary=summary,
        damaged=damaged,
    )


def _error(order: Order, error: IndexServiceError, *, outcome: str = "failed") -> Ended:
    return Ended(
        order.request,
        outcome,
        code=error.code,
        message=error.message,
        remedy=error.remedies.command,
        broke_off=True,
    )
