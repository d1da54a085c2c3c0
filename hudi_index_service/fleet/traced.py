"""A span for each request of a machine by HTTP: Hudi's callback, the API, Spark's questions, and
agents."""

import re

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hudi_index_service.fleet.tracing import Span

_ASKED_BY_MACHINES = re.compile(r"/(api|hudi|v\d+)/|/mcp$")
_CONVERTER = re.compile(r":\w+}")
_UNKNOWN = "unknown"


class Traced:
    """An application whose requests are traced, from the ``traceparent`` that they bring. Pages,
    health and metrics are not: they change nothing, and are asked for all the time.

    A span has the method, the route with the names of its parameters, and the status; never the
    path, the query, a header or the body.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request."""
        if scope["type"] != "http" or not _ASKED_BY_MACHINES.match(scope["path"]):
            await self._app(scope, receive, send)
            return
        method = scope["method"] if scope["method"] in ("GET", "POST") else _UNKNOWN
        span = Span(method, kind="server", parent=_traceparent(scope), http__request__method=method)
        status = 500

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = int(message["status"])
            await send(message)

        try:
            with span.present():
                await self._app(scope, receive, sending)
        finally:
            route = getattr(scope.get("route"), "path", "")
            if route:
                route = _CONVERTER.sub("}", route)
                span.name(f"{method} {route}")
                span.set(http__route=route)
            error = str(status) if status >= 500 else ""
            span.end(error, http__response__status_code=status)


def _traceparent(scope: Scope) -> str:
    found = (text for name, text in scope["headers"] if name == b"traceparent")
    return next(found, b"").decode("latin-1")
