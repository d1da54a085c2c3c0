"""The application of a fleet: pages, API, callbacks, health and metrics; and the server for it.
Needs the extra ``hook`` (starlette, uvicorn, jinja2)."""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from http import HTTPStatus
from threading import Event, Thread
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hudi_index_service.config import HookSettings, WebSettings
from hudi_index_service.errors import (
    AccessDenied,
    CallbackRefused,
    ConfigInvalid,
    IndexServiceError,
    RequestInvalid,
)
from hudi_index_service.fleet.signals.attention import ReasonsOf
from hudi_index_service.fleet.supervisor import Supervisor
from hudi_index_service.fleet.traced import Traced
from hudi_index_service.fleet.web.access import Role, Token, Tokens, digest_of
from hudi_index_service.fleet.web.address import LOOPBACK, bound_socket, url_of
from hudi_index_service.fleet.web.api import Machinery, api_routes, machine_routes
from hudi_index_service.fleet.web.callbacks import callback_route
from hudi_index_service.fleet.web.certificate import Certificate
from hudi_index_service.fleet.web.events import Streams
from hudi_index_service.fleet.web.exchange import Gate, Refused, error_answer, refused
from hudi_index_service.fleet.web.page.forms import Forms
from hudi_index_service.fleet.web.page.pages import Pages
from hudi_index_service.fleet.web.queries import Ask
from hudi_index_service.fleet.web.requests import Requests
from hudi_index_service.fleet.web.sessions import Sessions
from hudi_index_service.hook.connections import Connections, Refusals, connections_allowed
from hudi_index_service.hook.write_options import CALLBACK_PATH

log = logging.getLogger(__name__)

SHUTDOWN_SECONDS = 5
"""For the requests that are being answered when a server closes."""

HEADERS: Mapping[str, str] = {
    # No inline script or style, nothing from another host, no frame around it.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # With no-referrer, browsers would send forms with an Origin of null.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Cache-Control": "no-store",
}
"""The headers of every answer that has none of these itself."""


MoreRoutes = Callable[[Requests, Gate, Streams], Sequence[BaseRoute]]


class Application:
    """Everything that a fleet answers by HTTP.

    Args:
        fleet: The tables.
        reasons_of: Why a table needs attention.
        machinery: Callbacks, health and metrics.
        settings: Of the pages.
        callback_secret: A further secret of callbacks, for all tables; "" for none.
        most_streams: Maximum open streams; None for the setting.
        session_token: A further token to read all tables; "" for none.
        ask: Answers queries of a table's page; None for pages without queries.
        more_routes: Makes further routes, which come first and check access by the gate.
        running: Entered in the server's loop before it answers, and left after it has.

    Raises:
        ConfigInvalid: the file of tokens is refused.
    """

    def __init__(
        self,
        fleet: Supervisor,
        reasons_of: ReasonsOf,
        machinery: Machinery,
        settings: WebSettings,
        *,
        callback_secret: str = "",
        most_streams: int | None = None,
        session_token: str = "",
        ask: Ask | None = None,
        more_routes: MoreRoutes = lambda requests, gate, streams: (),
        running: Callable[[], AbstractAsyncContextManager[None]] = nullcontext,
    ) -> None:
        self.running = running
        others: list[Token] = []
        if callback_secret:
            others.append(Token("hook.secret", Role.NOTIFY, digest_of(callback_secret)))
        if session_token:
            others.append(Token("answer.token", Role.READ, digest_of(session_token)))
        self.tokens = Tokens(settings.tokens, others)
        self.refusals = Refusals()
        most = settings.max_streams if most_streams is None else most_streams
        self.streams = Streams(most=most)
        requests = Requests(fleet, reasons_of, machinery.problems)
        gate = Gate(self.tokens, self.refusals)
        encrypted = settings.tls_cert is not None
        forms = Forms(
            Sessions(self.tokens, seconds=settings.session_seconds),
            origins=settings.origins,
            encrypted=encrypted or any(each.startswith("https:") for each in settings.origins),
        )
        self._pages = Pages(requests, gate, forms, self.streams, ask)
        routes = [
            *more_routes(requests, gate, self.streams),
            *machine_routes(machinery, gate),
            callback_route(machinery, requests, gate),
            *api_routes(requests, gate, self.streams),
            *self._pages.routes(),
        ]
        handlers: dict[Any, Callable[[Request, Any], Awaitable[Response]]] = {
            IndexServiceError: self._failed,
            Refused: self._refused,
            HTTPException: self._http_error,
            ClientDisconnect: self._disconnected,
            Exception: self._broken,
        }
        app = Starlette(routes=routes, exception_handlers=handlers)
        app.router.redirect_slashes = False
        self.app: ASGIApp = Traced(_WithHeaders(app))

    async def _failed(self, request: Request, error: IndexServiceError) -> Response:
        return await self._refused(request, refused(error))

    async def _refused(self, request: Request, refusal: Refused) -> Response:
        if isinstance(refusal.error, AccessDenied):  # names the token and its role
            self.refusals.report(f"Request refused (403): {refusal.error.message}")
        if _is_of_page(request):
            return self._pages.error(request, refusal)
        answer = error_answer(refusal)
        if refusal.status is HTTPStatus.UNAUTHORIZED:
            answer.headers["WWW-Authenticate"] = 'Bearer realm="hudi-index-service"'
        return answer

    async def _http_error(self, request: Request, error: HTTPException) -> Response:
        status = HTTPStatus(error.status_code)
        kind = CallbackRefused if request.url.path == CALLBACK_PATH else RequestInvalid
        refusal = Refused(status, kind(f"{status.phrase}: there is nothing here."))
        refusal.headers |= dict(error.headers or {})
        return await self._refused(request, refusal)

    async def _disconnected(self, request: Request, error: Exception) -> Response:
        # No client reads the answer; the refusal is for the log.
        self.refusals.report("A connection ended before the body did.")
        return Response(status_code=HTTPStatus.BAD_REQUEST)

    async def _broken(self, request: Request, error: Exception) -> Response:
        # Starlette raises the error again, for the server's log. Its text stays there.
        failure = IndexServiceError(f"The request failed: {type(error).__name__}.")
        return await self._refused(request, Refused(HTTPStatus.INTERNAL_SERVER_ERROR, failure))


def _is_of_page(request: Request) -> bool:
    return not _FOR_MACHINES.fullmatch(request.url.path.split("/")[1])


_FOR_MACHINES = re.compile("api|hudi|mcp|metrics|healthz|readyz|v[0-9]+")


class _WithHeaders:
    """Adds the headers that every answer has."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._headers = [(name.lower().encode(), text.encode()) for name, text in HEADERS.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                present = {name.lower() for name, _ in message["headers"]}
                absent = [each for each in self._headers if each[0] not in present]
                message = {**message, "headers": [*message["headers"], *absent]}
            await send(message)

        await self._app(scope, receive, sending)


class WebServer:
    """Serves an application from `start` to `close`, in a thread.

    Args:
        settings: Address, certificate and connections.
        limits: How long a request may take to arrive.
        application: Makes the application, with the most streams that the connections leave room
            for.
        section: The section of the settings with the address, for messages.

    Raises:
        ConfigInvalid: the address cannot be bound, or the certificate cannot be used.
    """

    def __init__(
        self,
        settings: WebSettings,
        limits: HookSettings,
        application: Callable[[int], Application],
        *,
        section: str = "web",
    ) -> None:
        setting = f"{'hook' if section == 'answer' else section}.max_connections"
        most = connections_allowed(settings.max_connections, setting)
        self.application = application(min(settings.max_streams, max(1, most // 2)))
        self.connections = Connections(
            most=most,
            request_seconds=limits.request_seconds,
            refusals=self.application.refusals,
            setting=setting,
        )
        config = uvicorn.Config(
            self.application.app,
            http=self.connections.protocol(),
            backlog=most,  # as many are accepted before any of them is processed
            log_config=None,
            log_level="warning",  # that it has started, the service says
            access_log=False,
            server_header=False,
            proxy_headers=False,  # any client could claim another address
            lifespan="off",
            ws="none",
            timeout_graceful_shutdown=SHUTDOWN_SECONDS,
            ssl_certfile=settings.tls_cert,
            ssl_keyfile=settings.tls_key,
        )
        self._certificate = None
        if settings.tls_cert is not None and settings.tls_key is not None:
            self._certificate = Certificate(settings.tls_cert, settings.tls_key)
        config.load()
        if self._certificate is not None and config.ssl is not None:
            self._certificate.context = config.ssl
        self._server = uvicorn.Server(config)
        self._request_seconds = limits.request_seconds
        self._socket = bound_socket(settings.host, settings.port, section)
        self.url = url_of(settings, self._socket.getsockname()[1])
        if settings.host not in LOOPBACK and settings.tls_cert is None:
            log.warning("%s is open to the network, and tokens travel unencrypted.", self.url)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._begun = Event()
        self._refused: ConfigInvalid | None = None
        self._thread = Thread(target=self._serve, name="hudi-index-web", daemon=True)

    def start(self) -> None:
        """Starts the thread that answers requests."""
        self._thread.start()
        self._begun.wait()

    def look(self) -> ConfigInvalid | None:
        """Takes a certificate whose files have changed, for connections from now on. Returns why it
        cannot be used; then the one before stays."""
        if self._certificate is None:
            return None
        try:
            renewed = self._certificate.renewed()
        except ConfigInvalid as error:
            if str(self._refused) != str(error):
                log.error("The certificate stays as it was: %s", error)
            self._refused = error
            return error
        self._refused = None
        if renewed and self._loop is not None:
            # In the thread that answers: no handshake goes on meanwhile.
            self._loop.call_soon_threadsafe(self._certificate.load)
            log.info("The certificate has changed: its new form holds from now on.")
        return None

    def close(self) -> None:
        """Ends the streams, answers the requests in progress, stops listening, and joins the
        thread."""
        self._server.should_exit = True
        if self._loop is not None and self._thread.is_alive():
            with suppress(RuntimeError):  # it has ended already
                self._loop.call_soon_threadsafe(self.application.streams.close)
            self._thread.join()
        self.application.refusals.close()
        self._socket.close()

    def _serve(self) -> None:
        def new_loop() -> asyncio.AbstractEventLoop:
            self._loop = _Loop(self._request_seconds)
            return self._loop

        async def serve() -> None:
            async with self.application.running():
                self._begun.set()
                await self._server.serve(sockets=[self._socket])

        with asyncio.Runner(loop_factory=new_loop) as runner:
            runner.run(serve())


class _Loop(asyncio.SelectorEventLoop):
    """A loop whose servers give a client as long for TLS's handshake as for a request: asyncio
    gives it a minute, in which no limit counts its connection."""

    def __init__(self, handshake_seconds: float) -> None:
        super().__init__()
        self._handshake_seconds = handshake_seconds

    async def create_server(self, *arguments: Any, **options: Any) -> asyncio.Server:
        """As asyncio's, with the limit."""
        if options.get("ssl") is not None:
            options.setdefault("ssl_handshake_timeout", self._handshake_seconds)
        return await super().create_server(*arguments, **options)
