"""The questions of Spark sessions without Python: `HttpSource.java` asks them.

Needs the extra ``hook`` (starlette). Each question is a POST to ``/v<version>/<question>``
with a JSON body:

- ``decide`` and ``rows``, with a request. Few rows are a stream in Arrow's format; the header
  ``Hudi-Index-Cost`` says in JSON what reading them has cost. Many, for sessions that say
  ``parts=true`` in the query string, are such streams one after the other, each after its length
  in eight bytes; at the end are a length of 0 and the cost in JSON.
- ``bind``, with a full-text call.
- ``statement``, ``run`` and ``explain``, about index statements (`SessionStatements`).

The query string of ``decide``, ``rows`` and ``explain`` has ``cores``: the number of tasks that
Spark runs at once.

Answers with the status 200 are those that Python gives by py4j (`Answers`). Other statuses come
with the error's code, message and remedy in JSON: 4xx if asking again is of no use.
"""

import json
import logging
from asyncio import Semaphore
from collections.abc import Callable, Generator, Iterator
from contextlib import nullcontext
from dataclasses import asdict
from http import HTTPStatus
from typing import Any, TypeAlias

from anyio import CapacityLimiter, to_thread
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from hudi_index_service.cancellation import Cancellation
from hudi_index_service.errors import IndexServiceError, RequestRefused
from hudi_index_service.hook.streaming import Begun, StreamedAnswer, while_wanted
from hudi_index_service.optimizer.cost.in_spark import SessionReaders
from hudi_index_service.sql.daemon.statements import SessionStatements
from hudi_index_service.sql.rule.answers import Answers
from hudi_index_service.sql.rule.reader import RelationReader
from hudi_index_service.sql.rule.request import answered_versions
from hudi_index_service.sql.rule.uses import Observed

log = logging.getLogger(__name__)

Answer: TypeAlias = Callable[[str], Response | Begun]

ARROW = "application/vnd.apache.arrow.stream"
PARTS = "application/vnd.hudi-index.arrow-streams"
COST = "Hudi-Index-Cost"

# Questions that are answered at once, and parts of rows that are read at once; others wait, and are
# not answered if their session has left. A part is in memory as a whole.
_ROWS_AT_ONCE = 4
_OTHERS_AT_ONCE = 32
_CORES_DIGITS = 9


class Questions:
    """Answers questions, so many at once."""

    def __init__(self) -> None:
        self._rows, self._others = Semaphore(_ROWS_AT_ONCE), Semaphore(_OTHERS_AT_ONCE)
        self._pieces = CapacityLimiter(_ROWS_AT_ONCE)

    async def answer(
        self, request: Request, body: bytes, reader: RelationReader, statements: SessionStatements
    ) -> Response:
        """The answer to a question.

        Args:
            reader: Answers those about queries.
            statements: Answers those about statements.
        """
        try:
            answer = _answering(request, reader, statements)
            text = _json_object(body)
        except RequestRefused as error:
            log.warning("Request refused (%d): %s", HTTPStatus.BAD_REQUEST, error)
            return _error(error, HTTPStatus.BAD_REQUEST)
        try:
            question = request.path_params["question"]
            cancellation = Cancellation()
            async with self._rows if question == "rows" else self._others:
                if await request.is_disconnected():
                    return Response(status_code=HTTPStatus.REQUEST_TIMEOUT)  # nobody reads it
                # What has begun to change is finished.
                changes = question == "run"
                async with nullcontext() if changes else while_wanted(request, cancellation):
                    begun = await run_in_threadpool(answer, text)
            if isinstance(begun, Response):
                return begun
            return StreamedAnswer(request, begun, cancellation, self._piece)
        except Exception as error:  # of this program: sessions that wait need an answer
            log.exception("A session gets no answer.")
            failure = IndexServiceError(f"The daemon has failed: {type(error).__name__}.")
            return _error(failure, HTTPStatus.INTERNAL_SERVER_ERROR)

    async def _piece(self, work: Callable[[], Any]) -> Any:
        return await to_thread.run_sync(work, limiter=self._pieces)


def _answering(request: Request, reader: RelationReader, statements: SessionStatements) -> Answer:
    """What answers a request's body. Raises RequestRefused if nothing does."""
    version, question = request.path_params["version"], request.path_params["question"]
    versions = [str(each) for each in answered_versions()]
    if version not in versions:
        raise RequestRefused(
            f"The session's jar asks in version {version[:20]}, and this service answers "
            f"version {' and '.join(versions)}.",
            remedy="Install hudi-index-spark and hudi-index-service of one release.",
        )
    cores = request.query_params.get("cores", "1")
    is_number = cores.isascii() and cores.isdigit() and len(cores) <= _CORES_DIGITS
    if not is_number or int(cores) == 0:
        raise RequestRefused("The number of cores is not a positive number.")
    readers = SessionReaders(int(cores), tasks=False)
    answers = Answers(reader, readers)
    known: dict[str, Answer] = {
        "decide": lambda body: _json(answers.decision(body)),
        "rows": lambda body: _rows(answers, body, parts="parts" in request.query_params),
        "bind": lambda body: _json(answers.bound(body)),
        "statement": lambda body: _json(statements.described(body)),
        "run": lambda body: _json(statements.done(body)),
        "explain": lambda body: _json(statements.explained(body, readers)),
    }
    if question not in known:
        raise RequestRefused(f"There is no question {question[:50]!r}.")
    return known[question]


def _error(error: IndexServiceError, status: HTTPStatus) -> Response:
    content = {"code": error.code, "message": error.message, "remedy": error.remedy}
    return JSONResponse(content, status)


def _json(text: str) -> Response:
    return Response(text, media_type="application/json")


def _rows(answers: Answers, body: str, *, parts: bool) -> Response | Begun:
    cost = Observed()
    rows = answers.rows(body, observed=cost)
    if isinstance(rows, str):
        return _json(rows)
    if not isinstance(rows, Iterator):
        headers = {COST: json.dumps(asdict(cost))}
        return Response(rows, media_type=ARROW, headers=headers)
    if not parts:
        return _json(json.dumps({"reason": "they are too many for the session's jar"}))
    return Begun.of({"Content-Type": PARTS}, in_parts(rows, cost))


def in_parts(streams: Iterator[bytes], cost: Observed) -> Generator[bytes]:
    """The body of an answer in parts: the streams, and what reading them all has cost."""
    for each in streams:
        yield len(each).to_bytes(8)
        yield each
    yield bytes(8)
    yield json.dumps(asdict(cost)).encode()


def _json_object(body: bytes) -> str:
    try:
        text = body.decode()
        if isinstance(json.loads(text), dict):
            return text
    except (ValueError, RecursionError):
        pass
    raise RequestRefused("The body is no JSON object.")
