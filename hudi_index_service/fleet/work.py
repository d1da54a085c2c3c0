"""What waits and what runs: tables are woken, and their turn comes; then a child process has an
order, whose end says what is next."""

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from threading import Condition
from time import monotonic
from typing import Any

from hudi_index_service.config import Settings
from hudi_index_service.errors import IndexServiceError
from hudi_index_service.fleet.builds.messages import Counted, Ended
from hudi_index_service.fleet.builds.pool import Job
from hudi_index_service.fleet.ledger import Action, Ledger, Request
from hudi_index_service.fleet.observation import EndedBuild, Observation, Refusal
from hudi_index_service.fleet.policies.policy import TablePolicy
from hudi_index_service.fleet.queue import FairQueue
from hudi_index_service.fleet.table_state import TableState, order_of
from hudi_index_service.fleet.task import Task
from hudi_index_service.fleet.tracing import Span, trace_of, traceparent
from hudi_index_service.index.metadata.build_records import BuildProgress
from hudi_index_service.storage.waiting import Backoff
from hudi_index_service.wording import counted

log = logging.getLogger(__name__)

_LONGEST_WAIT = 60.0
"""A window opens without a wake-up."""


@dataclass(frozen=True, slots=True)
class _Began:
    """When something began, by a clock that nobody sets, and its span."""

    at: float
    span: Span


def _extra(table: str, build: str, trigger: str, trace: str) -> dict[str, str]:
    """The keys of a line of the log."""
    return {"table": table, "build": build, "trigger": trigger, "trace": trace}


def _began(requests: Sequence[Request], policy: TablePolicy) -> _Began:
    first, *others = requests
    span = Span(
        first.action,
        kind="consumer",
        parent=first.traceparent,
        links=[each.traceparent for each in others],
        table=policy.name,
        build=first.id,
        trigger=first.trigger,
    )
    return _Began(monotonic(), span)


class Listener:
    """Told what happens, in the thread in which it does, at once: it must be quick, and must not
    call the supervisor. By default it does nothing."""

    def observed(self, observation: Observation) -> None:
        """A table was looked at, or something about its builds has changed."""

    def build_ended(self, policy: TablePolicy, ended: EndedBuild, seconds: float) -> None:
        """A build has ended after these seconds, by a clock that nobody sets."""

    def counted(self, counted: Counted) -> None:
        """What a process of builds has done since it last told."""

    def muted(self, table: str, code: str, until: datetime) -> None:
        """An operator has muted a reason, now or before the service began."""


class Work:
    """The tables with what waits and runs. Methods are for a thread that holds `changed`, except
    for `take`, which waits for it.

    Args:
        look_soon: Has a table looked at, by its base path.
        slots: How many jobs there are at a time at most.

    Attributes:
        changed: Notified when something was added, or has ended.
        tables: By base path.
        is_ending: Whether nothing more is asked for.
        is_closing: Whether nothing more begins.
        is_cancelling: Whether what is cancelled now is to be done after the next start.
    """

    def __init__(
        self,
        ledger: Ledger,
        settings: Settings,
        listener: Listener,
        look_soon: Callable[[str], None],
        *,
        slots: int,
    ) -> None:
        hook = settings.hook
        self.changed = Condition()
        self.tables: dict[str, TableState] = {}
        self.is_ending = self.is_closing = self.is_cancelling = False
        self._ledger = ledger
        self._settings = settings
        self._listener = listener
        self._look_soon = look_soon
        self._jobs: dict[str, Job] = {}
        self._ends: dict[str, Future[EndedBuild]] = {}
        backoff = Backoff(hook.backoff_seconds, hook.backoff_max_seconds)
        self._queue = FairQueue(backoff, most_doubtful=max(1, slots // 2))

    def jobs(self) -> list[Job]:
        """What runs."""
        return list(self._jobs.values())

    @property
    def is_idle(self) -> bool:
        """Whether nothing runs, nor waits that may run now."""
        return not self._jobs and not self._queue.has_ready(monotonic(), self._may_run)

    @property
    def waiting(self) -> int:
        """The number of tables that wait."""
        return len(self._queue)

    def begin_to_end(self) -> None:
        """Nothing more is asked for. What waits for a table that rests has its turn now, except for
        a mere retry."""
        self.is_ending = True
        for uri, state in self.tables.items():
            if any(each.trigger != "retry" for each in state.waiting):
                self._queue.wake_from_rest(uri)
        self.changed.notify_all()

    def remove(self, uri: str) -> TableState:
        """The table leaves the fleet. What runs goes on; what operators asked for waits until it
        comes back."""
        state = self.tables[uri]
        for each in state.waiting:
            if not each.is_kept:
                self._forget(each)
        self._queue.forget(uri)
        return self.tables.pop(uri)

    def end_of(self, request: str) -> Future[EndedBuild]:
        """See `Supervisor.end_of`, of a request that waits or runs."""
        return self._ends.setdefault(request, Future())

    def withdraw(self, state: TableState, request: str) -> None:
        """Cancels a request that waits."""
        waiting, now = state.remove(request), datetime.now(UTC)
        if not state.waiting:
            self._queue.withdraw(state.uri)
        self._take_ends(state, waiting.ended(now, now, Ended(request, "cancelled")))
        if waiting.action == "build" and not waiting.is_kept:
            self.settle(state, state.version)  # else the next poll would ask again
        self.see(state)
        self.changed.notify_all()

    def wake(self, state: TableState, trigger: str, action: Action = "build") -> Request:
        """Has a table built by itself; what waits already serves."""
        waiting = state.automatic(action)
        if waiting is not None and (waiting.trigger == trigger or trigger != "callback"):
            return waiting
        if waiting is None:
            waiting = state.new_request(Task(action), trigger)
        else:
            waiting = replace(waiting, trigger=trigger, traceparent=traceparent())
        self.add(state, waiting)
        return waiting

    def add(self, state: TableState, request: Request) -> None:
        """Adds a request to what waits, or changes it."""
        self._ledger.add(request)
        state.add(request)
        self._queue.wake(state.uri, monotonic(), priority=state.policy.priority)
        if request.is_kept:
            self._queue.end_rest(state.uri)
        self.see(state)
        self.changed.notify_all()

    def take(self, seconds: float) -> Job | None:
        """The next job; see `Take`."""
        until = monotonic() + seconds
        with self.changed:
            while not self.is_closing:
                now = monotonic()
                uri = self._queue.take(now, self._may_run)
                if uri is not None:
                    job = self._begin(self.tables[uri])
                    if job is not None:
                        return job
                    continue
                if now >= until:
                    return None
                delay = self._queue.delay(now) or _LONGEST_WAIT
                self.changed.wait(min(delay, until - now, _LONGEST_WAIT))
        return None

    def _may_run(self, uri: str) -> bool:
        state = self.tables[uri]
        if not state.policy.enabled:
            return False
        if any(each.is_kept or each.action == "define" for each in state.waiting):
            return True
        return state.policy.windows.is_open(datetime.now(UTC))

    def _begin(self, state: TableState) -> Job | None:
        if not state.waiting:  # its failed base files are due again
            self._ledger.add(retry := state.new_request(Task("build"), "retry"))
            state.add(retry)
        requests = state.next_together()
        if state.waiting:
            self._queue.wake(state.uri, monotonic(), priority=state.policy.priority)
        policy, began = state.policy, _began(requests, state.policy)
        try:
            parent = began.span.traceparent
            order = order_of(requests, policy, self._settings, traceparent=parent)
        except IndexServiceError as error:  # such as a secret's file that is gone
            refused = Ended(requests[0].id, "failed", Refusal.of(error), broke_off=True)
            state.begin(requests)
            self._end(state, requests, refused, began)
            return None
        job = Job(
            order,
            policy.build_timeout.total_seconds(),
            progress=lambda now: self._progressed(state, now),
            ended=lambda ended: self._ended(state, requests, ended, began),
            counted=self._listener.counted,
        )
        state.begin(requests, job)
        self._jobs[requests[0].id] = job
        self.see(state)
        return job

    def _progressed(self, state: TableState, progress: BuildProgress) -> None:
        with self.changed:
            if state.progress is None:
                self._log_begin(state, progress)
            state.advance(progress)
            self.see(state)

    def _ended(
        self, state: TableState, requests: Sequence[Request], ended: Ended, began: "_Began"
    ) -> None:
        with self.changed:
            self._end(state, requests, ended, began)

    def _end(
        self, state: TableState, requests: Sequence[Request], ended: Ended, began: "_Began"
    ) -> None:
        error = ended.error
        code = "" if error is None else error.code
        began.span.end(code, outcome=ended.outcome, built=ended.built)
        started, action = state.started, requests[0].action
        self._jobs.pop(requests[0].id, None)
        state.end()
        self.changed.notify_all()
        is_cancelled = ended.outcome == "cancelled"
        is_later = ended.outcome in ("busy", "interrupted")
        if is_later or (is_cancelled and self.is_cancelling):
            log.info(
                "%s: %s later. %s",
                *(state.policy.name, action, "" if error is None else error.message),
                extra=_extra(state.uri, ended.request, requests[0].trigger, began.span.trace),
            )
            for each in state.put_back(requests):
                self._forget(each)
            self._rest(state, failed=True)
            self.see(state)
            return
        now = datetime.now(UTC)
        ends = [each.ended(started, now, ended) for each in requests]
        self._log(state, ends[0], began.span.trace)
        self._take_ends(state, *ends)
        if action == "build":
            self._after_build(state, ended)
            self._listener.build_ended(state.policy, ends[0], monotonic() - began.at)
        elif action == "define":
            if ended.definitions is not None:
                self.see(state, **ended.definitions.fields())
            if ended.broke_off or ended.definitions is None:
                state.planned = None  # once it has rested, it is tried again
                self.see(state, drift=state.drift)
        elif action == "verify":  # one that broke off is tried again in a week
            before = self._ledger.table(state.uri).damaged
            self._ledger.verify(state.uri, now, before if ended.broke_off else ended.damaged)
        self._rest(state, failed=ended.broke_off if action in ("build", "define") else None)
        if any(each.is_kept for each in state.waiting):  # asked for while it ran
            self._queue.end_rest(state.uri)
        if ended.retry_seconds is not None and self._is_member(state):
            self._queue.wake_later(state.uri, monotonic(), ended.retry_seconds)
        state.is_stale = True
        self.see(state)
        self._look_soon(state.uri)

    def _take_ends(self, state: TableState, *ends: EndedBuild) -> None:
        self._ledger.end(state.uri, *ends)
        for each in ends:
            if (awaited := self._ends.pop(each.id, None)) is not None:
                awaited.set_result(each)

    def _forget(self, request: Request) -> None:
        """It will have no end."""
        self._ledger.forget(request.id)
        if (awaited := self._ends.pop(request.id, None)) is not None:
            awaited.cancel()

    def _after_build(self, state: TableState, ended: Ended) -> None:
        if ended.outcome == "cancelled" or not ended.broke_off:
            self.settle(state, ended.version or state.version)
        elif not self.is_ending and state.automatic("build") is None:
            retry = state.new_request(Task("build"), "retry")
            self._ledger.add(retry)
            state.add(retry)

    def _rest(self, state: TableState, *, failed: bool | None) -> None:
        """Ends the table's turn; it waits again if it has requests."""
        if self._is_member(state):
            now = monotonic()
            self._queue.done(state.uri, now, failed=failed)
            if state.waiting:
                self._queue.wake(state.uri, now, priority=state.policy.priority)

    def _is_member(self, state: TableState) -> bool:
        return self.tables.get(state.uri) is state

    def settle(self, state: TableState, version: str) -> None:
        """All is built for this version of the table, or is not wanted."""
        self._ledger.settle(state.uri, state.settled_as(version))

    def _log_begin(self, state: TableState, progress: BuildProgress) -> None:
        """Of what builds something. A retry is told by how it ends, so that its failures are
        counted as repeats."""
        first = state.together[0]
        if first.trigger != "retry":
            trace = trace_of(first.traceparent)
            log.info(
                "%s: %s begins: %s",
                *(state.policy.name, first.action, counted(progress.files, "entry")),
                extra=_extra(state.uri, first.id, first.trigger, trace),
            )

    def _log(self, state: TableState, ended: EndedBuild, trace: str) -> None:
        extra = _extra(state.uri, ended.id, ended.trigger, trace)
        name, what = state.policy.name, ended.action
        if ended.error is not None:
            log.error(
                "%s: %s %s: %s: %s",
                *(name, what, ended.outcome, ended.error.code, ended.error.message),
                extra=extra,
            )
        elif ended.built or ended.summary or ended.outcome != "finished":
            found = ended.summary or f"{ended.built} built"
            log.info("%s: %s %s: %s", name, what, ended.outcome, found, extra=extra)

    def see(self, state: TableState, **changes: Any) -> None:
        """Brings the table's observation up to what waits, runs and has ended, and changes further
        fields of it."""
        before, known = state.observation, self._ledger.table(state.uri)
        state.observation = replace(
            before,
            queued=state.queued,
            running=state.running,
            ended=tuple(known.builds),
            damaged=known.damaged,
            muted=dict(known.mutes),
            **changes,
        )
        if state.observation != before:
            self._listener.observed(state.observation)
