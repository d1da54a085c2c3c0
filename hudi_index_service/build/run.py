"""Runs a build from start to report: reconciles, runs the tasks, and records the outcome."""

import logging
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from itertools import islice
from time import monotonic, perf_counter, time
from typing import Literal

from hudi_index_service.build.entry.indexing import RowCount
from hudi_index_service.build.entry.planning_facts import merge_segments, summarize
from hudi_index_service.build.entry.task import BuildTask, TaskOutcome, TaskStatus
from hudi_index_service.build.estimate import estimate
from hudi_index_service.build.executor import Executor
from hudi_index_service.build.outcomes import (
    Build,
    DeferredEntry,
    ProgressCounter,
    deferred_entries,
    entry_key,
    failed_after,
    rows_known,
)
from hudi_index_service.build.reconcile import due_entries
from hudi_index_service.build.sample import Sample
from hudi_index_service.build.scope import base_files_in_scope
from hudi_index_service.build.strategy import NO_BACKFILL, UNLIMITED, Budget, Strategy
from hudi_index_service.config import Settings
from hudi_index_service.errors import (
    ConfigInvalid,
    EntryInvalid,
    IndexServiceError,
    NativeModuleMissing,
)
from hudi_index_service.hudi.table import HudiTable
from hudi_index_service.index.contract import IndexType
from hudi_index_service.index.factory import index_type
from hudi_index_service.index.metadata.build_records import (
    BuildProgress,
    BuildRecords,
    BuildState,
    FailedEntry,
    RunningBuild,
)
from hudi_index_service.index.metadata.definitions import Definitions
from hudi_index_service.index.metadata.entry import EntryListing
from hudi_index_service.index.metadata.retention import retained_instants

log = logging.getLogger(__name__)

_RECORDS_FOR_ESTIMATE = 100

Progress = Callable[[int, int], None]
"""Called with the number of tasks done and the total number of tasks, during the build."""

Details = Callable[[BuildProgress], None]
"""Called with the detailed progress of the build: rows, bytes, time left."""

RetryFailed = Literal["now", "backoff"]
"""``now``, or ``backoff`` to skip entries that failed recently (settings `build.retry_seconds`,
`build.retry_max_seconds`), as builds by wake-ups do."""


def run_build(
    table: HudiTable,
    definitions: Definitions,
    *,
    strategy: Strategy,
    executor: Executor,
    settings: Settings,
    instant: str | None = None,
    partitions: Sequence[str] | None = None,
    indexes: Collection[str] | None = None,
    damaged: Mapping[str, int] | None = None,
    budget: Budget = UNLIMITED,
    retry_failed: RetryFailed = "now",
    backfill: timedelta = NO_BACKFILL,
    dry_run: bool = False,
    with_estimate: bool = True,
    progress: Progress | None = None,
    details: Details | None = None,
) -> Build:
    """Builds what is due. A second run does nothing; a run after one that was stopped, cancelled or
    killed continues with what is missing.

    Args:
        definitions: Those of the table, as listed now.
        instant: The instant that wrote the base files to index; None for all.
        partitions: The partitions to index (see `partitions_in_scope`); None for all.
        indexes: The indexes to build for (see `due_entries`); None for all.
        damaged: For repairs, the only entries to build, anew (see `due_entries`).
        budget: The limits of the build.
        retry_failed: See `RetryFailed`.
        backfill: See `selector`.
        dry_run: Whether to report only what is due and its estimated cost.
        with_estimate: Whether a dry run estimates the cost. If no earlier build tells it, some rows
            are indexed for that, which may start Java.
        progress, details: See `Progress` and `Details`.

    Raises:
        TableFeatureUnsupported: the table cannot be read completely here.
        BuildInProgress: another builder works on the table.
        PermissionDenied: no write access below ``.hoodie/.index``.
        NativeModuleMissing: an index type's runtime, such as Java, is missing where the tasks would
            run; nothing was built.
        BuildFailed: the tasks could not be run to their end: the Spark job as a whole failed.
        ConfigInvalid: a partition or the instant does not exist, or `retry_failed` is unknown.
    """
    if retry_failed not in ("now", "backoff"):
        raise ConfigInvalid(
            f"Unknown value: retry_failed={retry_failed!r}.", remedy="Use now or backoff."
        )
    started = perf_counter()
    base_files = table.snapshot().base_files()
    due = due_entries(
        table,
        definitions,
        strategy,
        base_files=base_files_in_scope(table, base_files, instant, partitions),
        on=settings.build.on,
        indexes=indexes,
        retained_instants=retained_instants(table, settings),
        damaged=damaged,
        backfill=backfill,
    )
    if not due:
        return Build("", strategy, (), seconds=perf_counter() - started)
    records = BuildRecords(table.storage, stale_seconds=settings.build.stale_seconds)
    failed = records.failed_entries()
    deferred: list[DeferredEntry] = []
    if retry_failed == "backoff":
        deferred = deferred_entries(due, failed, settings.build)
        deferred_ids = {id(each.due) for each in deferred}
        due = [entry for entry in due if id(entry) not in deferred_ids]
    # Entries that failed before come last; else they could use up a small budget in every build.
    failed_keys = {each.key for each in failed}
    due.sort(key=lambda entry: entry_key(entry) in failed_keys)
    plan = Build("", strategy, tuple(due), deferred=tuple(deferred))
    if dry_run and not with_estimate:
        return replace(plan, seconds=perf_counter() - started)
    if dry_run:
        affordable = plan.due[: budget.affordable(each.base_file.size for each in due)]
        cost = estimate(
            affordable,
            islice(records.newest_first(), _RECORDS_FOR_ESTIMATE),
            executor=executor,
            sample=Sample(table.storage, (each.base_file for each in affordable), settings.build),
        )
        return replace(plan, estimate=cost, seconds=perf_counter() - started)
    if not due:
        return replace(plan, seconds=perf_counter() - started)
    names = sorted({entry.index_type for entry in due})
    missing = executor.missing_runtimes(names)
    if len(missing) == len(names):
        raise missing[names[0]]
    with records.start({"strategy": strategy.value, "due": len(due)}) as running:
        log.info("Build %s of %s: %d entries due.", running.id, table.storage.uri, len(due))
        run = _Run(table, plan, running, executor, settings, budget, started, missing)
        paths = {file.path for file in base_files}
        return run.execute(progress, details, failed_before=failed, paths=paths)


class _Run:
    """A build that has been recorded as started.

    Args:
        missing: Index types that cannot work where the tasks run → why. Their entries fail, and
            hold up no other.
    """

    def __init__(
        self,
        table: HudiTable,
        plan: Build,
        running: RunningBuild,
        executor: Executor,
        settings: Settings,
        budget: Budget,
        started: float,
        missing: Mapping[str, NativeModuleMissing],
    ) -> None:
        self._table = table
        self._plan = plan
        self._running = running
        self._executor = executor
        self._settings = settings
        self._budget = budget
        self._started = started
        possible = tuple(each for each in plan.due if each.index_type not in missing)
        self._entries = possible[: budget.affordable(each.base_file.size for each in possible)]
        self._is_cut = len(self._entries) < len(possible)
        self._missing = missing
        self._outcomes: list[TaskOutcome] = []
        self._cancelled = False
        self._row_count = RowCount()

    def execute(
        self,
        progress: Progress | None,
        details: Details | None,
        *,
        failed_before: Sequence[FailedEntry],
        paths: Collection[str],
    ) -> Build:
        """Runs the tasks and records the outcome, even if the build is interrupted."""
        for name, reason in self._missing.items():
            log.error("Build %s builds no %s entry: %s", self._running.id, name, reason)
        counter = ProgressCounter(self._entries, {})
        error: BaseException | None = None
        try:
            row_counts = rows_known(self._table, self._entries)
            counter = ProgressCounter(self._entries, row_counts, self._row_count)
            self._run(counter, progress, details)
            self._summarize(counter)
        except BaseException as raised:
            error = raised
            raise
        finally:
            build = self._build(error)
            failing = failed_after(failed_before, self._plan.due, build.outcomes, paths=paths)
            report = {
                **build.to_record(),
                "progress": counter.now().to_dict(),
                "failing": [each.to_dict() for each in failing],
            }
            if error is not None and not isinstance(error, KeyboardInterrupt):
                report["error"] = f"{type(error).__name__}: {error}"
            self._running.finish(report)
        log.info(
            "Build %s %s: %d built, %d failed, %d left, %.1f s.",
            *(build.id, build.state, len(build.built), len(build.failed), build.left),
            build.seconds,
        )
        return build

    def _run(
        self, counter: ProgressCounter, progress: Progress | None, details: Details | None
    ) -> None:
        self._running.beat(counter.now())
        last_beat = monotonic()
        results = self._executor.run(self._tasks())
        try:
            for outcome in results:
                if outcome is not None:
                    self._outcomes.append(outcome)
                    counter.add(outcome)
                    self._log(outcome)
                if details is not None:
                    details(counter.now())
                if progress is not None:
                    progress(len(self._outcomes), len(self._entries))
                if monotonic() - last_beat >= self._settings.build.heartbeat_seconds:
                    self._running.beat(counter.now())
                    last_beat = monotonic()
                    if self._running.cancel_requested():
                        log.warning("Build %s stops: it was cancelled.", self._running.id)
                        self._cancelled = True
                        return
        finally:
            self._wind_down(results, counter)
            self._add_late_outcomes(counter)

    def _add_late_outcomes(self, counter: ProgressCounter) -> None:
        """Adds the outcomes of entries published after the build stopped, by tasks that were still
        running and whose outcomes were not awaited."""
        reported = {(each.path, each.index_type) for each in self._outcomes}
        unreported = [e for e in self._entries if (e.base_file.path, e.index_type) not in reported]
        try:
            for name in sorted({entry.index_type for entry in unreported}):
                listing = EntryListing(self._table.storage, name)
                for entry in (each for each in unreported if each.index_type == name):
                    with suppress(EntryInvalid):
                        manifest = listing.find(entry.base_file).manifest
                        if manifest.build.id == self._running.id:
                            outcome = TaskOutcome.of(TaskStatus.BUILT, manifest)
                            self._outcomes.append(outcome)
                            counter.add(outcome)
        except (IndexServiceError, OSError) as error:
            log.warning("Build %s may have built more than it reports: %s", self._running.id, error)

    def _wind_down(
        self, results: Generator[TaskOutcome | None, None, None], counter: ProgressCounter
    ) -> None:
        """Cancels tasks that have not begun, and waits for the others. It keeps writing heartbeats,
        since a large base file can take longer than a silent build takes to count as dead."""
        with ThreadPoolExecutor(1, thread_name_prefix="index-build-end") as pool:
            closing = pool.submit(results.close)
            while not wait([closing], self._settings.build.heartbeat_seconds).done:
                self._running.beat(counter.now())
        closing.result()

    def _summarize(self, counter: ProgressCounter) -> None:
        """Writes summaries, so that first queries need not read each published manifest, and merges
        segments. A cancelled build leaves this to the next one."""
        built = {o.path for o in self._outcomes if o.status is TaskStatus.BUILT}
        instants: dict[str, set[str]] = {}
        for entry in self._entries:
            if entry.base_file.path in built:
                instants.setdefault(entry.index_type, set()).add(entry.base_file.instant)
        for name in () if self._cancelled else sorted(instants):
            self._running.beat(counter.now())
            summarize(self._table.storage, name, instants[name])
            self._running.beat(counter.now())
            merge_segments(self._table.storage, name)

    def _tasks(self) -> list[BuildTask]:
        storage, deadline = self._table.storage, None
        configured: dict[str, IndexType | None] = {}  # tasks look up those without settings
        for name in {entry.index_type for entry in self._entries}:
            kind = index_type(name).configured(self._settings)
            configured[name] = None if kind is index_type(name) else kind
        if self._budget.requests_per_second is not None:
            rate = self._budget.requests_per_second / self._executor.processes
            storage = storage.throttled(rate)
        if self._budget.minutes is not None:
            deadline = time() + self._budget.minutes * 60
        return [
            BuildTask(
                storage=storage,
                due=entry,
                build_id=self._running.id,
                part_bytes=self._settings.build.part_mb * 2**20,
                memory_mb=self._settings.build.memory_mb,
                batch_rows=self._settings.build.batch_rows,
                schema=self._table.schema(),
                deadline=deadline,
                kind=configured[entry.index_type],
                indexed=self._row_count,
            )
            for entry in self._entries
        ]

    def _log(self, outcome: TaskOutcome) -> None:
        build, where = self._running.id, f"{outcome.index_type} entry of {outcome.path}"
        if outcome.status is TaskStatus.FAILED:
            log.error("Build %s: %s: %s", build, where, outcome.error)
        else:
            log.info("Build %s: %s: %s.", build, where, outcome.status.value)
        for column, reason in outcome.skipped.items():
            log.warning("Build %s: %s does not hold column %s: %s", build, where, column, reason)

    def _build(self, error: BaseException | None) -> Build:
        """The build as it is now."""
        build = replace(
            self._plan,
            id=self._running.id,
            outcomes=(*self._outcomes, *self._refused()),
            seconds=perf_counter() - self._started,
        )
        if isinstance(error, KeyboardInterrupt):
            return replace(build, state=BuildState.CANCELLED, stopped_by="interrupted")
        if self._cancelled:
            return replace(build, state=BuildState.CANCELLED)
        stopped_by = self._stopped_by()
        if error is not None or build.failed:
            return replace(build, state=BuildState.FAILED, stopped_by=stopped_by)
        state = BuildState.FINISHED if stopped_by is None else BuildState.STOPPED
        return replace(build, state=state, stopped_by=stopped_by)

    def _refused(self) -> Iterator[TaskOutcome]:
        """The failures of the entries whose index type cannot work here."""
        for each in self._plan.due:
            error = self._missing.get(each.index_type)
            if error is not None:
                path = each.base_file.path
                yield TaskOutcome(path, each.index_type, TaskStatus.FAILED, error=str(error))

    def _stopped_by(self) -> str | None:
        if any(each.status is TaskStatus.LEFT for each in self._outcomes):
            return "budget spent: minutes"
        if not self._is_cut:
            return None
        by_files = len(self._entries) == self._budget.files
        return f"budget spent: {'files' if by_files else 'bytes'}"
