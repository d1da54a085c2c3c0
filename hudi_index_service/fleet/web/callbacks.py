"""Hudi's commit callback: it wakes its table, and may wait for the build."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hudi_index_service.errors import (
    CallbackRefused,
    IndexServiceError,
    RequestUnknown,
)
from hudi_index_service.fleet.observation import EndedBuild
from hudi_index_service.fleet.task import Requested
from hudi_index_service.fleet.web.access import Action, Token
from hudi_index_service.fleet.web.api import Machinery
from hudi_index_service.fleet.web.exchange import (
    Gate,
    JsonAnswer,
    Refused,
    address_of,
    body_of,
    json_of,
)
from hudi_index_service.fleet.web.requests import Caller, Requests, paused
from hudi_index_service.hook.streaming import client_left
from hudi_index_service.hook.write_options import (
    CALLBACK_PATH,
    SECRET_HEADER,
    WAIT_PARAMETER,
    requested_wait,
)

MAX_CALLBACK_BYTES = 32 * 2**20


def callback_route(machinery: Machinery, requests: Requests, gate: Gate) -> Route:
    """The route of the callback. Its refusals have the code of `CallbackRefused`."""

    async def commit(request: Request) -> Response:
        with _counted(machinery, "denied"):
            caller = Caller(_token(gate, request), address_of(request))
            caller.require(Action.NOTIFY)
        with _counted(machinery, "malformed"):
            base_path = await _base_path(request)
        with _counted(machinery, "denied"):
            policy = requests.policy_of(caller, base_path)
        with _counted(machinery, "unknown_table"):
            if policy is None:
                raise _not_kept(base_path)
        with _counted(machinery, "refused"):
            if not policy.enabled:  # to come again does not help
                raise Refused(HTTPStatus.CONFLICT, paused(policy.name))
            requested = await run_in_threadpool(requests.callback, policy)
        machinery.callback("accepted")
        wait = requested_wait(request.query_params.get(WAIT_PARAMETER), machinery.usual_wait)
        return _answer(await _end_of(request, requests, requested, wait) if wait else None)

    return Route(CALLBACK_PATH, commit, methods=["POST"])


@contextmanager
def _counted(machinery: Machinery, outcome: str) -> Iterator[None]:
    """Tells the outcome of a callback that is refused within the context."""
    try:
        yield
    except (Refused, IndexServiceError):
        machinery.callback(outcome)
        raise


def _token(gate: Gate, request: Request) -> Token:
    try:
        return gate.bearer(request, header=SECRET_HEADER)
    except Refused as refusal:
        if refusal.status is HTTPStatus.UNAUTHORIZED:
            refusal.error = CallbackRefused(f"The header {SECRET_HEADER} is missing or wrong.")
        raise


async def _base_path(request: Request) -> str:
    """The table that a callback names."""
    try:
        body = await body_of(request, MAX_CALLBACK_BYTES)
    except Refused as refusal:
        remedy = "Run `hudi-index build <table>` after commits of so many files."
        refusal.error = CallbackRefused(refusal.error.message, remedy=remedy)
        raise
    try:
        message = await json_of(body)
    except ValueError:
        message = None
    base_path = message.get("basePath") if isinstance(message, dict) else None
    if not isinstance(base_path, str):
        error = CallbackRefused("The body is not a Hudi commit callback.")
        raise Refused(HTTPStatus.BAD_REQUEST, error)
    return base_path


def _not_kept(base_path: str) -> Refused:
    error = CallbackRefused(
        f"The table {base_path[:200]!r} is not one that this service keeps.",
        remedy="Name it in the fleet's file, or as an argument of hudi-index serve.",
    )
    return Refused(HTTPStatus.FORBIDDEN, error)


async def _end_of(
    request: Request, requests: Requests, requested: Requested, seconds: float
) -> EndedBuild | None:
    """How the build ended; None if it has not after so many seconds, or nobody waits any more."""
    try:
        promised = await run_in_threadpool(requests.end_of, requested)
    except RequestUnknown:  # the table has left
        return None
    # Not a thread for each writer that waits, which would leave none for others.
    end, left = asyncio.wrap_future(promised), asyncio.create_task(client_left(request.receive))
    try:
        await asyncio.wait((end, left), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        left.cancel()
    return end.result() if end.done() and not end.cancelled() else None


def _answer(end: EndedBuild | None) -> JsonAnswer:
    if end is None:
        return JsonAnswer({"status": "accepted"}, HTTPStatus.ACCEPTED)
    if end.error is None or end.failed:
        return JsonAnswer({"status": "built", "built": end.built, "failed": end.failed})
    error = {"code": end.error.code, "message": end.error.message, "remedy": end.error.remedy}
    return JsonAnswer({"status": "failed", **error})
