"""The API at ``/api/v1``: one table of routes, from which the routes and their OpenAPI description
are made. And what machines ask besides: health, metrics.

A request carries its token as ``Authorization: Bearer``, never as a cookie, so no page of another
site can send one.
"""

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from http import HTTPStatus
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic.json_schema import JsonSchemaMode, models_json_schema
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from hudi_index_service import __version__
from hudi_index_service.errors import RequestInvalid
from hudi_index_service.fleet.observation import EndedBuild, Refusal
from hudi_index_service.fleet.reads.formats import FORMATS
from hudi_index_service.fleet.signals.metrics import CONTENT_TYPE
from hudi_index_service.fleet.web.access import Action
from hudi_index_service.fleet.web.events import Streams
from hudi_index_service.fleet.web.exchange import (
    MAX_FORM_BYTES,
    PREFIX,
    STATUS_OF,
    Gate,
    JsonAnswer,
    address_of,
    body_of,
)
from hudi_index_service.fleet.web.messages import (
    ApproveRequest,
    BuildMessage,
    BuildRequest,
    CleanRequest,
    DoneMessage,
    EmptyRequest,
    ErrorMessage,
    MuteRequest,
    RequestedMessage,
    TablesMessage,
    TableStatusMessage,
    UnmuteRequest,
    VerifyRequest,
)
from hudi_index_service.fleet.web.reads import ROUTES as READ_ROUTES
from hudi_index_service.fleet.web.reads import ReadRoute
from hudi_index_service.fleet.web.requests import Caller, Requests
from hudi_index_service.fleet.web.table_view import selected
from hudi_index_service.wording import first_mistake

MAX_WAIT_SECONDS = 60.0

_KEY = re.compile(r"[\x21-\x7e]{1,200}")


@dataclass(frozen=True, slots=True)
class Call:
    """A request that was let in: its caller, the parts of its path, its body, its key."""

    caller: Caller
    path: dict[str, str]
    body: Any
    key: str | None


@dataclass(frozen=True, slots=True)
class ApiRoute:
    """One thing that can be asked.

    Attributes:
        path: Below `PREFIX`, in the form of OpenAPI.
        answer: What it is answered with, and its status.
        body: What it takes; None for GET.
        key: Whether it takes an Idempotency-Key.
        waits: Whether its answer may wait for the end of what was asked for.
    """

    method: str
    path: str
    summary: str
    action: Action
    run: Callable[[Requests, Call], BaseModel]
    answer: type[BaseModel]
    status: HTTPStatus = HTTPStatus.OK
    body: type[BaseModel] | None = None
    key: bool = False
    waits: bool = False


def _tables(requests: Requests, call: Call) -> TablesMessage:
    views, problems = requests.tables(call.caller), requests.problems(call.caller)
    return TablesMessage.of(selected(views), problems)


def _table(requests: Requests, call: Call) -> TableStatusMessage:
    return TableStatusMessage.of(requests.table(call.caller, call.path["name"]))


def _build_of(requests: Requests, call: Call) -> BuildMessage:
    table, build = requests.build_of(call.caller, call.path["id"])
    return BuildMessage.of(call.path["id"], table, build)


def _ask(requests: Requests, call: Call) -> RequestedMessage:
    name, task = call.path["name"], call.body.task()
    return RequestedMessage.model_validate(requests.ask(call.caller, name, task, key=call.key))


def _cancel(requests: Requests, call: Call) -> DoneMessage:
    requests.cancel(call.caller, call.path["id"])
    return DoneMessage()


def _mute(requests: Requests, call: Call) -> DoneMessage:
    requests.mute(call.caller, call.path["name"], call.body.code, days=call.body.days)
    return DoneMessage()


def _unmute(requests: Requests, call: Call) -> DoneMessage:
    requests.unmute(call.caller, call.path["name"], call.body.code)
    return DoneMessage()


def _asks(
    path: str,
    summary: str,
    run: Callable[[Requests, Call], BaseModel],
    *,
    body: type[BaseModel] = EmptyRequest,
    answer: type[BaseModel] = RequestedMessage,
) -> ApiRoute:
    status, act = HTTPStatus.OK, Action.OPERATE
    if answer is not RequestedMessage:
        return ApiRoute("POST", path, summary, act, run, answer, status, body)
    # A plan is carried out once, however often it is approved.
    status, key = HTTPStatus.ACCEPTED, body is not ApproveRequest
    return ApiRoute("POST", path, summary, act, run, answer, status, body, key, waits=True)


# In the order in which they are tried: a table's name may contain a slash.
ROUTES: tuple[ApiRoute, ...] = (
    ApiRoute("GET", "/tables", "The tables, by attention", Action.SEE, _tables, TablesMessage),
    _asks("/tables/{name}/builds", "Start a build", _ask, body=BuildRequest),
    _asks("/tables/{name}/clean", "Clean a table's indexes", _ask, body=CleanRequest),
    _asks("/tables/{name}/verify", "Verify a table's entries", _ask, body=VerifyRequest),
    _asks("/tables/{name}/approve", "Carry out a table's plan", _ask, body=ApproveRequest),
    _asks("/tables/{name}/mute", "Hide a reason", _mute, body=MuteRequest, answer=DoneMessage),
    _asks(
        "/tables/{name}/unmute", "Show it again", _unmute, body=UnmuteRequest, answer=DoneMessage
    ),
    ApiRoute("GET", "/tables/{name}", "One table", Action.SEE, _table, TableStatusMessage),
    ApiRoute("GET", "/builds/{id}", "A build", Action.SEE, _build_of, BuildMessage, waits=True),
    _asks("/builds/{id}/cancel", "Cancel a build", _cancel, answer=DoneMessage),
)


def api_routes(requests: Requests, gate: Gate, streams: Streams) -> list[BaseRoute]:
    """The routes of the API and of its description, which is open. Requests that wait count as
    streams."""
    description = JsonAnswer(openapi())

    async def describe(request: Request) -> Response:
        return description

    return [
        Route(f"{PREFIX}/openapi.json", describe, methods=["GET"]),
        *(
            Route(
                PREFIX + each.path.replace("{name}", "{name:path}"),
                _endpoint(each, requests, gate, streams),
                methods=[each.method],
            )
            for each in ROUTES
        ),
    ]


def _endpoint(
    route: ApiRoute, requests: Requests, gate: Gate, streams: Streams
) -> Callable[[Request], Awaitable[Response]]:
    async def respond(request: Request) -> Response:
        caller = Caller(gate.bearer(request), address_of(request))
        caller.require(route.action)
        body = None
        if route.body is not None:
            body = _parsed(route.body, await body_of(request, MAX_FORM_BYTES))
        key = request.headers.get("idempotency-key") if route.key else None
        if key is not None and not _KEY.fullmatch(key):
            raise RequestInvalid("An Idempotency-Key has 1 to 200 characters of ASCII, no space.")
        seconds = _wait_of(request) if route.waits else 0.0
        call = Call(caller, dict(request.path_params), body, key)
        # In a thread, so that nobody waits for it.
        answer = await run_in_threadpool(lambda: route.run(requests, call))
        if seconds and isinstance(answer, RequestedMessage | BuildMessage):
            build = partial(requests.build_of, caller, answer.id)
            await streams.until(
                lambda: isinstance(build()[1], EndedBuild), seconds, request.is_disconnected
            )
            seen = BuildMessage.of(answer.id, *build())
            is_new = isinstance(answer, RequestedMessage)
            answer = answer.model_copy(update={"build": seen}) if is_new else seen
        return await run_in_threadpool(lambda: JsonAnswer(answer, route.status))

    return respond


def _wait_of(request: Request) -> float:
    """The parameter ``wait``, in seconds."""
    text = request.query_params.get("wait", "0")
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise RequestInvalid(f"wait is a number of seconds, not {text[:40]!r}.")
    return min(seconds, MAX_WAIT_SECONDS)


def _parsed(model: type[BaseModel], body: bytes) -> BaseModel:
    try:
        return model.model_validate_json(body.strip() or b"{}")
    except ValidationError as error:
        raise RequestInvalid(f"The body is wrong: {first_mistake(error)}.") from error


@cache
def openapi() -> dict[str, Any]:
    """The description of the API, in OpenAPI 3.1."""
    models: list[tuple[type[BaseModel], JsonSchemaMode]] = [(ErrorMessage, "serialization")]
    models += [(each.answer, "serialization") for each in ROUTES]
    models += [(each.body, "validation") for each in ROUTES if each.body is not None]
    models += [(each.question, "validation") for each in READ_ROUTES]
    models += [(each.answer, "serialization") for each in READ_ROUTES if each.answer is not None]
    _, schemas = models_json_schema(
        list(dict.fromkeys(models)), ref_template="#/components/schemas/{model}"
    )
    paths: dict[str, dict[str, Any]] = {}
    for each in ROUTES:
        paths.setdefault(PREFIX + each.path, {})[each.method.lower()] = _operation(each)
    for read in READ_ROUTES:
        paths[f"{PREFIX}/tables/{{name}}/{read.path}"] = {
            method.lower(): _read_operation(read, by_get=method == "GET") for method in read.methods
        }
    return {
        "openapi": "3.1.0",
        "info": {"title": "hudi-index-service", "version": __version__},
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": schemas["$defs"],
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(route: ApiRoute) -> dict[str, Any]:
    answers = {route.status: ("Done" if route.status == 200 else "Accepted", route.answer)}
    errors = [HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND]
    errors += [HTTPStatus.TOO_MANY_REQUESTS]
    if route.body is not None:
        errors += [HTTPStatus.BAD_REQUEST, HTTPStatus.REQUEST_ENTITY_TOO_LARGE]
        errors += [HTTPStatus.SERVICE_UNAVAILABLE]
    if route.waits:
        errors += [HTTPStatus.BAD_REQUEST]
    if route.status is HTTPStatus.ACCEPTED:  # the table may be paused
        errors += [HTTPStatus.CONFLICT]
    answers |= {status: (status.phrase, ErrorMessage) for status in errors}
    parameters: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in re.findall(r"{(\w+)}", route.path)
    ]
    if route.key:
        parameters.append(
            {
                "name": "Idempotency-Key",
                "in": "header",
                "description": "The same key for the same table gives the same request.",
                "schema": {"type": "string", "pattern": f"^{_KEY.pattern}$"},
            }
        )
    if route.waits:
        parameters.append(
            {
                "name": "wait",
                "in": "query",
                "description": "The seconds to wait for its end before the answer, at most "
                f"{MAX_WAIT_SECONDS:.0f}. Fewer if too many requests wait already.",
                "schema": {"type": "number", "minimum": 0, "default": 0},
            }
        )
    operation: dict[str, Any] = {
        "summary": route.summary,
        "parameters": parameters,
        "responses": {
            str(int(status)): {"description": words, "content": _content(model)}
            for status, (words, model) in sorted(answers.items())
        },
    }
    if route.body is not None:
        operation["requestBody"] = {"required": False, "content": _content(route.body)}
    return operation


def _read_operation(route: ReadRoute, *, by_get: bool) -> dict[str, Any]:
    parameters: list[dict[str, Any]] = [
        {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}
    ]
    content: dict[str, Any] = {each.media_type.partition(";")[0]: {} for each in FORMATS}
    if route.answer is not None:
        content = _content(route.answer)
    answers: dict[str, Any] = {"200": {"description": "Done", "content": content}}
    statuses = {*STATUS_OF.values(), HTTPStatus.NOT_ACCEPTABLE, HTTPStatus.TOO_MANY_REQUESTS}
    operation: dict[str, Any] = {"summary": route.summary, "parameters": parameters}
    if by_get:
        schema = route.question.model_json_schema()
        needed = schema.get("required", ())
        for name, field in schema["properties"].items():
            parameters.append(
                {"name": name, "in": "query", "required": name in needed, "schema": field}
            )
        answers["304"] = {"description": "The table has not changed since If-None-Match"}
    else:
        operation["requestBody"] = {"required": False, "content": _content(route.question)}
        statuses.add(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
    for status in sorted(statuses):
        answers[str(int(status))] = {
            "description": status.phrase,
            "content": _content(ErrorMessage),
        }
    return {**operation, "responses": answers}


def _content(model: type[BaseModel]) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{model.__name__}"}}}


@dataclass(frozen=True, slots=True)
class Machinery:
    """What the service gives to machines.

    Attributes:
        metrics: What Prometheus reads, from memory.
        ready: Whether the service does its work already, and still.
        callback: Told the outcome of each callback: ``accepted``, ``refused``, ``unknown_table``,
            ``malformed`` or ``denied``.
        usual_wait: The seconds for which the answer to a callback waits for the build, if its URL
            has no other number.
        problems: What is wrong with the service itself.
    """

    metrics: Callable[[], bytes] = bytes
    ready: Callable[[], bool] = lambda: True
    callback: Callable[[str], None] = lambda outcome: None
    usual_wait: float = 0.0
    problems: Callable[[], Sequence[Refusal]] = tuple


def machine_routes(machinery: Machinery, gate: Gate) -> Sequence[BaseRoute]:
    """The routes of health and metrics."""

    async def healthz(request: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def readyz(request: Request) -> Response:
        if machinery.ready():
            return PlainTextResponse("ok\n")
        return PlainTextResponse("not ready\n", HTTPStatus.SERVICE_UNAVAILABLE)

    async def metrics(request: Request) -> Response:
        Caller(gate.bearer(request), address_of(request)).require(Action.SCRAPE)
        content = await run_in_threadpool(machinery.metrics)
        return Response(content, media_type=CONTENT_TYPE)

    return [
        Route("/healthz", healthz, methods=["GET"]),
        Route("/readyz", readyz, methods=["GET"]),
        Route("/metrics", metrics, methods=["GET"]),
    ]
