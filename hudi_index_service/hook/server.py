"""A small HTTP server that answers only requests with a secret, and whose clients cannot use up the
process's files. Needs the extra ``hook`` (starlette, uvicorn)."""

import hmac
import logging
import os
import socket
from abc import ABC, abstractmethod
from http import HTTPStatus
from math import ceil
from threading import Thread

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from hudi_index_service.config import HookSettings
from hudi_index_service.errors import ConfigInvalid, IndexServiceError, Remedy
from hudi_index_service.hook.connections import Connections, Refusals, connections_allowed
from hudi_index_service.wording import reason

log = logging.getLogger(__name__)

MAX_BODY_BYTES = 32 * 2**20

LOOPBACK = ("127.0.0.1", "::1", "localhost")
_EVERY_ADDRESS = ("0.0.0.0", "::", "")


class SecretServer(ABC):
    """Listens from construction to `close`; from `start` on, a thread answers requests.

    Args:
        path: What is answered, by POST; may contain parameters.
        header: The name of the header with the secret.
        value: Its required value.
        section: The section of the settings with ``host`` and ``port``, for messages.
        refused: The error of a request that is not answered.
        too_long: What to do about a body that is too long; None for that error's own remedy.
        host: Address to bind; port 0 takes a free one.
        shutdown_seconds: Time for requests in progress when it is closed.
        max_body_bytes: Maximum length of a body; a longer one is refused and not read to its end.
        limits: Of connections; their number is lowered if it would not leave most of the process's
            files to its work.

    Raises:
        ConfigInvalid: the address cannot be bound.
    """

    def __init__(
        self,
        path: str,
        header: str,
        value: str,
        *,
        section: str,
        refused: type[IndexServiceError],
        too_long: str | None = None,
        host: str,
        port: int,
        shutdown_seconds: float,
        max_body_bytes: int = MAX_BODY_BYTES,
        limits: HookSettings,
    ) -> None:
        self._header, self._value = header, value.encode()
        self._refused, self._too_long = refused, too_long
        self._max_body_bytes = max_body_bytes
        self._socket = bound_socket(host, port, section)
        self.url = url_of(host, self._socket.getsockname()[1])
        if host not in LOOPBACK:
            log.warning("%s is open to the network, and the secret travels unencrypted.", self.url)
        app = Starlette(
            routes=[Route(path, self._respond, methods=["POST"])],
            exception_handlers={
                HTTPException: self._http_error,
                ClientDisconnect: self._disconnected,
            },
        )
        most = connections_allowed(limits.max_connections)
        self._refusals = Refusals()
        self.connections = Connections(
            most=most, request_seconds=limits.request_seconds, refusals=self._refusals
        )
        self._server = uvicorn.Server(
            uvicorn.Config(
                app,
                loop="asyncio",  # whatever else is installed
                http=self.connections.protocol(),
                backlog=most,  # as many are accepted before any of them is processed
                log_config=None,
                access_log=False,
                server_header=False,
                lifespan="off",
                ws="none",
                # For clients that never finish their request.
                timeout_graceful_shutdown=ceil(shutdown_seconds),
            )
        )
        self._thread = Thread(target=self._serve, name="hudi-index-listener", daemon=True)

    def start(self) -> None:
        """Starts the thread that answers requests."""
        self._thread.start()

    def close(self) -> None:
        """Answers the requests in progress, stops listening, and joins the thread."""
        self._server.should_exit = True
        if self._thread.ident is not None:
            self._thread.join()
        self._refusals.close()
        self._socket.close()

    def grant(self, seconds: float) -> None:
        """Gives a request in progress this many seconds, even while the server closes."""
        shutdown = self._server.config.timeout_graceful_shutdown or 0
        self._server.config.timeout_graceful_shutdown = max(shutdown, ceil(seconds))

    @abstractmethod
    async def answer(self, request: Request, body: bytes) -> Response:
        """The answer to a request with the secret."""

    async def _respond(self, request: Request) -> Response:
        # Takes the same time for every wrong secret.
        if not hmac.compare_digest(request.headers.get(self._header, "").encode(), self._value):
            error = self._refused(f"The header {self._header} is missing or wrong.")
            return self._refuse_any_client(HTTPStatus.UNAUTHORIZED, error)
        body = await self._body(request)
        if body is None:
            error = self._refused(
                f"The body is longer than {self._max_body_bytes} bytes.", remedy=self._too_long
            )
            return refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, error)
        return await self.answer(request, body)

    async def _body(self, request: Request) -> bytes | None:
        """The body; None if it is too long, with the rest unread."""
        content_length = request.headers.get("content-length", "0")
        if int(content_length) > self._max_body_bytes:
            return None
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > self._max_body_bytes:
                return None
        return bytes(body)

    def _refuse_any_client(
        self, status: HTTPStatus, error: IndexServiceError, *, log_text: object = None
    ) -> Response:
        """The answer to a request that any client can send repeatedly.

        Args:
            log_text: Logged instead of an error that contains text from the client.
        """
        self._refusals.report(f"Request refused ({status:d}): {log_text or error}")
        return JSONResponse(report(error), status)

    def _serve(self) -> None:
        self._server.run(sockets=[self._socket])

    async def _http_error(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        refusal = self._refused(f"{request.method} is not supported here: {error.detail}.")
        return self._refuse_any_client(
            HTTPStatus(error.status_code), refusal, log_text=f"{error.detail}."
        )

    async def _disconnected(self, request: Request, error: Exception) -> Response:
        # No client reads the answer; the refusal is for the log.
        refusal = self._refused("The connection ended before the body did.")
        return self._refuse_any_client(HTTPStatus.BAD_REQUEST, refusal)


def refusal(status: HTTPStatus, error: IndexServiceError) -> JSONResponse:
    """The answer to a request with the secret that is refused all the same, which is logged."""
    log.warning("Request refused (%d): %s", status, error)
    return JSONResponse(report(error), status)


def report(error: IndexServiceError) -> dict[str, str]:
    """An error in JSON."""
    return {"code": error.code, "message": error.message, "remedy": error.remedy}


def bound_socket(host: str, port: int, section: str) -> socket.socket:
    """A socket that listens; `section` of the settings has ``host`` and ``port``.

    Raises:
        ConfigInvalid: the address cannot be bound.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family)
        # Accepted connections inherit it. asyncio sets it on those of sockets of its own alone, and
        # otherwise each answer after a connection's first waits 40 ms for the client's ACK.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listening
    except (OSError, OverflowError) as error:
        free = "a free address of this machine; port 0 takes a free one."
        raise ConfigInvalid(
            f"This process cannot listen on {host}:{port}: {_cause(error)}.",
            remedy=Remedy(
                f"Set {section}.host and {section}.port to {free}",
                command=f"Give --host and --port {free}",
            ),
        ) from error


def _cause(error: OSError | OverflowError) -> str:
    if isinstance(error, OSError) and error.errno is not None and error.errno > 0:
        return os.strerror(error.errno)  # to which Python adds the address
    return reason(error)


def url_of(host: str, port: int, scheme: str = "http") -> str:
    """The URL of a server; by the machine's name if it listens on every address."""
    name = socket.gethostname() if host in _EVERY_ADDRESS else host
    return f"{scheme}://{f'[{name}]' if ':' in name else name}:{port}"
