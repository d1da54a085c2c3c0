"""The running fleet: looks at timelines, queues what is due, and has it built in child processes.

The timeline is the queue. Polls, callbacks and requests only wake a table; what is due follows from
its timeline, definitions and entries. So a service that was killed goes on where it was, and two
services on one table do no harm: the loser of a race waits.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from datetime import UTC, datetime, timedelta
from functools import partial

from hudi_index_service import config
from hudi_index_service.config import Settings
from hudi_index_service.errors import (
    CallbackRefused,
    IndexServiceError,
    RequestUnknown,
    TableNotInFleet,
)
from hudi_index_service.fleet.builds.pool import Pool, Slots, Take, fitting
from hudi_index_service.fleet.builds.process import RUNNER, Limits
from hudi_index_service.fleet.ledger import Action, Ledger
from hudi_index_service.fleet.looks import Look
from hudi_index_service.fleet.observation import (
    EndedBuild,
    Observation,
    Refusal,
    RunningBuild,
    Warmed,
)
from hudi_index_service.fleet.policies.policy import TablePolicy
from hudi_index_service.fleet.polls import Polls, share_of
from hudi_index_service.fleet.shard import Shard
from hudi_index_service.fleet.table_state import TableState
from hudi_index_service.fleet.task import Requested, Task
from hudi_index_service.fleet.tracing import Span
from hudi_index_service.fleet.work import Listener, Work
from hudi_index_service.storage.store import normalize_uri
from hudi_index_service.wording import counted, shortened

log = logging.getLogger(__name__)

MAX_WAITING = 1_000
"""Requests of operators that may wait at a time."""

_WEEK = timedelta(days=7)
_NOTHING_IS_LOST = "Nothing is lost: the service builds what is due from the table's timeline."


class Supervisor:
    """Its methods may be called in any thread. What it tells of tables comes from memory, at once;
    those that name one raise `TableNotInFleet` for an unknown one.

    Args:
        policies: The tables.
        settings: The process's by default.
        limits: Of the child processes; by default as many as `hook.parallelism` says, if memory and
            processors allow.
        shard: Which of the tables are this service's.
        listener: Told what happens.
        runner: As for `Child`.
        slots: Makes what runs jobs; by default child processes.
        looks: How many tables are looked at at a time; 0 for none, so that requests alone count.
        remembers: Whether requests and outcomes outlast the process, in the state folder.
    """

    def __init__(
        self,
        policies: Iterable[TablePolicy] = (),
        *,
        settings: Settings | None = None,
        limits: Limits | None = None,
        shard: Shard | None = None,
        listener: Listener | None = None,
        runner: str = RUNNER,
        slots: Callable[[Take], Slots] | None = None,
        looks: int = 4,
        remembers: bool = True,
    ) -> None:
        self._settings = config.effective(settings)
        self._shard = shard or Shard()
        self._listener = listener or Listener()
        self._ledger = Ledger(self._settings.state_folder / "fleet" if remembers else None)
        self._polls = Polls(self._look, threads=looks)
        limits = limits or fitting(Limits(), most=self._settings.hook.parallelism)
        self._work = Work(
            self._ledger,
            self._settings,
            self._listener,
            self._polls.soon,
            slots=limits.slots,
        )
        self._is_started = False
        self._by_name: dict[str, TableState] = {}
        self._pool = (slots or partial(Pool, limits=limits, runner=runner))(self._work.take)
        self.apply(policies)

    # --- life ------------------------------------------------------------------------------

    def start(self) -> None:
        """Begins to look, and to build."""
        self._polls.start()
        self._pool.start()
        self._is_started = True

    @property
    def is_ready(self) -> bool:
        """Whether it has begun to look and to build, and takes requests still."""
        return self._is_started and not self._work.is_ending

    def finish(self) -> None:
        """Takes no further request, and returns once all that waits was tried. Retries are left to
        the next start."""
        work = self._work
        with work.changed:
            work.begin_to_end()
        self._polls.close()
        with work.changed:
            work.changed.wait_for(lambda: work.is_idle)

    def close(self, *, seconds: float | None = None) -> None:
        """Takes no further request, and returns once the running builds have ended; what waits is
        left to the next start.

        Args:
            seconds: How long they may take; then they are cancelled. None for no limit.
        """
        work = self._work
        with work.changed:
            work.is_ending = work.is_closing = True
            self._pool.stop()
            work.changed.notify_all()
        self._polls.close()
        if seconds is not None:
            with work.changed:
                work.changed.wait_for(lambda: not work.jobs(), seconds)
                work.is_cancelling = True
                for job in work.jobs():
                    job.cancelled.set()
        self._pool.close()
        with self._work.changed:
            for each in self._work.tables.values():
                each.looker.close()
            self._ledger.close()

    def __enter__(self) -> "Supervisor":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def pids(self) -> list[int]:
        """The child processes that exist."""
        return self._pool.pids()

    def apply(self, policies: Iterable[TablePolicy]) -> None:
        """Keeps these tables from now on, and no other. A build that runs goes on."""
        mine = {}
        for policy in policies:
            uri = normalize_uri(policy.uri)
            if self._shard.has(uri):
                mine[uri] = policy
        with self._work.changed:
            for uri in self._work.tables.keys() - mine.keys():
                name = self._work.remove(uri).policy.name
                log.info("%s leaves the fleet.", name, extra={"table": uri})
            for uri, policy in mine.items():
                state = self._work.tables.get(uri)
                if state is None:
                    self._join(uri, policy)
                elif state.policy != policy:
                    state.policy, state.is_stale = policy, True
                    warmed = state.observation.warmed if policy.prewarm else None
                    self._work.see(state, policy=policy, warmed=warmed)
                    self._polls.soon(uri)
            states = sorted(self._work.tables.values(), key=lambda each: each.policy.name)
            self._by_name = {state.policy.name: state for state in states}
            self._polls.keep({uri: policy.poll.total_seconds() for uri, policy in mine.items()})
            self._work.changed.notify_all()

    def _join(self, uri: str, policy: TablePolicy) -> None:
        known = self._ledger.table(uri)
        observation = Observation(
            policy, ended=tuple(known.builds), damaged=known.damaged, muted=dict(known.mutes)
        )
        state = self._work.tables[uri] = TableState(uri, policy, observation)
        if known.verified is None:  # so that not all are verified on one day
            self._ledger.verify(uri, datetime.now(UTC) - share_of(uri) * _WEEK, 0)
        for request in self._ledger.waiting():
            if request.table == uri:
                self._work.add(state, request)
        for code, until in known.mutes.items():
            self._listener.muted(policy.name, code, until)

    # --- what is asked ---------------------------------------------------------------------

    def tables(self) -> Sequence[Observation]:
        """All tables, in order of their names."""
        with self._work.changed:
            return [each.observation for each in self._by_name.values()]

    def table(self, name: str) -> Observation:
        """One table."""
        with self._work.changed:
            return self._named(name).observation

    def problems(self) -> Sequence[Refusal]:
        """What is wrong with what the supervisor itself keeps."""
        with self._work.changed:
            return () if self._ledger.problem is None else (self._ledger.problem,)

    def ask(
        self, name: str, task: Task, *, key: str | None = None, requested_by: str = ""
    ) -> Requested:
        """Asks for something; the same `key` for the same table and action gives the same request.

        Raises:
            CallbackRefused: too many requests wait, or the service is ending.
        """
        with self._work.changed:
            state = self._named(name)
            before = self._ledger.with_key(state.uri, task.action, key or "")
            if before is not None:
                return Requested(before.id, name, repeated=True)
            self._refuse_if_ending()
            if not state.policy.enabled:
                raise CallbackRefused(
                    f"The table {name} is paused.", remedy="Enable it in the fleet's file first."
                )
            if len(self._ledger.waiting()) >= MAX_WAITING:
                raise CallbackRefused(
                    f"{MAX_WAITING} requests are already waiting.", remedy=_NOTHING_IS_LOST
                )
            request = state.new_request(task, "request", key=key or "", requested_by=requested_by)
            self._work.add(state, request)
            return Requested(request.id, name)

    def callback(self, uri: str) -> Requested:
        """A writer has committed to the table at this base path: asks for a build. Callbacks that
        come before it begins share one.

        Raises:
            CallbackRefused: the table is paused or built by polls alone, or the service is ending.
        """
        wanted = normalize_uri(uri)  # it looks at the disk, which others need not wait for
        with self._work.changed:
            state = self._work.tables.get(wanted)
            if state is None:
                raise TableNotInFleet(f"No table of the fleet is at {uri}.")
            self._refuse_if_ending()
            if not state.policy.enabled or state.policy.woken_by == "poll":
                why = "is paused" if not state.policy.enabled else "is built by polls alone"
                raise CallbackRefused(
                    f"The table {state.policy.name} {why}.", remedy=_NOTHING_IS_LOST
                )
            most = self._settings.hook.queue
            if state.automatic("build") is None and self._work.waiting >= most:
                raise CallbackRefused(
                    f"{most} tables are already waiting.", remedy=_NOTHING_IS_LOST
                )
            request = self._work.wake(state, "callback")
            return Requested(request.id, state.policy.name)

    def build_of(self, request: str) -> RunningBuild | EndedBuild | None:
        """The build of a request; None while it waits. Raises RequestUnknown."""
        with self._work.changed:
            ended = self._ledger.end_of(request)
            if ended is not None:
                return ended
            return self._state_of(request).running_of(request)

    def end_of(self, request: str) -> Future[EndedBuild]:
        """How a request ends, once it has. It is cancelled if the request will have no end, as when
        its table leaves the fleet. Others wait for it, too: do not cancel it. Raises
        RequestUnknown."""
        with self._work.changed:
            ended = self._ledger.end_of(request)
            if ended is None:
                self._state_of(request)  # it waits or runs
                return self._work.end_of(request)
        known: Future[EndedBuild] = Future()
        known.set_result(ended)
        return known

    def cancel(self, request: str, *, requested_by: str = "") -> None:
        """Cancels a waiting or running build, which several requests may share. One that has ended
        stays as it is. Raises RequestUnknown."""
        with self._work.changed:
            if self._ledger.end_of(request) is not None:
                return
            state = self._state_of(request)
            log.info(
                "%s: request %s is cancelled by %s.",
                *(state.policy.name, request, requested_by),
                extra={"table": state.uri, "build": request},
            )
            if state.cancel(request):
                return
            self._work.withdraw(state, request)

    def mute(self, name: str, code: str, *, days: int, requested_by: str = "") -> None:
        """Hides a reason of a table for some days: `code` is one of `attention.Code`."""
        until = datetime.now(UTC) + timedelta(days=days)
        self._mute(name, code, until, f"is muted for {counted(days, 'day')} by {requested_by}")

    def unmute(self, name: str, code: str, *, requested_by: str = "") -> None:
        """Shows a reason of a table again."""
        self._mute(name, code, datetime.now(UTC), f"is muted no more, by {requested_by}")

    def _mute(self, name: str, code: str, until: datetime, what: str) -> None:
        with self._work.changed:
            state = self._named(name)
            log.info("%s: %s %s.", name, code, what, extra={"table": state.uri})
            self._ledger.mute(state.uri, code, until)
            self._listener.muted(name, code, until)
            self._work.see(state)

    def _refuse_if_ending(self) -> None:
        if self._work.is_ending:
            raise CallbackRefused("The service is ending.", remedy=_NOTHING_IS_LOST)

    def _named(self, name: str) -> TableState:
        state = self._by_name.get(name)
        if state is None:
            raise TableNotInFleet(f"The fleet has no table {shortened(name)!r}.")
        return state

    def _state_of(self, request: str) -> TableState:
        known = self._ledger.find(request)
        state = None if known is None else self._work.tables.get(known.table)
        if state is None or not state.has(request):
            raise RequestUnknown(f"There is no request {request}.")
        return state

    def warmed(self, uri: str, warmed: Warmed) -> None:
        """What was made ready for queries on a table. May be called in any thread."""
        with self._work.changed:
            state = self._work.tables.get(uri)
            if state is not None:
                self._work.see(state, warmed=warmed)

    # --- what is looked at -----------------------------------------------------------------

    def _look(self, uri: str) -> None:
        began = datetime.now(UTC)
        with self._work.changed:
            state = self._work.tables.get(uri)
            if state is None:
                return
            policy, known = state.policy, "" if state.is_stale else state.version
            state.is_stale = False
        found: Look | Refusal
        try:
            found = state.looker.look(policy, self._settings, known)
        except Exception as error:
            if not isinstance(error, IndexServiceError):
                log.exception("The look at %s failed.", policy.name)
            found = Refusal.of(error)
        with self._work.changed:
            self._ledger.mend()
            if self._work.tables.get(uri) is state and not self._work.is_ending:
                if isinstance(found, Refusal):
                    self._not_seen(state, found)
                else:
                    self._seen(state, found, began)

    def _not_seen(self, state: TableState, error: Refusal) -> None:
        seen, now = state.observation, datetime.now(UTC)
        if seen.error != error:
            log.warning(
                "%s cannot be looked at: %s: %s",
                *(state.policy.name, error.code, error.message),
                extra={"table": state.uri},
            )
        state.is_stale = True
        self._work.see(
            state,
            at=now,
            error=error,
            unreachable_polls=seen.unreachable_polls + 1,
            unreachable_since=seen.unreachable_since or now,
        )

    def _seen(self, state: TableState, look: Look, began: datetime) -> None:
        if state.observation.error is not None:
            log.info("%s can be looked at again.", state.policy.name, extra={"table": state.uri})
        is_first, state.version = not state.version, look.version
        seen = look.fields()
        if look.status is not None and not look.differences.changes:
            seen |= {"plan": (), "plan_id": "", "plan_bytes": 0, "invalid_definition": None}
        planned = look.version, state.policy
        if look.differences.changes and state.planned != planned:
            state.planned = planned
            self._wake(state, "poll", "define", began)
        if look.status is not None:
            state.drift = look.differences.drift
            if state.changes_unasked:
                seen["drift"] = state.observation.drift
        self._work.see(
            state,
            at=datetime.now(UTC),
            error=None,
            unreachable_polls=0,
            unreachable_since=None,
            **seen,
        )
        if not state.policy.enabled or state.is_building:
            return  # the look after the build decides
        known = self._ledger.table(state.uri)
        settled = known.settled == state.settled_as(look.version)
        due = is_first and look.status is not None and any(each.due for each in look.status)
        # By callbacks alone, what came while the service was down is still built.
        if (not settled or due) and (is_first or state.policy.woken_by != "callback"):
            self._wake(state, "poll", "build", began)
        if not state.policy.verify_sample:
            return
        since = datetime.now(UTC) - (known.verified or datetime.min.replace(tzinfo=UTC))
        if not timedelta(0) <= since < _WEEK:  # below 0, the clock was set back
            self._wake(state, "schedule", "verify", began)

    def _wake(self, state: TableState, trigger: str, action: Action, began: datetime) -> None:
        """A poll has found something to do: it is worth a span."""
        if state.automatic(action) is not None:
            return
        span = Span("poll", since=began, table=state.policy.name, action=action)
        with span.present():
            self._work.wake(state, trigger, action)
        span.end()
