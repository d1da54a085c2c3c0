"""Requests of a token to the fleet, alike for API and page: which tables it sees, and what it
does, which is logged."""

import logging
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from http import HTTPStatus
from threading import Lock

from hudi_index_service.errors import (
    AccessDenied,
    CallbackRefused,
    RequestInvalid,
    RequestUnknown,
    TableNotInFleet,
)
from hudi_index_service.fleet.observation import EndedBuild, Refusal, RunningBuild
from hudi_index_service.fleet.policies.policy import TablePolicy
from hudi_index_service.fleet.signals.attention import Code, ReasonsOf
from hudi_index_service.fleet.supervisor import Supervisor
from hudi_index_service.fleet.task import Requested, Task
from hudi_index_service.fleet.tracing import trace_of, traceparent
from hudi_index_service.fleet.web.access import Action, Token
from hudi_index_service.fleet.web.exchange import Refused
from hudi_index_service.fleet.web.table_view import TableView
from hudi_index_service.hook.allowed_tables import path_identity
from hudi_index_service.wording import did_you_mean, shortened

log = logging.getLogger(__name__)

_MOST_REQUESTS = 10_000


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sends a request.

    Attributes:
        address: The other end of the connection.
    """

    token: Token
    address: str

    def require(self, action: Action) -> None:
        """Raises AccessDenied unless the role allows the action."""
        if not self.token.may(action):
            raise AccessDenied(
                f"The token {self.token.name} has the role {self.token.role}, which may not "
                f"{action}."
            )


class Requests:
    """What callers ask of a fleet. May be used in any thread.

    Args:
        reasons_of: Why a table needs attention.
        problems: What is wrong with the service itself.
    """

    def __init__(
        self,
        fleet: Supervisor,
        reasons_of: ReasonsOf,
        problems: Callable[[], Sequence[Refusal]] = tuple,
    ) -> None:
        self._fleet, self._reasons_of, self._problems = fleet, reasons_of, problems
        self._lock = Lock()
        self._tables: OrderedDict[str, str] = OrderedDict()  # by request
        self._identities: dict[str, str | None] = {}  # by base path

    def tables(self, caller: Caller) -> list[TableView]:
        """The tables that the caller may see, in order of their names."""
        caller.require(Action.SEE)
        return [
            TableView.of(seen, self._reasons_of)
            for seen in self._fleet.tables()
            if caller.token.covers(seen.policy.name)
        ]

    def policies(self, caller: Caller) -> list[TablePolicy]:
        """What holds for these tables."""
        caller.require(Action.SEE)
        policies = (seen.policy for seen in self._fleet.tables())
        return [each for each in policies if caller.token.covers(each.name)]

    def problems(self, caller: Caller) -> Sequence[Refusal]:
        """What is wrong with the service itself; nothing for those who do not see all tables."""
        caller.require(Action.SEE)
        return self._problems() if caller.token.is_for_all else ()

    def seen(self, caller: Caller, name: str = "") -> object:
        """What is equal as long as nothing has changed that `tables` and `problems`, or `table`,
        show."""
        if name:
            self._require_table(caller, Action.SEE, name)
            return self._fleet.table(name)
        return tuple(self._fleet.tables()), tuple(self.problems(caller))

    def looked(self, caller: Caller, name: str) -> object:
        """What is equal as long as the service has neither looked at a table again, nor ended a
        build of it."""
        self._require_table(caller, Action.SEE, name)
        seen = self._fleet.table(name)
        return seen.at, seen.status, seen.ended

    def table(self, caller: Caller, name: str) -> TableView:
        """One table. Raises TableNotInFleet."""
        self._require_table(caller, Action.SEE, name)
        return TableView.of(self._fleet.table(name), self._reasons_of)

    def readable(self, caller: Caller, name: str) -> TablePolicy:
        """The table of that name, whose rows the caller may read.

        Raises:
            TableNotInFleet: there is none for this caller.
            Refused: the service does not read it.
        """
        self._require_table(caller, Action.SEE, name)
        policy = self._fleet.table(name).policy
        if not policy.reads:
            raise Refused(HTTPStatus.CONFLICT, unread(name))
        return policy

    def policy_of(self, caller: Caller, base_path: str) -> TablePolicy | None:
        """The table that a writer names by its base path, in any spelling; None if the fleet has
        none. The writer's path is only compared.

        Raises:
            AccessDenied: the token is for other tables.
        """
        wanted = path_identity(base_path)
        if wanted is None:
            return None
        for seen in self._fleet.tables():
            uri = seen.policy.uri
            if uri not in self._identities:
                self._identities[uri] = path_identity(uri)
            if self._identities[uri] == wanted:
                if not caller.token.covers(seen.policy.name):
                    raise AccessDenied(f"The token {caller.token.name} is not for this table.")
                return seen.policy
        return None

    def callback(self, policy: TablePolicy) -> Requested:
        """A writer has committed to a table; see `Supervisor.callback`."""
        return self._fleet.callback(policy.uri)

    def end_of(self, requested: Requested) -> Future[EndedBuild]:
        """How what this caller has just asked for ends; see `Supervisor.end_of`."""
        return self._fleet.end_of(requested.id)

    def build_of(
        self, caller: Caller, request: str
    ) -> tuple[str | None, RunningBuild | EndedBuild | None]:
        """The table of a request, None if it is not known, and its build, None while it waits.
        Raises RequestUnknown."""
        caller.require(Action.SEE)
        table = self._table_of(caller, request)
        return table, self._fleet.build_of(request)

    def ask(self, caller: Caller, name: str, task: Task, *, key: str | None = None) -> Requested:
        """Asks for something. A key counts for the caller's token only.

        Raises:
            TableNotInFleet, CallbackRefused: see `Supervisor.ask`.
            Refused: the table is paused.
        """
        self._require_table(caller, Action.OPERATE, name)
        if not self._fleet.table(name).policy.enabled:
            raise Refused(HTTPStatus.CONFLICT, paused(name))  # to try again does not help
        by = caller.token.name
        scoped = None if key is None else f"{by}:{key}"
        requested = self._fleet.ask(name, task, key=scoped, requested_by=by)
        with self._lock:
            self._tables[requested.id] = name
            while len(self._tables) > _MOST_REQUESTS:
                self._tables.popitem(last=False)
        _log(caller, str(task), name, requested.id, uri=self._uri_of(name))
        return requested

    def mute(self, caller: Caller, name: str, code: str, *, days: int) -> None:
        """Hides a reason for some days.

        Raises:
            RequestInvalid: there is no such reason.
        """
        self._require_table(caller, Action.OPERATE, name)
        known = _code(code)
        self._fleet.mute(name, known, days=days, requested_by=caller.token.name)
        _log(caller, f"mute {known} for {days} d", name, "", uri=self._uri_of(name))

    def unmute(self, caller: Caller, name: str, code: str) -> None:
        """Shows a reason again. Raises RequestInvalid: there is no such reason."""
        self._require_table(caller, Action.OPERATE, name)
        known = _code(code)
        self._fleet.unmute(name, known, requested_by=caller.token.name)
        _log(caller, f"unmute {known}", name, "", uri=self._uri_of(name))

    def cancel(self, caller: Caller, request: str) -> str | None:
        """Cancels a build; returns its table, if it is known. Raises RequestUnknown."""
        caller.require(Action.OPERATE)
        table = self._table_of(caller, request)
        self._fleet.cancel(request, requested_by=caller.token.name)
        _log(caller, "cancel", table or "", request)
        return table

    def _uri_of(self, name: str) -> str:
        return self._fleet.table(name).policy.uri

    @staticmethod
    def _require_table(caller: Caller, action: Action, name: str) -> None:
        caller.require(action)
        if not caller.token.covers(name):  # as if there were none
            raise TableNotInFleet(f"The fleet has no table {shortened(name)!r}.")

    def _table_of(self, caller: Caller, request: str) -> str | None:
        table = self._tables.get(request) or self._observed_table_of(request)
        may_see = caller.token.is_for_all if table is None else caller.token.covers(table)
        if not may_see:
            raise RequestUnknown(f"There is no request {shortened(request)!r}.")
        return table

    def _observed_table_of(self, request: str) -> str | None:
        for seen in self._fleet.tables():
            builds: Sequence[RunningBuild | EndedBuild] = seen.ended
            if seen.running is not None:
                builds = [seen.running, *builds]
            if any(build.id == request for build in builds):
                return seen.policy.name
        return None


def paused(name: str) -> CallbackRefused:
    """The error of a request for a paused table."""
    return CallbackRefused(
        f"The table {shortened(name)!r} is paused.",
        remedy="Enable it in the fleet's file first; nothing is lost: the service then builds what "
        "is due.",
    )


def unread(name: str) -> CallbackRefused:
    """The error of a query on a table that the service does not read."""
    return CallbackRefused(
        f"The service answers no queries on {name}.",
        remedy="The fleet's file says `reads: false`.",
    )


def _code(text: str) -> str:
    known = [code.value for code in Code]
    if text not in known:
        raise RequestInvalid(
            f"There is no reason {shortened(text)!r}. {did_you_mean(text, known)}".rstrip(),
            remedy=f"The reasons are {', '.join(known)}.",
        )
    return text


def _log(caller: Caller, action: str, table: str, request: str, *, uri: str = "") -> None:
    log.info(
        "Operator action: %s, table %r, id %r, by %s from %s.",
        *(action, shortened(table), request, caller.token.name, caller.address),
        extra={
            "table": uri,
            "build": request,
            "trigger": "request",
            "trace": trace_of(traceparent()),
        },
    )
