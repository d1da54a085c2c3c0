"""Spans by OpenTelemetry's API: of requests by HTTP, of builds, and of polls that found something
due. Without an SDK in the process nothing is recorded, and without the API, which the extra
``hook`` brings, there is no span at all.

A trace goes on from one process to the next by its ``traceparent`` (W3C Trace Context): from a
request's header to the build that it asks for, and with the order to the build's process. A span
has names, codes and numbers as attributes, never predicates, values, messages or secrets.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Literal

from hudi_index_service import __version__

try:
    from opentelemetry import trace
    from opentelemetry.context import Context
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
except ModuleNotFoundError:  # without the extra `hook`, nobody traces
    HAS_API = False
else:
    HAS_API = True
    _W3C = TraceContextTextMapPropagator()

Kind = Literal["internal", "server", "consumer"]
Value = str | int | float | bool

_HEADER = "traceparent"
_NANOSECONDS = 1_000_000_000


def trace_of(traceparent: str) -> str:
    """The trace id of a ``traceparent``, as logs name it; "" if there is none."""
    parts = traceparent.split("-")
    return parts[1] if len(parts) >= 4 else ""


def traceparent() -> str:
    """That of the present span, of this thread or task; "" without one."""
    if not HAS_API:
        return ""
    carrier: dict[str, str] = {}
    _W3C.inject(carrier)
    return carrier.get(_HEADER, "")


def flush(seconds: float) -> None:
    """Has an SDK send what it has recorded, as before a process ends that may be killed; waits for
    it at most so long."""
    if HAS_API:
        send = getattr(trace.get_tracer_provider(), "force_flush", None)
        if send is not None:
            send(int(seconds * 1000))


class Span:
    """One span, from now until `end`.

    Args:
        name: What is done, in few words that many spans share.
        parent: The ``traceparent`` of what asked for it; "" begins a trace.
        links: Those of what else asked for it.
        since: When it began; None for now.
        attributes: Their names here have no prefix; dots are written as ``__``.
    """

    def __init__(
        self,
        name: str,
        *,
        kind: Kind = "internal",
        parent: str = "",
        links: Sequence[str] = (),
        since: datetime | None = None,
        **attributes: Value,
    ) -> None:
        self.traceparent = parent
        if not HAS_API:
            return
        before = _W3C.extract({_HEADER: parent} if parent else {}, context=Context())
        linked = [
            trace.get_current_span(_W3C.extract({_HEADER: each}, context=Context()))
            for each in links
            if each
        ]
        self._span = trace.get_tracer("hudi_index_service", __version__).start_span(
            name,
            context=before,
            kind=trace.SpanKind[kind.upper()],
            links=[trace.Link(each.get_span_context()) for each in linked],
            start_time=None if since is None else int(since.timestamp() * _NANOSECONDS),
        )
        self.set(**attributes)
        carrier: dict[str, str] = {}
        _W3C.inject(carrier, context=trace.set_span_in_context(self._span, Context()))
        self.traceparent = carrier.get(_HEADER, "")

    @property
    def trace(self) -> str:
        """The trace id, as logs name it; "" if it is in no trace."""
        return trace_of(self.traceparent)

    def name(self, name: str) -> None:
        """Names it, once what is done is known."""
        if HAS_API:
            self._span.update_name(name)

    def set(self, **attributes: Value) -> None:
        """Sets attributes."""
        if HAS_API:
            self._span.set_attributes(
                {_attribute(name): value for name, value in attributes.items()}
            )

    def end(self, error: str = "", **attributes: Value) -> None:
        """Ends it.

        Args:
            error: The code of an error; "" if there was none.
        """
        self.set(**attributes)
        if not HAS_API:
            return
        if error:
            self._span.set_attribute("error.type", error)
            self._span.set_status(trace.Status(trace.StatusCode.ERROR))
        self._span.end()

    @contextmanager
    def present(self) -> Iterator[None]:
        """What the block asks for belongs to it. Does not end it."""
        if not HAS_API:
            yield
            return
        with trace.use_span(
            self._span, end_on_exit=False, record_exception=False, set_status_on_exception=False
        ):
            yield


def _attribute(name: str) -> str:
    dotted = name.replace("__", ".")
    return dotted if "." in dotted else f"hudi_index.{dotted}"
