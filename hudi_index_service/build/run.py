"""A build from wake-up to report: reconcile, run the tasks, record what happened."""

import logging
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from time import monotonic, perf_counter
from typing import Any

from hudi_index_service.build.executor import Executor
from hudi_index_service.build.reconcile import DueEntry, due_entries
from hudi_index_service.build.record import BuildRecords, RunningBuild
from hudi_index_service.build.strategy import Strategy
from hudi_index_service.build.task import BuildTask, TaskOutcome, TaskStatus
from hudi_index_service.config import Settings
from hudi_index_service.errors import BuildFailed
from hudi_index_service.index.requirements import Requirement
from hudi_index_service.table.protocol import BaseFile, HudiTable

log = logging.getLogger(__name__)

Progress = Callable[[int, int], None]
"""Called with the number of tasks done and the number of tasks in all."""


@dataclass(frozen=True, slots=True)
class Build:
    """What a build did, or (dry run) would do.

    Attributes:
        id: The record's number; "" when there was nothing to record.
        due: The entries that were due.
        outcomes: What became of each; empty for a dry run.
        seconds: From reconcile to report.
    """

    id: str
    strategy: Strategy
    due: tuple[DueEntry, ...]
    outcomes: tuple[TaskOutcome, ...] = field(default=())
    seconds: float = 0.0

    @property
    def built(self) -> tuple[TaskOutcome, ...]:
        """The entries that this build made."""
        return tuple(o for o in self.outcomes if o.status is TaskStatus.BUILT)

    @property
    def failed(self) -> tuple[TaskOutcome, ...]:
        """The entries that could not be made."""
        return tuple(o for o in self.outcomes if o.status is TaskStatus.FAILED)

    def raise_for_failures(self) -> "Build":
        """Itself, if nothing failed.

        Raises:
            BuildFailed: naming the first failure; what succeeded stays published.
        """
        if self.failed:
            first = self.failed[0]
            raise BuildFailed(
                f"{len(self.failed)} of {len(self.due)} entries could not be built. "
                f"{first.path}: {first.error}"
            )
        return self


def run_build(
    table: HudiTable,
    requirements: Sequence[Requirement],
    *,
    strategy: Strategy,
    executor: Executor,
    settings: Settings,
    instant: str | None = None,
    partitions: Sequence[str] | None = None,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> Build:
    """Builds what is due. Doing it twice does nothing the second time.

    Args:
        instant: Only base files that this instant wrote.
        partitions: Only base files in these partitions (paths relative to the table).
        dry_run: Only say what is due.

    Raises:
        TableFeatureUnsupported: the table cannot be read whole here.
        BuildInProgress: another builder works on the table.
        PermissionDenied: no write access below ``.hoodie/.index``.
        BuildFailed: the tasks could not be run to their end.
    """
    started = perf_counter()
    base_files = _in_scope(table.snapshot().base_files(), instant, partitions)
    due = due_entries(
        table,
        requirements,
        strategy,
        base_files=base_files,
        retained_instants=_retained(table, settings),
    )
    if dry_run or not due:
        return Build("", strategy, tuple(due), seconds=perf_counter() - started)
    records = BuildRecords(table.storage, stale_seconds=settings.build.stale_seconds)
    running = records.start({"strategy": strategy.value, "due": len(due)})
    log.info("Build %s of %s: %d entries due.", running.id, table.storage.uri, len(due))
    outcomes: list[TaskOutcome] = []
    tasks = [_task(table, entry, running, settings) for entry in due]

    def build_so_far() -> Build:
        return Build(running.id, strategy, tuple(due), tuple(outcomes), perf_counter() - started)

    try:
        _run_all(executor, tasks, outcomes, running, settings, progress)
    except BaseException as error:
        running.finish({**_report(build_so_far()), "error": f"{type(error).__name__}: {error}"})
        raise
    build = build_so_far()
    running.finish(_report(build))
    for failure in build.failed:
        log.error("Build %s: %s: %s", build.id, failure.path, failure.error)
    return build


def _run_all(
    executor: Executor,
    tasks: list[BuildTask],
    outcomes: list[TaskOutcome],
    running: RunningBuild,
    settings: Settings,
    progress: Progress | None,
) -> None:
    running.beat()
    last_beat = monotonic()
    with closing(executor.run(tasks)) as results:
        for outcome in results:
            if outcome is not None:
                outcomes.append(outcome)
            if progress is not None:
                progress(len(outcomes), len(tasks))
            if monotonic() - last_beat >= settings.build.heartbeat_seconds:
                running.beat()
                last_beat = monotonic()


def _task(table: HudiTable, due: DueEntry, running: RunningBuild, settings: Settings) -> BuildTask:
    return BuildTask(
        storage=table.storage,
        due=due,
        build_id=running.id,
        memory_mb=settings.build.memory_mb,
        batch_rows=settings.build.batch_rows,
    )


def _in_scope(
    base_files: Sequence[BaseFile], instant: str | None, partitions: Sequence[str] | None
) -> list[BaseFile]:
    wanted = None if partitions is None else {partition.strip("/") for partition in partitions}
    return [
        file
        for file in base_files
        if (instant is None or file.instant == instant)
        and (wanted is None or file.partition in wanted)
    ]


def _retained(table: HudiTable, settings: Settings) -> set[str] | None:
    """With ``retention: instant``, the instants whose entries the cleaner would keep."""
    if settings.clean.retention == "file-slice":
        return None
    return {instant.requested for instant in table.completed_instants()}


def _report(build: Build) -> dict[str, Any]:
    return {
        "due": len(build.due),
        "built": len(build.built),
        "failed": len(build.failed),
        "seconds": round(build.seconds, 3),
        "outcomes": [{**asdict(each), "status": each.status.value} for each in build.outcomes],
    }
