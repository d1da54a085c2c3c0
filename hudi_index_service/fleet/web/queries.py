"""Queries of people on a table's page. They run in child processes of their own, each with a
deadline: none delays a build, and none can stop the service or leave a JVM in it."""

import secrets
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from http import HTTPStatus
from queue import Empty, Queue
from threading import BoundedSemaphore
from time import monotonic
from typing import Literal

from hudi_index_service.config import Settings
from hudi_index_service.errors import (
    CallbackRefused,
    IndexServiceError,
    QueryCancelled,
    RequestInvalid,
)
from hudi_index_service.fleet.builds.messages import (
    Counted,
    Ended,
    Order,
    settings_for_child,
)
from hudi_index_service.fleet.builds.pool import Job, Pool
from hudi_index_service.fleet.builds.process import Limits
from hudi_index_service.fleet.observation import Refusal
from hudi_index_service.fleet.policies.policy import TablePolicy, settings_for
from hudi_index_service.fleet.policies.references import resolved
from hudi_index_service.fleet.web.exchange import RETRY_SECONDS, Refused
from hudi_index_service.fleet.web.requests import unread

RUNNER = "hudi_index_service.fleet.builds.querying:run"

LIMITS = Limits(slots=2, memory_mb=2048, idle_seconds=60.0, grace_seconds=2.0, tick_seconds=0.1)

MOST_CHARACTERS = 10_000
"""Of a predicate that somebody writes on a page."""

_MOST_WAITING = 8

Kind = Literal["count", "explain"]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a query gave: text, or why it gave none; and the seconds that it took."""

    kind: Kind
    text: str
    error: Refusal | None
    seconds: float


class Queries:
    """Counts and explains. May be used in any thread.

    Args:
        settings: The process's.
        seconds: How long a query may take.
        start_seconds: How long a child may take besides, which starts, and perhaps a JVM in it.
        runner: As for `Child`.
        counted: Called with what the children have done, for the metrics.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        seconds: float = 30.0,
        start_seconds: float = 10.0,
        runner: str = RUNNER,
        counted: Callable[[Counted], None] = lambda counted: None,
    ) -> None:
        self._counted = counted
        self._settings, self._seconds = settings, seconds
        self._limit = seconds + start_seconds
        self._jobs: Queue[Job] = Queue()
        self._places = BoundedSemaphore(_MOST_WAITING)
        self._pool = Pool(self._take, LIMITS, runner=runner)

    def start(self) -> None:
        """Takes queries; there is no process before the first."""
        self._pool.start()

    def close(self) -> None:
        """Ends what runs."""
        self._pool.stop()
        self._pool.close()

    def pids(self) -> list[int]:
        """The child processes that exist."""
        return self._pool.pids()

    def ask(self, policy: TablePolicy, kind: Kind, where: str) -> Answer:
        """Answers a query, or says why not. Returns after the deadline at the latest.

        Args:
            where: A Spark SQL predicate; "" for all rows.

        Raises:
            RequestInvalid: it is too long.
            Refused: the service answers no queries on the table, or is busy.
        """
        if len(where) > MOST_CHARACTERS:
            raise RequestInvalid(f"The predicate is longer than {MOST_CHARACTERS:,} characters.")
        if not policy.reads:
            raise Refused(HTTPStatus.CONFLICT, unread(policy.name))
        if not self._places.acquire(blocking=False):
            error = CallbackRefused(
                f"{_MOST_WAITING} queries run or wait already.", remedy="Try again later."
            )
            raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, error, retry_seconds=RETRY_SECONDS)
        try:
            return self._answer(policy, kind, where)
        finally:
            self._places.release()

    def _answer(self, policy: TablePolicy, kind: Kind, where: str) -> Answer:
        began = monotonic()
        try:
            order = self._order(policy, kind, where)
        except IndexServiceError as error:
            refusal = Refusal.of(error)
            return Answer(kind, "", refusal, monotonic() - began)
        future: Future[Ended] = Future()
        job = Job(order, self._limit, _ignored, future.set_result, counted=self._counted)
        self._jobs.put(job)
        try:
            ended = future.result(2 * self._limit)  # others may be before it
        except TimeoutError:
            job.cancelled.set()
            ended = Ended(order.request, "hung")
        return Answer(kind, ended.summary, self._refusal(ended), monotonic() - began)

    def _order(self, policy: TablePolicy, kind: Kind, where: str) -> Order:
        settings = settings_for(policy, self._settings)
        # What people try out says nothing of the queries that indexes are for.
        history = settings.history.model_copy(update={"enabled": False})
        return Order(
            secrets.token_hex(8),
            kind,
            policy,
            where=where,
            seconds=self._seconds,
            storage_options=resolved(policy.storage),
            settings=settings_for_child(settings.model_copy(update={"history": history})),
        )

    def _refusal(self, ended: Ended) -> Refusal | None:
        if ended.outcome in ("hung", "cancelled", "interrupted"):
            error = QueryCancelled(f"The query took longer than {self._seconds:g} s.")
            return Refusal.of(error)
        if ended.outcome in ("died", "out_of_memory"):
            why = "took too much memory" if ended.outcome == "out_of_memory" else "died"
            error = QueryCancelled(f"The query's process {why}.")
            return Refusal(error.code, error.message, "Run it with `hudi-index query`.")
        return ended.error

    def _take(self, seconds: float) -> Job | None:
        until = monotonic() + seconds
        while not self._pool.is_stopped and (rest := until - monotonic()) > 0:
            try:
                return self._jobs.get(timeout=min(rest, 1.0))
            except Empty:
                continue
        return None


def _ignored(_: object) -> None:
    pass


Ask = Callable[[TablePolicy, Kind, str], Answer]
"""See `Queries.ask`."""
