"""Spark sessions without Python ask the service who reads their queries, and for the rows.

Needs the extra ``spark`` beside ``hook``; its modules are imported at the first question, since
most services get none.
"""

from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from importlib import import_module
from threading import Lock
from typing import TYPE_CHECKING, TypeAlias

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from hudi_index_service.config import Settings
from hudi_index_service.errors import IndexServiceError, RequestRefused
from hudi_index_service.fleet.web.access import Action, Token
from hudi_index_service.fleet.web.exchange import (
    Gate,
    Refused,
    address_of,
    body_of,
    error_answer,
    refused,
)
from hudi_index_service.fleet.web.requests import Caller, Requests
from hudi_index_service.hook.daemon import extra_required

if TYPE_CHECKING:
    from hudi_index_service.sql.daemon.questions import Questions
    from hudi_index_service.sql.daemon.statements import SessionStatements
    from hudi_index_service.sql.rule.reader import RelationReader

    _Answering: TypeAlias = tuple[Questions, RelationReader, SessionStatements]

PATH = "/v{version}/{question}"

_MAX_BODY_BYTES = 32 * 2**20

Allowed = Callable[[Caller, Requests, str], str]
"""The base path of a table as it is opened, by the one that a caller's session has. Raises an
IndexServiceError if there is none for that caller."""

OptionsOf = Callable[[str], Mapping[str, str] | None]


class SparkSessions:
    """Answers sessions, each with a token that may see tables.

    Args:
        settings: As for `open_table`.
        allowed: Which tables they may read.
        options_of: The options of a table's store, by its base path.
        may_change: Whether their statements may change indexes.
    """

    def __init__(
        self,
        settings: Settings,
        allowed: Allowed,
        options_of: OptionsOf,
        *,
        may_change: bool = False,
    ) -> None:
        self._settings = settings
        self._allowed, self._options_of = allowed, options_of
        self._may_change = may_change
        self._lock = Lock()
        self._questions: Questions | None = None
        # Of its own for each token: what one was answered is kept, and is not for another one.
        self._readers: dict[tuple[str, ...], tuple[RelationReader, SessionStatements]] = {}

    def routes(self, requests: Requests, gate: Gate) -> Sequence[BaseRoute]:
        """The route of the questions."""

        async def respond(request: Request) -> Response:
            try:
                caller = Caller(_token(gate, request), address_of(request))
                caller.require(Action.SEE)
                body = await _body(request)
                answering = self._known(caller)
                if answering is None:  # the first question imports modules
                    answering = await run_in_threadpool(self._answering, caller, requests)
            except Refused as refusal:
                return error_answer(refusal)
            except IndexServiceError as error:
                return error_answer(refused(error))
            questions, reader, statements = answering
            return await questions.answer(request, body, reader, statements)

        return [Route(PATH, respond, methods=["POST"])]

    def close(self) -> None:
        """Closes the tables."""
        for reader, _ in self._readers.values():
            reader.close()

    def _known(self, caller: Caller) -> "_Answering | None":
        """What answers a caller that was answered before. A question that waits for one thread
        less waits less beside builds."""
        found = self._readers.get(_key(caller))
        return None if found is None or self._questions is None else (self._questions, *found)

    def _answering(self, caller: Caller, requests: Requests) -> "_Answering":
        require_spark()
        from hudi_index_service.sql.daemon.questions import Questions
        from hudi_index_service.sql.daemon.statements import SessionStatements
        from hudi_index_service.sql.rule.reader import RelationReader

        key = _key(caller)
        with self._lock:
            self._questions = self._questions or Questions()
            found = self._readers.get(key)
            if found is None:
                reader = RelationReader(
                    self._options_of,
                    self._settings,
                    lambda path: self._allowed(caller, requests, path),
                )
                statements = SessionStatements(reader, may_change=self._may_change)
                found = self._readers[key] = reader, statements
        return self._questions, *found


def _key(caller: Caller) -> tuple[str, ...]:
    return caller.token.name, *caller.token.tables


def require_spark() -> None:
    """Raises ConfigInvalid if the extra is not installed."""
    with extra_required("Answering Spark sessions", "spark,hook"):
        import_module("hudi_index_service.sql.daemon.questions")
        import_module("hudi_index_service.sql.daemon.statements")


def _token(gate: Gate, request: Request) -> Token:
    try:
        return gate.bearer(request)
    except Refused as refusal:
        if refusal.status is HTTPStatus.UNAUTHORIZED:
            refusal.error = RequestRefused("The header Authorization is missing or wrong.")
        raise


async def _body(request: Request) -> bytes:
    try:
        return await body_of(request, _MAX_BODY_BYTES)
    except Refused as refusal:
        refusal.error = RequestRefused(refusal.error.message)
        raise
