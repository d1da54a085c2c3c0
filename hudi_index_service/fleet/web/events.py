"""Server-sent events: a page hears that what it shows has changed, and loads that part again."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from http import HTTPStatus
from time import monotonic

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from hudi_index_service.errors import AccessRefused, IndexServiceError
from hudi_index_service.fleet.web.exchange import RETRY_SECONDS, Refused

_LOOK_SECONDS = 1.0
"""How often each stream looks whether anything has changed."""
_QUIET_SECONDS = 15.0  # a proxy may close a connection that is silent for longer


class Streams:
    """The open streams. Only for the event loop's thread.

    Args:
        most: Their maximum number.
    """

    def __init__(self, *, most: int) -> None:
        self._most = most
        self._closing = asyncio.Event()
        self.open = 0

    def close(self) -> None:
        """Ends all streams, and those that are still to come."""
        self._closing.set()

    def start(self, look: Callable[[], object]) -> "Stream":
        """A stream with an event each time that `look` gives something else.

        Args:
            look: Is called often; raises IndexServiceError to end the stream.

        Raises:
            Refused: too many are open.
        """
        if self.open >= self._most:
            error = AccessRefused(
                f"{self._most} pages are kept up to date already.",
                remedy="Close other pages of the fleet, or raise web.max_streams.",
            )
            raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, error, retry_seconds=RETRY_SECONDS)
        return Stream(self, self._events(look))

    async def until(
        self,
        holds: Callable[[], bool],
        seconds: float,
        gone: Callable[[], Awaitable[bool]],
    ) -> None:
        """Returns once something holds, or nobody waits any more, or after these seconds, or when
        the streams are closed. It counts as a stream, and returns at once if too many are open.

        Args:
            holds: Is called often, and must be quick.
            gone: Whether the client has gone.
        """
        if self.open >= self._most:
            return
        self.open += 1
        until = monotonic() + seconds
        try:
            while not holds() and (rest := until - monotonic()) > 0 and not await gone():
                if await self._closes(min(rest, _LOOK_SECONDS / 4)):
                    return
        finally:
            self.open -= 1

    async def _events(self, look: Callable[[], object]) -> AsyncIterator[str]:
        yield "retry: 3000\n\n"
        try:
            last, quiet = look(), 0.0
            while not await self._closes(_LOOK_SECONDS):
                now, quiet = look(), quiet + _LOOK_SECONDS
                if now != last:
                    yield "event: changed\ndata:\n\n"
                    last, quiet = now, 0.0
                elif quiet >= _QUIET_SECONDS:
                    yield ":\n\n"
                    quiet = 0.0
        except IndexServiceError:  # signed out, or the table has gone: the page finds out itself
            yield "event: changed\ndata:\n\n"

    async def _closes(self, seconds: float) -> bool:
        try:
            await asyncio.wait_for(self._closing.wait(), seconds)
        except TimeoutError:
            return False
        return True


class Stream(StreamingResponse):
    """One open stream, which counts from its making to its end."""

    def __init__(self, streams: Streams, events: AsyncIterator[str]) -> None:
        super().__init__(events, media_type="text/event-stream")
        self._streams = streams
        streams.open += 1

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._streams.open -= 1
