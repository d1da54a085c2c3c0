"""The HTTP server for Hudi's commit callback: checks a request, wakes the worker, answers.

Needs the extra ``hook`` (starlette, uvicorn). The callback is only a wake-up: the listener reads
nothing of its body but ``basePath``, and uses it only to find the table on the allow-list.
"""

import asyncio
import hmac
import json
import logging
import os
import socket
from concurrent.futures import Future
from contextlib import suppress
from http import HTTPStatus
from math import ceil
from threading import Thread

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from hudi_index_service.build.run import Build
from hudi_index_service.errors import CallbackRefused, ConfigInvalid, IndexServiceError, Remedy
from hudi_index_service.hook.allowed_tables import AllowedTables
from hudi_index_service.hook.connections import Connections, Refusals, connections_allowed
from hudi_index_service.hook.worker import Worker
from hudi_index_service.hook.write_options import SECRET_HEADER, WAIT_PARAMETER
from hudi_index_service.upkeep.write_keys import MAX_WAIT_SECONDS
from hudi_index_service.wording import reason

log = logging.getLogger(__name__)

CALLBACK_PATH = "/hudi/commit"

# Hudi sends about a kilobyte for each file that a commit wrote.
MAX_BODY_BYTES = 32 * 2**20

_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_EVERY_ADDRESS = ("0.0.0.0", "::", "")


class CallbackListener:
    """Listens for callbacks from construction to `close`.

    The constructor binds the socket, so that `url` is known; from `start` on, a thread answers
    requests.

    Args:
        host: Address to bind; port 0 takes a free one.
        secret: Required value of the header `SECRET_HEADER`.
        wait: Seconds to hold an answer until the requested build ends; 0 answers at once. A
            callback can set another time in its URL.
        max_body_bytes: Maximum length of a body; a longer one is refused and not read to its end.
        max_connections: Maximum number of open connections; lowered if this would not leave most
            of the process's files to builds.
        request_seconds: Time within which a whole request must arrive.

    Raises:
        ConfigInvalid: the address cannot be bound.
    """

    def __init__(
        self,
        worker: Worker,
        tables: AllowedTables,
        secret: str,
        *,
        host: str,
        port: int,
        wait: float = 0.0,
        max_body_bytes: int = MAX_BODY_BYTES,
        max_connections: int = 128,
        request_seconds: float = 15.0,
    ) -> None:
        self._worker = worker
        self._tables = tables
        self._secret = secret.encode()
        self._wait = wait
        self._max_body_bytes = max_body_bytes
        self._socket = _bind(host, port)
        self.url = _url(host, self._socket.getsockname()[1])
        if host not in _LOOPBACK:
            log.warning("%s is open to the network, and the secret travels unencrypted.", self.url)
        app = Starlette(
            routes=[Route(CALLBACK_PATH, self._callback, methods=["POST"])],
            exception_handlers={
                HTTPException: self._http_error,
                ClientDisconnect: self._disconnected,
            },
        )
        most = connections_allowed(max_connections)
        self._refusals = Refusals()
        self.connections = Connections(
            most=most, request_seconds=request_seconds, refusals=self._refusals
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
                timeout_graceful_shutdown=ceil(wait) + 1,
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

    def _serve(self) -> None:
        self._server.run(sockets=[self._socket])

    async def _callback(self, request: Request) -> Response:
        if not self._has_secret(request):
            refusal = CallbackRefused(f"The header {SECRET_HEADER} is missing or wrong.")
            return self._refuse_any_client(HTTPStatus.UNAUTHORIZED, refusal)
        body = await self._body(request)
        if body is None:
            return _refusal(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                f"The body is longer than {self._max_body_bytes} bytes.",
                remedy="Run `hudi-index build <table>` after commits of so many files.",
            )
        base_path = _base_path(body)
        if base_path is None:
            return _refusal(HTTPStatus.BAD_REQUEST, "The body is not a Hudi commit callback.")
        try:
            table = self._tables.find(base_path)
        except CallbackRefused as error:
            return _error(HTTPStatus.FORBIDDEN, error)
        try:
            build = self._worker.wake(table)
        except CallbackRefused as error:
            return _error(HTTPStatus.SERVICE_UNAVAILABLE, error)
        return await self._answer(build, _requested_wait(request, self._wait))

    def _refuse_any_client(
        self, status: HTTPStatus, error: CallbackRefused, *, log_text: object = None
    ) -> Response:
        """The answer to a request that any client can send repeatedly.

        Args:
            log_text: Logged instead of an error that contains text from the client.
        """
        self._refusals.report(f"Callback refused ({status:d}): {log_text or error}")
        return JSONResponse(_report(error), status)

    async def _http_error(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        refusal = CallbackRefused(
            f"The hook does not answer this {request.method}: {error.detail}."
        )
        return self._refuse_any_client(
            HTTPStatus(error.status_code), refusal, log_text=f"{error.detail}."
        )

    async def _disconnected(self, request: Request, error: Exception) -> Response:
        # No client reads the answer; the refusal is for the log.
        refusal = CallbackRefused("The connection ended before the body did.")
        return self._refuse_any_client(HTTPStatus.BAD_REQUEST, refusal)

    def _grant(self, wait: float) -> None:
        """Gives a request in progress this many seconds, even while the listener closes."""
        shutdown = self._server.config.timeout_graceful_shutdown or 0
        self._server.config.timeout_graceful_shutdown = max(shutdown, ceil(wait) + 1)

    def _has_secret(self, request: Request) -> bool:
        header = request.headers.get(SECRET_HEADER, "").encode()
        return hmac.compare_digest(header, self._secret)

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

    async def _answer(self, build: Future[Build], wait: float) -> Response:
        if wait > 0:
            self._grant(wait)
            await _wait_until_done(build, wait)
        if not build.done():
            return JSONResponse({"status": "accepted"}, HTTPStatus.ACCEPTED)
        error = build.exception()
        if error is not None:
            if not isinstance(error, IndexServiceError):
                error = IndexServiceError(f"The build failed: {type(error).__name__}: {error}.")
            return JSONResponse({"status": "failed", **_report(error)})
        result = build.result()
        return JSONResponse(
            {"status": "built", "built": len(result.built), "failed": len(result.failed)}
        )


async def _wait_until_done(build: Future[Build], seconds: float) -> None:
    """Waits for the build, at most `seconds`. `asyncio.wrap_future` would cancel the build on
    timeout."""
    loop, done = asyncio.get_running_loop(), asyncio.Event()

    def set_done(_: Future[Build]) -> None:
        # The loop is closed if the listener closed before the build ended.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(done.set)

    build.add_done_callback(set_done)
    with suppress(TimeoutError):
        await asyncio.wait_for(done.wait(), seconds)


def _bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as error:
        raise ConfigInvalid(
            f"The hook cannot listen on {host}:{port}: {_cause(error)}.",
            remedy=Remedy(
                "Set hook.host and hook.port to a free address of this machine; port 0 takes a "
                "free one.",
                command="Give --host and --port a free address of this machine; port 0 takes a "
                "free one.",
            ),
        ) from error


def _cause(error: OSError | OverflowError) -> str:
    if isinstance(error, OSError) and error.errno is not None and error.errno > 0:
        return os.strerror(error.errno)  # to which Python adds the address
    return reason(error)


def _url(host: str, port: int) -> str:
    name = socket.gethostname() if host in _EVERY_ADDRESS else host
    return f"http://{f'[{name}]' if ':' in name else name}:{port}{CALLBACK_PATH}"


def _base_path(body: bytes) -> str | None:
    try:
        message = json.loads(body)
    except (ValueError, RecursionError):
        return None
    base_path = message.get("basePath") if isinstance(message, dict) else None
    return base_path if isinstance(base_path, str) else None


def _requested_wait(request: Request, default: float) -> float:
    """The wait that the URL requests; `default` if it has none or an invalid one."""
    try:
        wait = float(request.query_params[WAIT_PARAMETER])
    except (KeyError, ValueError):
        return default
    return wait if 0 <= wait <= MAX_WAIT_SECONDS else default


def _report(error: IndexServiceError) -> dict[str, str]:
    return {"code": error.code, "message": error.message, "remedy": error.remedy}


def _error(status: HTTPStatus, error: IndexServiceError) -> JSONResponse:
    log.warning("Callback refused (%d): %s", status, error)
    return JSONResponse(_report(error), status)


def _refusal(status: HTTPStatus, message: str, *, remedy: str | None = None) -> JSONResponse:
    return _error(status, CallbackRefused(message, remedy=remedy))
