"""HTTP requests and answers: bodies of limited length, who sends them, errors with their status."""

import json
from collections.abc import Mapping
from datetime import datetime
from http import HTTPStatus
from math import ceil
from typing import Any

from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from hudi_index_service.errors import (
    AccessDenied,
    AccessRefused,
    CallbackRefused,
    ColumnNotFound,
    ConfigInvalid,
    IndexRequired,
    IndexServiceError,
    NotAHudiTable,
    NotCovered,
    PermissionDenied,
    PredicateInvalid,
    PredicateUnsupported,
    QueryCancelled,
    RequestInvalid,
    RequestUnknown,
    SnapshotChanged,
    SnapshotUnavailable,
    StorageFailed,
    TableFeatureUnsupported,
    TableNotFound,
    TableNotInFleet,
)
from hudi_index_service.fleet.web.access import Attempts, Token, Tokens
from hudi_index_service.hook.connections import Refusals

STATUS_OF: Mapping[type[IndexServiceError], HTTPStatus] = {
    AccessRefused: HTTPStatus.UNAUTHORIZED,
    AccessDenied: HTTPStatus.FORBIDDEN,
    TableNotInFleet: HTTPStatus.NOT_FOUND,
    RequestUnknown: HTTPStatus.NOT_FOUND,
    RequestInvalid: HTTPStatus.BAD_REQUEST,
    ConfigInvalid: HTTPStatus.BAD_REQUEST,
    CallbackRefused: HTTPStatus.SERVICE_UNAVAILABLE,  # too many requests wait
    # Of queries.
    ColumnNotFound: HTTPStatus.BAD_REQUEST,
    PredicateInvalid: HTTPStatus.BAD_REQUEST,
    PredicateUnsupported: HTTPStatus.BAD_REQUEST,
    SnapshotUnavailable: HTTPStatus.CONFLICT,
    SnapshotChanged: HTTPStatus.CONFLICT,
    IndexRequired: HTTPStatus.CONFLICT,
    NotCovered: HTTPStatus.CONFLICT,
    TableFeatureUnsupported: HTTPStatus.NOT_IMPLEMENTED,  # only Spark reads the table
    QueryCancelled: HTTPStatus.REQUEST_TIMEOUT,
    StorageFailed: HTTPStatus.BAD_GATEWAY,
    PermissionDenied: HTTPStatus.BAD_GATEWAY,
    TableNotFound: HTTPStatus.BAD_GATEWAY,  # the fleet names it
    NotAHudiTable: HTTPStatus.BAD_GATEWAY,
}
"""The status of an error; any other error of the service is 500."""

PREFIX = "/api/v1"
"""Of the API's paths."""

RETRY_SECONDS = 5.0

MAX_FORM_BYTES = 64 * 1024

PARSED_AT_ONCE = 256 * 1024
"""Bytes of a body. A longer one is parsed in a thread, so that others need not wait for it."""


class Refused(Exception):
    """An error with a status of its own.

    Args:
        retry_seconds: When to try again; 0 says nothing of it.
    """

    def __init__(
        self, status: HTTPStatus, error: IndexServiceError, *, retry_seconds: float = 0.0
    ) -> None:
        super().__init__(error.message)
        self.status, self.error = status, error
        self.headers = {"Retry-After": str(ceil(retry_seconds))} if retry_seconds else {}


def refused(error: IndexServiceError) -> Refused:
    """An error with the status of its kind."""
    found = (status for kind, status in STATUS_OF.items() if isinstance(error, kind))
    status = next(found, HTTPStatus.INTERNAL_SERVER_ERROR)
    busy = status is HTTPStatus.SERVICE_UNAVAILABLE
    return Refused(status, error, retry_seconds=RETRY_SECONDS if busy else 0.0)


class JsonAnswer(Response):
    """JSON in ASCII, since names of files may hold what is no character."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """The bytes of a model or a plain value."""
        plain = content.model_dump() if isinstance(content, BaseModel) else content
        return json.dumps(plain, default=_plain, allow_nan=False).encode()


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, BaseModel):
        return value.model_dump()
    raise TypeError(f"{type(value).__name__} is no JSON")


def error_answer(refusal: Refused) -> JsonAnswer:
    """An error in JSON."""
    error = refusal.error
    content = {"code": error.code, "message": error.message, "remedy": error.remedy}
    return JsonAnswer(content, refusal.status, headers=refusal.headers)


async def body_of(request: Request, most: int) -> bytes:
    """The body of a request; the rest of one that is too long is not read.

    Raises:
        Refused: it is longer than `most` bytes.
    """
    length = request.headers.get("content-length", "")
    body = bytearray()
    if not length.isdecimal() or int(length) <= most:
        async for chunk in request.stream():
            body += chunk
            if len(body) > most:
                break
        else:
            return bytes(body)
    error = RequestInvalid(f"The body is longer than {most} bytes.")
    raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, error)


async def json_of(body: bytes) -> object:
    """A body as JSON. A long one is read in a thread, so that others need not wait for it.

    Raises:
        ValueError: it is none, or too deep.
    """
    if len(body) > PARSED_AT_ONCE:
        return await run_in_threadpool(_parsed, body)
    return _parsed(body)


def _parsed(body: bytes) -> object:
    try:
        parsed: object = json.loads(body)
    except RecursionError as error:
        raise ValueError("it is too deep") from error
    return parsed


def address_of(request: Request) -> str:
    """The other end of the connection."""
    return request.client.host if request.client else "unknown"


class Gate:
    """Lets in who has a token, and slows down who guesses. Only for the event loop's thread."""

    def __init__(self, tokens: Tokens, refusals: Refusals) -> None:
        self._tokens, self._refusals, self._attempts = tokens, refusals, Attempts()

    def bearer(self, request: Request, *, header: str = "") -> Token:
        """The token of a request's Authorization, or of a header of its own.

        A right token is always let in, so that one writer with a wrong one does not shut out the
        others behind the same address.

        Raises:
            Refused: there is none, or a wrong one.
        """
        scheme, _, secret = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            secret = request.headers.get(header, "") if header else ""
        token = self._tokens.find(secret.strip()) if secret.strip() else None
        if token is not None:
            return token
        address = address_of(request)
        wait = self._attempts.wait(address)
        if not secret:
            raise self._refused(HTTPStatus.UNAUTHORIZED, "The request carries no token.")
        if wait:
            raise self._too_many(wait)
        self._attempts.failed(address)
        raise self._refused(HTTPStatus.UNAUTHORIZED, "The token is wrong.")

    def login(self, request: Request, secret: str) -> Token:
        """The token that a login form sent.

        Raises:
            Refused: it is wrong; or many from this address were, and this one is not looked at.
        """
        address = address_of(request)
        if wait := self._attempts.wait(address):
            raise self._too_many(wait)
        token = self._tokens.find(secret.strip()) if secret.strip() else None
        if token is None:
            self._attempts.failed(address)
            raise self._refused(HTTPStatus.UNAUTHORIZED, "The token is wrong.")
        return token

    def _too_many(self, wait: float) -> Refused:
        message = "Too many wrong tokens came from this address."
        return self._refused(HTTPStatus.TOO_MANY_REQUESTS, message, wait)

    def _refused(self, status: HTTPStatus, message: str, wait: float = 0.0) -> Refused:
        self._refusals.report(f"Request refused ({status:d}): {message}")
        remedy = f"Wait {ceil(wait)} s, and try again with the right one." if wait else None
        return Refused(status, AccessRefused(message, remedy=remedy), retry_seconds=wait)
