"""Rows by HTTP, below ``/api/v1/tables/{name}/``. Queries are never logged: neither conditions nor
values.

A client that leaves ends the work on its answer. What fails after an answer has begun cuts the
connection off, so that no client takes the beginning for the whole.
"""

import asyncio
import hashlib
import logging
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Generator,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any, TypeVar

from anyio import CapacityLimiter, to_thread
from pydantic import BaseModel, ValidationError
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from hudi_index_service.cancellation import Cancellation
from hudi_index_service.errors import IndexServiceError, QueryCancelled, RequestInvalid
from hudi_index_service.fleet.policies.policy import TablePolicy
from hudi_index_service.fleet.reads.formats import (
    FORMATS,
    RowFormat,
    compressed,
    compression_for,
    format_for,
)
from hudi_index_service.fleet.reads.questions import (
    Count,
    CountQuestion,
    Exists,
    ExistsQuestion,
    Explained,
    ExplainQuestion,
    LocateQuestion,
    Question,
    Rows,
    RowsQuestion,
    SearchQuestion,
)
from hudi_index_service.fleet.reads.tables import ReadTables
from hudi_index_service.fleet.web.exchange import (
    PARSED_AT_ONCE,
    Gate,
    JsonAnswer,
    Refused,
    address_of,
    body_of,
)
from hudi_index_service.fleet.web.requests import Caller, Requests
from hudi_index_service.hudi.table import HudiTable
from hudi_index_service.wording import first_mistake

log = logging.getLogger(__name__)

T = TypeVar("T")

MAX_BODY_BYTES = 16 * 2**20
"""Of a question: room for the conditions and keys of a large join."""

_THREADS = 8
"""That read for all clients; each holds one for a batch at a time, so that none waits for a long
answer of another."""

_HEADERS = {
    "Vary": "Accept, Accept-Encoding, Authorization",
    "Cache-Control": "private, no-cache",  # asked for again by its ETag
}

_SENT_AT_ONCE = 256 * 1024

_SEND_SECONDS = 60.0
"""For a client to take a piece of its answer."""


@dataclass(frozen=True, slots=True)
class ReadRoute:
    """A question that can be asked by POST, and by GET if it is short.

    Attributes:
        path: Below a table's.
        answer: What it is answered with; None for rows.
    """

    path: str
    summary: str
    question: type[Question]
    answer: type[BaseModel] | None = None
    by_get: bool = True

    @property
    def methods(self) -> Sequence[str]:
        """Those of HTTP."""
        return ("GET", "POST") if self.by_get else ("POST",)


ROUTES: Sequence[ReadRoute] = (
    ReadRoute("rows", "The matching rows", RowsQuestion),
    ReadRoute("count", "The number of matching rows", CountQuestion, Count),
    ReadRoute("exists", "Whether any row matches", ExistsQuestion, Exists),
    ReadRoute("explain", "How the rows would be read", ExplainQuestion, Explained),
    ReadRoute("search", "The rows that match a text best", SearchQuestion),
    ReadRoute("locate", "The locations of record keys", LocateQuestion, by_get=False),
)


class Reads:
    """Answers questions about rows, for callers that may see the table."""

    def __init__(self, tables: ReadTables) -> None:
        self._tables = tables
        self._threads = CapacityLimiter(_THREADS)

    def routes(self, requests: Requests, gate: Gate) -> Sequence[BaseRoute]:
        """The routes of all questions."""
        return [
            Route(
                f"/api/v1/tables/{{name:path}}/{each.path}",
                self._endpoint(each, requests, gate),
                methods=each.methods,
            )
            for each in ROUTES
        ]

    def close(self) -> None:
        """Closes the tables."""
        self._tables.close()

    def _endpoint(
        self, route: ReadRoute, requests: Requests, gate: Gate
    ) -> Callable[[Request], Awaitable[Response]]:
        async def respond(request: Request) -> Response:
            caller = Caller(gate.bearer(request), address_of(request))
            policy = requests.readable(caller, request.path_params["name"])
            format = _format(request)
            question = await _question(route.question, request)
            cancellation = Cancellation()
            async with _while_wanted(request, cancellation):
                begun = await self._work(lambda: self._begun(request, policy, question, format))
            if isinstance(begun, Response):
                return begun
            return RowsAnswer(request, begun, cancellation, self._work)

        return respond

    def _begun(
        self, request: Request, policy: TablePolicy, question: Question, format: RowFormat
    ) -> "Response | _Begun":
        """The answer, or its beginning. In one thread, since each change of threads costs as much
        as a look-up."""
        table, headers = self._tables.table(policy), dict(_HEADERS)
        if request.method == "GET":
            # Before the rows: what is committed meanwhile is asked for once more.
            tag = headers["ETag"] = _tag(table.hudi_table)
            if tag in request.headers.get("if-none-match", ""):
                return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
        answer = question.answer(table)
        if not isinstance(answer, Rows):
            return JsonAnswer(answer, headers=headers)
        pieces = format.encode(answer.schema, answer.batches)
        codec = compression_for(request.headers.get("accept-encoding", ""))
        if codec is not None:
            pieces = compressed(pieces, codec)
            headers["Content-Encoding"] = codec
        headers["Content-Type"] = format.media_type
        return _Begun(headers, pieces, *_next_of(pieces))

    async def _work(self, work: Callable[[], T]) -> T:
        return await to_thread.run_sync(work, limiter=self._threads)


@dataclass(frozen=True, slots=True)
class _Begun:
    """An answer whose first bytes are read; `is_whole` if there are no more."""

    headers: Mapping[str, str]
    pieces: Generator[bytes]
    first: bytes
    is_whole: bool


class RowsAnswer(Response):
    """Rows that are read while they are sent."""

    def __init__(
        self,
        request: Request,
        begun: _Begun,
        cancellation: Cancellation,
        work: Callable[[Callable[[], Any]], Awaitable[Any]],
    ) -> None:
        self._request, self._begun = request, begun
        self._cancellation, self._work = cancellation, work
        self.status_code, self.background = HTTPStatus.OK, None
        if begun.is_whole:
            self.body = begun.first  # for the header Content-Length
        self.init_headers(begun.headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers, pieces, is_whole = self.raw_headers, self._begun.pieces, self._begun.is_whole

        async def send_body(data: bytes, is_whole: bool) -> None:
            message = {"type": "http.response.body", "body": data, "more_body": not is_whole}
            await asyncio.wait_for(send(message), _SEND_SECONDS)

        await send({"type": "http.response.start", "status": self.status_code, "headers": headers})
        try:
            await send_body(self._begun.first, is_whole)
            async with _while_wanted(self._request, self._cancellation):
                while not is_whole:
                    data, is_whole = await self._work(partial(_next_of, pieces))
                    await send_body(data, is_whole)
        except QueryCancelled:
            pass  # the client has left
        except TimeoutError:
            log.warning("An answer was cut off: its client took nothing for %g s.", _SEND_SECONDS)
        except (IndexServiceError, OSError) as error:
            # Without its end, the answer is known to be a part.
            log.warning("An answer was cut off: %s.", getattr(error, "code", type(error).__name__))
        finally:
            if not is_whole:
                await self._work(pieces.close)


def _next_of(pieces: Iterator[bytes]) -> tuple[bytes, bool]:
    """The next pieces, some `_SENT_AT_ONCE` bytes, and whether they are the last."""
    data = bytearray()
    for piece in pieces:
        data += piece
        if len(data) >= _SENT_AT_ONCE:
            return bytes(data), False
    return bytes(data), True


@asynccontextmanager
async def _while_wanted(request: Request, cancellation: Cancellation) -> AsyncIterator[None]:
    """Ends the queries within it when the client leaves."""

    async def cancel_when_left() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        cancellation.cancel()

    leaving = asyncio.create_task(cancel_when_left())
    try:
        with cancellation:
            yield
    finally:
        leaving.cancel()


async def _question(model: type[Question], request: Request) -> Question:
    """The question of a request's body, or of its query string.

    Raises:
        RequestInvalid: it is malformed.
        Refused: it is too long.
    """
    try:
        if request.method == "GET":
            return model.model_validate(_parameters(model, request.query_params))
        body = await body_of(request, MAX_BODY_BYTES)
        validate = partial(model.model_validate_json, body.strip() or b"{}")
        return await to_thread.run_sync(validate) if len(body) > PARSED_AT_ONCE else validate()
    except ValidationError as error:
        raise RequestInvalid(f"The question is wrong: {first_mistake(error)}.") from error


def _parameters(model: type[Question], parameters: QueryParams) -> dict[str, object]:
    """The parameters of a query string; a list has its values one after the other."""
    return {
        name: parameters.getlist(name) if name == "columns" else parameters[name]
        for name in parameters
    }


def _format(request: Request) -> RowFormat:
    """The format of the answer. Raises Refused if the client takes none."""
    format = format_for(request.headers.get("accept", ""))
    if format is None:
        known = ", ".join(each.media_type.partition(";")[0] for each in FORMATS)
        error = RequestInvalid(
            "The header Accept names no format of rows.", remedy=f"Name one of {known}."
        )
        raise Refused(HTTPStatus.NOT_ACCEPTABLE, error)
    return format


def _tag(table: HudiTable) -> str:
    """An ETag of the present snapshot: weak, since rows come in no particular order."""
    return f'W/"{hashlib.sha256(table.timeline_version().encode()).hexdigest()[:24]}"'
