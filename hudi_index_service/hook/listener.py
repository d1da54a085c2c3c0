"""The HTTP server for Hudi's commit callback: checks a request, wakes the worker, answers.

Needs the extra ``hook`` (starlette, uvicorn). The callback is only a wake-up: the listener reads
nothing of its body but ``basePath``, and uses it only to find the table on the allow-list.
"""

import asyncio
import json
from concurrent.futures import Future
from contextlib import suppress
from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from hudi_index_service.build.outcomes import Build
from hudi_index_service.config import HookSettings
from hudi_index_service.errors import CallbackRefused, IndexServiceError
from hudi_index_service.hook.allowed_tables import AllowedTables
from hudi_index_service.hook.server import MAX_BODY_BYTES, SecretServer, refusal, report
from hudi_index_service.hook.worker import Worker
from hudi_index_service.hook.write_options import (
    CALLBACK_PATH,
    SECRET_HEADER,
    WAIT_PARAMETER,
    requested_wait,
)


class CallbackListener(SecretServer):
    """Listens for callbacks from construction to `close`.

    The constructor binds the socket, so that `url` is known; from `start` on, a thread answers
    requests.

    Args:
        secret: Required value of the header `SECRET_HEADER`.
        settings: Address to bind, and limits of connections.
        wait: Seconds to hold an answer until the requested build ends; 0 answers at once. A
            callback can set another time in its URL.
        max_body_bytes: As for `SecretServer`.

    Raises:
        ConfigInvalid: the address cannot be bound.
    """

    def __init__(
        self,
        worker: Worker,
        tables: AllowedTables,
        secret: str,
        settings: HookSettings,
        *,
        wait: float = 0.0,
        max_body_bytes: int = MAX_BODY_BYTES,
    ) -> None:
        super().__init__(
            CALLBACK_PATH,
            SECRET_HEADER,
            secret,
            section="hook",
            refused=CallbackRefused,
            too_long="Run `hudi-index build <table>` after commits of so many files.",
            host=settings.host,
            port=settings.port,
            shutdown_seconds=wait + 1,
            max_body_bytes=max_body_bytes,
            limits=settings,
        )
        self._worker = worker
        self._tables = tables
        self._wait = wait
        self.url += CALLBACK_PATH

    async def answer(self, request: Request, body: bytes) -> Response:
        """Wakes the worker for the table that a callback names."""
        base_path = _base_path(body)
        if base_path is None:
            error = CallbackRefused("The body is not a Hudi commit callback.")
            return refusal(HTTPStatus.BAD_REQUEST, error)
        try:
            table = self._tables.find(base_path)
        except CallbackRefused as error:
            return refusal(HTTPStatus.FORBIDDEN, error)
        try:
            build = self._worker.wake(table)
        except CallbackRefused as error:
            return refusal(HTTPStatus.SERVICE_UNAVAILABLE, error)
        return await self._outcome(
            build, requested_wait(request.query_params.get(WAIT_PARAMETER), self._wait)
        )

    async def _outcome(self, build: Future[Build], wait: float) -> Response:
        if wait > 0:
            self.grant(wait + 1)
            await _wait_until_done(build, wait)
        if not build.done():
            return JSONResponse({"status": "accepted"}, HTTPStatus.ACCEPTED)
        error = build.exception()
        if error is not None:
            if not isinstance(error, IndexServiceError):
                error = IndexServiceError(f"The build failed: {type(error).__name__}: {error}.")
            return JSONResponse({"status": "failed", **report(error)})
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


def _base_path(body: bytes) -> str | None:
    try:
        message = json.loads(body)
    except (ValueError, RecursionError):
        return None
    base_path = message.get("basePath") if isinstance(message, dict) else None
    return base_path if isinstance(base_path, str) else None
