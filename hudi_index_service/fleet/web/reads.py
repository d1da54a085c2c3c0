"""Rows by HTTP, below ``/api/v1/tables/{name}/``. Queries are never logged: neither conditions nor
values.
"""

import hashlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from time import monotonic
from typing import TypeVar

from anyio import CapacityLimiter, to_thread
from pydantic import BaseModel, ValidationError
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from hudi_index_service.cancellation import Cancellation
from hudi_index_service.errors import NotCovered, RequestInvalid
from hudi_index_service.fleet.policies.policy import TablePolicy
from hudi_index_service.fleet.reads.formats import (
    ARROW,
    FORMATS,
    JSON_LINES,
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
    SnapshotQuestion,
)
from hudi_index_service.fleet.reads.tables import ReadTables
from hudi_index_service.fleet.web.events import Streams
from hudi_index_service.fleet.web.exchange import (
    PARSED_AT_ONCE,
    PREFIX,
    Gate,
    JsonAnswer,
    Refused,
    address_of,
    body_of,
)
from hudi_index_service.fleet.web.requests import Caller, Requests
from hudi_index_service.hook.streaming import Begun, StreamedAnswer, while_wanted
from hudi_index_service.hudi.table import HudiTable
from hudi_index_service.wording import first_mistake

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

    def routes(self, requests: Requests, gate: Gate, streams: Streams) -> Sequence[BaseRoute]:
        """The routes of all questions. Those that wait count as streams."""
        return [
            Route(
                f"{PREFIX}/tables/{{name:path}}/{each.path}",
                self._endpoint(each, requests, gate, streams),
                methods=each.methods,
            )
            for each in ROUTES
        ]

    def close(self) -> None:
        """Closes the tables."""
        self._tables.close()

    def _endpoint(
        self, route: ReadRoute, requests: Requests, gate: Gate, streams: Streams
    ) -> Callable[[Request], Awaitable[Response]]:
        async def respond(request: Request) -> Response:
            caller = Caller(gate.bearer(request), address_of(request))
            name = request.path_params["name"]
            policy = requests.readable(caller, name)
            format = _format(request)
            question = await _question(route.question, request)
            if route.answer is None and _is_fast(question) and not format.says_fast:
                raise _not_acceptable(
                    "CSV cannot say what a fast answer leaves out.", ARROW, JSON_LINES
                )
            cancellation = Cancellation()

            async def begin() -> Response | Begun:
                async with while_wanted(request, cancellation):
                    return await self._work(lambda: self._begun(request, policy, question, format))

            patience = question.wait if isinstance(question, SnapshotQuestion) else 0.0
            looks = partial(requests.looked, caller, name)
            begun = await _when_covered(begin, looks, patience, request, streams)
            if isinstance(begun, Response):
                return begun
            return StreamedAnswer(request, begun, cancellation, self._work)

        return respond

    def _begun(
        self, request: Request, policy: TablePolicy, question: Question, format: RowFormat
    ) -> Response | Begun:
        """The answer, or its beginning. In one thread, since each change of threads costs as much
        as a look-up."""
        table, headers = self._tables.table(policy), dict(_HEADERS)
        asks_coverage = isinstance(question, SnapshotQuestion) and question.asks_coverage
        if request.method == "GET" and not asks_coverage:  # builds change no timeline
            # Before the rows: what is committed meanwhile is asked for once more.
            tag = headers["ETag"] = _tag(table.hudi_table)
            if tag in request.headers.get("if-none-match", ""):
                return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
        answer = question.answer(table)
        if not isinstance(answer, Rows):
            return JsonAnswer(answer.model_dump(exclude_unset=True), headers=headers)
        pieces = format.encode(answer.schema, answer.batches)
        codec = compression_for(request.headers.get("accept-encoding", ""))
        if codec is not None:
            pieces = compressed(pieces, codec)
            headers["Content-Encoding"] = codec
        headers["Content-Type"] = format.media_type
        return Begun.of(headers, pieces)

    async def _work(self, work: Callable[[], T]) -> T:
        return await to_thread.run_sync(work, limiter=self._threads)


async def _when_covered(
    begin: Callable[[], Awaitable[T]],
    looks: Callable[[], object],
    seconds: float,
    request: Request,
    streams: Streams,
) -> T:
    """The beginning of an answer, tried again whenever the fleet has seen something new of the
    table, such as the end of a build, while it is not covered and there is time to wait.

    Args:
        looks: What the fleet has seen of the table.

    Raises:
        NotCovered: it is still not, or too many requests wait already.
    """
    until = monotonic() + seconds
    while True:
        seen = looks()  # before the try, so that nothing is missed after it
        try:
            return await begin()
        except NotCovered:
            if (rest := until - monotonic()) <= 0:
                raise
            await streams.until(partial(_has_changed, looks, seen), rest, request.is_disconnected)
            if looks() == seen:
                raise


def _has_changed(looks: Callable[[], object], seen: object) -> bool:
    return looks() != seen


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
        raise _not_acceptable("The header Accept names no format of rows.", *FORMATS)
    return format


def _not_acceptable(message: str, *formats: RowFormat) -> Refused:
    known = ", ".join(each.media_type.partition(";")[0] for each in formats)
    error = RequestInvalid(message, remedy=f"Name one of {known}.")
    return Refused(HTTPStatus.NOT_ACCEPTABLE, error)


def _is_fast(question: Question) -> bool:
    return isinstance(question, SnapshotQuestion) and question.fast


def _tag(table: HudiTable) -> str:
    """An ETag of the present snapshot: weak, since rows come in no particular order."""
    return f'W/"{hashlib.sha256(table.timeline().version.encode()).hexdigest()[:24]}"'
