"""Limits on the listener's connections: their number, and the time to send a request.

uvicorn closes a connection that is idle between two requests, but waits forever for the rest of a
request that has begun. Any client, even without the secret, could therefore use up the process's
file descriptors.
"""

import asyncio
import logging
import resource
import socket
from collections.abc import Iterator
from contextlib import suppress
from time import monotonic
from typing import ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

log = logging.getLogger(__name__)

# uvicorn warns of each request that is not HTTP; here `Refusals` does.
_uvicorn_log = logging.getLogger(f"{__name__}.uvicorn")
_uvicorn_log.setLevel(logging.ERROR)

_REPEAT_SECONDS = 60.0

# An eighth of the process's files is for open connections, another eighth for connections that are
# being accepted, and the rest for builds.
_SHARE = 8

# h11's states of a client whose request has not begun or is incomplete.
_ARRIVING = (h11.IDLE, h11.SEND_BODY)


def connections_allowed(limit: int, setting: str = "hook.max_connections") -> int:
    """The number of connections, at most `limit`, that leaves most of the process's file limit to
    builds. Logs a warning, with the name of the setting, if it is lower than `limit`."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = limit if files == resource.RLIM_INFINITY else max(1, min(limit, files // _SHARE))
    if allowed < limit:
        log.warning(
            "%s=%d is lowered to %d: this process may open %d files (ulimit -n), and builds need "
            "most of them.",
            *(setting, limit, allowed, files),
        )
    return allowed


class Refusals:
    """Logs refusals that any client can cause repeatedly: the first of each kind, then at intervals
    the number of further ones. Only for the event loop's thread."""

    def __init__(self) -> None:
        self._logged_at: dict[str, float] = {}
        self._unlogged: dict[str, int] = {}

    def report(self, message: str) -> None:
        """Logs or counts a refusal.

        Args:
            message: A sentence. It contains nothing that a client sent, since each distinct message
                has a counter.
        """
        now = monotonic()
        if now - self._logged_at.get(message, float("-inf")) < _REPEAT_SECONDS:
            self._unlogged[message] = self._unlogged.get(message, 0) + 1
            return
        self._logged_at[message] = now
        more = self._unlogged.pop(message, 0)
        log.warning("%s%s", message, f" ({more} more before that.)" if more else "")

    def close(self) -> None:
        """Logs the counts that are not logged yet."""
        for message, more in self._unlogged.items():
            log.warning("%s (%d more.)", message, more)
        self._unlogged.clear()


class Connections:
    """The open connections of one listener, ordered by how long they have waited for a request, the
    longest first. Only for the event loop's thread, except for iteration.

    Args:
        most: Maximum number of open connections. One more replaces the connection that has waited
            longest, but never one whose request is being answered.
        request_seconds: Time within which a whole request must arrive, counted from the start of
            the connection or from the previous answer.
        setting: The name of the setting of `most`, for the log.
    """

    def __init__(
        self,
        *,
        most: int,
        request_seconds: float,
        refusals: Refusals,
        setting: str = "hook.max_connections",
    ) -> None:
        self._setting = setting
        self.request_seconds = request_seconds
        self.refusals = refusals
        self._most = most
        self._open: dict[LimitedConnection, None] = {}

    def __iter__(self) -> "Iterator[LimitedConnection]":
        return iter(list(self._open))

    def protocol(self) -> type["LimitedConnection"]:
        """The protocol class for uvicorn."""
        return type("LimitedConnection", (LimitedConnection,), {"among": self})

    def add(self, connection: "LimitedConnection") -> None:
        """Adds a new connection; cuts it off at once if all others are being answered."""
        self._open[connection] = None
        if len(self._open) > self._most:
            idle = next(each for each in self._open if not each.is_being_answered)
            if idle is connection:
                self.refusals.report(
                    f"{self._most} connections are open, and all wait for their builds: others are "
                    f"refused ({self._setting})."
                )
            else:
                self.refusals.report(
                    f"More than {self._most} connections are open ({self._setting}): the one "
                    "that has waited longest without a request is cut off."
                )
            idle.cut_off()

    def remove(self, connection: "LimitedConnection") -> None:
        """Removes a connection that has ended."""
        self._open.pop(connection, None)

    def answered(self, connection: "LimitedConnection") -> None:
        """Moves a connection whose request was answered to the end: it may send another request."""
        if connection in self._open:
            del self._open[connection]
            self._open[connection] = None


# httptools takes a third less of the processor, but loses the body of a request that offers an
# upgrade to HTTP/2, as those of Java's client do.
class LimitedConnection(H11Protocol):
    """A connection that is closed if no whole request arrives in time."""

    among: ClassVar[Connections]

    _deadline: asyncio.TimerHandle | None = None

    @property
    def is_being_answered(self) -> bool:
        """Whether a whole request has arrived that is not answered yet."""
        waiting = self.cycle is not None and not self.cycle.response_complete
        return waiting and self.conn.their_state not in _ARRIVING

    def cut_off(self) -> None:
        """Closes the connection and discards unsent data."""
        self.among.remove(self)
        self.transport.abort()

    # Callbacks of asyncio and uvicorn.

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.logger = _uvicorn_log
        self._expect_request()
        self.among.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self.among.remove(self)
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        if self.transport.is_closing():
            self._hear_no_more()
        else:
            self._expect_request()
            self.among.answered(self)
        super().on_response_complete()

    def shutdown(self) -> None:
        super().shutdown()
        if self.transport.is_closing():
            self._hear_no_more()

    def send_400_response(self, msg: str) -> None:
        self.among.refusals.report("A request was refused because it is not HTTP.")
        super().send_400_response(msg)

    def _hear_no_more(self) -> None:
        """Ends a connection that is closing without the client's word. Of one by TLS, asyncio waits
        half a minute for its close_notify, although who closes need not (RFC 8446, 6.1), and
        clients that keep a connection send none. What is not sent yet is still sent."""
        if self.transport.get_extra_info("sslcontext") is not None:
            with suppress(OSError):  # the client has gone
                self.transport.get_extra_info("socket").shutdown(socket.SHUT_RD)

    def _expect_request(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = self.loop.call_later(self.among.request_seconds, self._end_if_late)

    def _end_if_late(self) -> None:
        if not self.is_being_answered:
            self.among.refusals.report(
                "A connection was cut off because it had not sent a whole request within "
                f"{self.among.request_seconds:g} s (hook.request_seconds)."
            )
            self.cut_off()
