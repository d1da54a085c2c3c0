"""The listener's connections: how many there are, and how long one may take to send a request.

uvicorn closes a connection that is idle between two requests, but waits for ever for the rest of
one that has begun. Whoever can connect, with or without the secret, could so hold every connection
that the process has files for.
"""

import asyncio
import logging
import resource
from collections.abc import Iterator
from time import monotonic
from typing import ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

log = logging.getLogger(__name__)

# uvicorn warns of each request that is no HTTP; `Refusals` does so here.
_uvicorn_log = logging.getLogger(f"{__name__}.uvicorn")
_uvicorn_log.setLevel(logging.ERROR)

_REPEAT_SECONDS = 60.0

# An eighth of a process's files for connections that are open, as many again for those that are
# just being accepted, and the rest for builds.
_SHARE = 8

# What h11 says of a client whose request has not begun, or has not arrived to its end.
_ARRIVING = (h11.IDLE, h11.SEND_BODY)


def connections_allowed(asked: int) -> int:
    """So many of the connections asked for that most of the files which this process may open are
    left to builds; says so in the log if these are fewer."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = asked if files == resource.RLIM_INFINITY else max(1, min(asked, files // _SHARE))
    if allowed < asked:
        log.warning(
            "hook.max_connections=%d is lowered to %d: this process may open %d files (ulimit -n), "
            "and builds need most of them.",
            *(asked, allowed, files),
        )
    return allowed


class Refusals:
    """Logs what was refused or cut off and could come again and again from anybody who can connect:
    of each kind the first, then now and then how many more there were. For the event loop's thread
    alone."""

    def __init__(self) -> None:
        self._told: dict[str, float] = {}
        self._untold: dict[str, int] = {}

    def tell(self, message: str) -> None:
        """Something was refused.

        Args:
            message: A sentence; as there is a count for each, nothing that a client sent is in it.
        """
        now = monotonic()
        if now - self._told.get(message, float("-inf")) < _REPEAT_SECONDS:
            self._untold[message] = self._untold.get(message, 0) + 1
            return
        self._told[message] = now
        more = self._untold.pop(message, 0)
        log.warning("%s%s", message, f" ({more} more before that.)" if more else "")

    def close(self) -> None:
        """Tells what was not told yet."""
        for message, more in self._untold.items():
            log.warning("%s (%d more.)", message, more)
        self._untold.clear()


class Connections:
    """The open connections of one listener, those first that have waited longest for a request of
    theirs to arrive. For the event loop's thread alone, but to be looked at.

    Args:
        most: So many are open at once. When there is another, it takes the place of the one that
            has waited longest; none whose request is being answered has to go.
        request_seconds: Within which a whole request has to arrive, counted from the connection's
            beginning or from the answer to the request before.
    """

    def __init__(self, *, most: int, request_seconds: float, refusals: Refusals) -> None:
        self.request_seconds = request_seconds
        self._most = most
        self._refusals = refusals
        self._open: dict[LimitedConnection, None] = {}

    def __iter__(self) -> "Iterator[LimitedConnection]":
        return iter(list(self._open))

    def protocol(self) -> type["LimitedConnection"]:
        """The protocol by which uvicorn is to serve them."""
        return type("LimitedConnection", (LimitedConnection,), {"among": self})

    def add(self, connection: "LimitedConnection") -> None:
        """A new connection, which is cut off at once if all others are being answered."""
        self._open[connection] = None
        if len(self._open) > self._most:
            idle = next(each for each in self._open if not each.is_being_answered)
            if idle is connection:
                self._refusals.tell(
                    f"{self._most} connections are open, and all wait for their builds: others are "
                    "refused (hook.max_connections)."
                )
            else:
                self._refusals.tell(
                    f"More than {self._most} connections are open (hook.max_connections): the one "
                    "that has waited longest without a request is cut off."
                )
            idle.cut_off()

    def remove(self, connection: "LimitedConnection") -> None:
        """One that has ended."""
        self._open.pop(connection, None)

    def answered(self, connection: "LimitedConnection") -> None:
        """One whose request was answered: it may send another."""
        if connection in self._open:
            del self._open[connection]
            self._open[connection] = None

    def tell_late(self) -> None:
        """Says that a request has not arrived in time."""
        self._refusals.tell(
            "A connection was cut off that had sent no whole request within "
            f"{self.request_seconds:g} s (hook.request_seconds)."
        )

    def tell_malformed(self) -> None:
        """Says that somebody sent something that is no HTTP."""
        self._refusals.tell("A request was refused that is no HTTP.")


class LimitedConnection(H11Protocol):
    """One connection, which ends if no whole request arrives in time."""

    among: ClassVar[Connections]

    _deadline: asyncio.TimerHandle | None = None

    @property
    def is_being_answered(self) -> bool:
        """Whether a whole request has arrived that is not answered yet."""
        waiting = self.cycle is not None and not self.cycle.response_complete
        return waiting and self.conn.their_state not in _ARRIVING

    def cut_off(self) -> None:
        """Ends the connection, whatever was not sent yet."""
        self.among.remove(self)
        self.transport.abort()

    # What asyncio and uvicorn call.

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
        if not self.transport.is_closing():
            self._expect_request()
            self.among.answered(self)
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        self.among.tell_malformed()
        super().send_400_response(msg)

    def _expect_request(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = self.loop.call_later(self.among.request_seconds, self._end_if_late)

    def _end_if_late(self) -> None:
        if not self.is_being_answered:
            self.among.tell_late()
            self.cut_off()
