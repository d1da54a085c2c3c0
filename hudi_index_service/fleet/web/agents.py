"""Agents at ``/mcp``: the Model Context Protocol over streamable HTTP, for tokens that may see
tables.

Each request is answered by itself, in JSON: there is no session to lose, nor to keep. The extra
``mcp`` is imported at the first request, since most services get none.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING

from anyio import (
    TASK_STATUS_IGNORED,
    CapacityLimiter,
    Lock,
    create_task_group,
    sleep_forever,
    to_thread,
)
from anyio.abc import TaskGroup, TaskStatus
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import Message, Receive, Scope, Send

from hudi_index_service.config import WebSettings
from hudi_index_service.errors import ConfigInvalid
from hudi_index_service.fleet.reads.tables import ReadTables
from hudi_index_service.fleet.web.access import Action
from hudi_index_service.fleet.web.address import names_of, url_of
from hudi_index_service.fleet.web.agents_tables import CallersChanges, CallersTables
from hudi_index_service.fleet.web.exchange import Gate, Refused, address_of, body_of
from hudi_index_service.fleet.web.requests import Caller, Requests
from hudi_index_service.hook.daemon import extra_required
from hudi_index_service.hook.streaming import client_left
from hudi_index_service.mcp.answers import Answers
from hudi_index_service.mcp.changes import Changes, Plans

if TYPE_CHECKING:
    from mcp.server.transport_security import TransportSecuritySettings

    from hudi_index_service.mcp.calls import Agent, AnyContext

log = logging.getLogger(__name__)

PATH = "/mcp"

MAX_BODY_BYTES = 2**20
"""Of a request: conditions that agents write are short."""

_AGENT = "hudi_index_service.agent"
"""Where a request has its agent."""

_Handle = Callable[[Scope, Receive, Send], Awaitable[None]]


class Agents:
    """Answers agents. Those whose token has the role operate get tools that make changes, if the
    fleet's file lets agents change one of their tables; for all others there are no such tools.

    Tokens are checked by the gate, as everywhere, and not by the SDK's verifier of tokens: that one
    names a server of OAuth to clients, which there is none of, and slows down nobody who guesses.

    Args:
        settings: Where the server listens, and what else it is called.
    """

    def __init__(self, settings: WebSettings, tables: ReadTables) -> None:
        self._settings, self._tables = settings, tables
        self._plans = Plans()
        self._starting = Lock()
        self._group: TaskGroup | None = None
        self._handles: Mapping[bool, _Handle] | None = None

    def routes(self, requests: Requests, gate: Gate) -> Sequence[BaseRoute]:
        """The route. Other methods than POST are for sessions, which there are none of."""

        async def respond(request: Request) -> Response:
            caller = Caller(gate.bearer(request), address_of(request))
            caller.require(Action.SEE)
            body = await body_of(request, MAX_BODY_BYTES)
            handles = await self._started()
            agent = await to_thread.run_sync(self._agent, caller, requests)
            return _Answer(handles[agent.changes is not None], body, agent)

        return [Route(PATH, respond, methods=["POST"])]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Answers can be given within it."""
        async with create_task_group() as self._group:
            yield
            self._group.cancel_scope.cancel()

    def _agent(self, caller: Caller, requests: Requests) -> "Agent":
        from hudi_index_service.mcp.calls import Agent

        tables = CallersTables(caller, requests, self._tables)
        changes = None
        if caller.token.may(Action.OPERATE) and tables.may_change_any:
            changes = Changes(CallersChanges(tables), self._plans, caller.token.name)
        by = f"{caller.token.name} from {caller.address}"
        return Agent(Answers(tables), changes, by)

    async def _started(self) -> Mapping[bool, _Handle]:
        async with self._starting:
            if self._handles is None:
                await to_thread.run_sync(_import)
                assert self._group is not None  # `running`
                self._handles = await self._group.start(self._run)
            return self._handles

    async def _run(
        self, *, task_status: TaskStatus[Mapping[bool, _Handle]] = TASK_STATUS_IGNORED
    ) -> None:
        """Runs what the SDK needs for its answers, in a task of its own. If that breaks off, the
        server goes on without it, and the next request begins it anew."""
        from hudi_index_service.mcp.calls import PLACES
        from hudi_index_service.mcp.server import server_of

        places = CapacityLimiter(PLACES)
        handles: dict[bool, _Handle] = {}
        try:
            async with AsyncExitStack() as stack:
                for changes in (False, True):
                    server = server_of(_agent_of, changes=changes, places=places)
                    server.streamable_http_app(
                        json_response=True,
                        stateless_http=True,
                        max_request_body_size=MAX_BODY_BYTES,
                        transport_security=_security(self._settings),
                    )
                    await stack.enter_async_context(server.session_manager.run())
                    handles[changes] = server.session_manager.handle_request
                task_status.started(handles)
                await sleep_forever()
        except Exception:
            if self._handles is None:
                raise  # to the request that began it
            log.exception("What answers agents broke off.")
        finally:
            self._handles = None


class _Answer(Response):
    """What the SDK answers to a request. It ends when the client leaves."""

    def __init__(self, handle: _Handle, body: bytes, agent: "Agent") -> None:
        super().__init__()
        self._handle, self._body, self._agent = handle, body, agent

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        bodies = [self._body]

        async def body_then_nothing() -> Message:
            if not bodies:
                await sleep_forever()
            return {"type": "http.request", "body": bodies.pop(), "more_body": False}

        async with create_task_group() as group:

            async def cancel_when_left() -> None:
                await client_left(receive)
                group.cancel_scope.cancel()

            group.start_soon(cancel_when_left)
            await self._handle({**scope, _AGENT: self._agent}, body_then_nothing, send)
            group.cancel_scope.cancel()


def _import() -> None:
    """Raises Refused if the extra is not installed."""
    try:
        with extra_required("The address for agents", "mcp"):
            import hudi_index_service.mcp.server  # noqa: F401
    except ConfigInvalid as error:
        raise Refused(HTTPStatus.NOT_IMPLEMENTED, error) from error


def _agent_of(context: "AnyContext | None") -> "Agent":
    assert context is not None
    assert context.request_context.request is not None  # it came by HTTP
    agent: Agent = context.request_context.request.scope[_AGENT]
    return agent


def _security(settings: WebSettings) -> "TransportSecuritySettings":
    """Refuses requests that a page of another site sends by a name that it has led here."""
    from mcp.server.transport_security import TransportSecuritySettings

    names = [*names_of(settings), *(each.partition("://")[2] for each in settings.origins)]
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=[*names, *(f"{name}:*" for name in names)],
        allowed_origins=[url_of(settings), *settings.origins],
    )
