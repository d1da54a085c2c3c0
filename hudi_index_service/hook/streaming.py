"""Answers that are read while they are sent. Needs the extra ``hook`` (starlette).

A client that leaves ends the work on its answer. What fails after an answer has begun cuts the
connection off, so that no client takes the beginning for the whole.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any, Self

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from hudi_index_service.cancellation import Cancellation
from hudi_index_service.errors import IndexServiceError, QueryCancelled

log = logging.getLogger(__name__)

SENT_AT_ONCE = 256 * 1024
"""Bytes, at least, but for the last ones."""

_SEND_SECONDS = 60.0
"""For a client to take a piece of its answer."""

Work = Callable[[Callable[[], Any]], Coroutine[Any, Any, Any]]
"""Does some work in a thread."""


@dataclass(frozen=True, slots=True)
class Begun:
    """An answer whose first bytes are read; `is_whole` if there are no more."""

    headers: Mapping[str, str]
    pieces: Generator[bytes]
    first: bytes
    is_whole: bool

    @classmethod
    def of(cls, headers: Mapping[str, str], pieces: Generator[bytes]) -> Self:
        """Reads the first bytes. Raises what the pieces raise."""
        return cls(headers, pieces, *_next_of(pieces))


class StreamedAnswer(Response):
    """The rest of an answer that has begun. While a piece is sent, the next one is read.

    Args:
        cancellation: Ends the work when the client leaves.
        work: Reads a piece.
    """

    def __init__(
        self, request: Request, begun: Begun, cancellation: Cancellation, work: Work
    ) -> None:
        self._request, self._begun = request, begun
        self._cancellation, self._work = cancellation, work
        self.status_code, self.background = HTTPStatus.OK, None
        if begun.is_whole:
            self.body = begun.first  # for the header Content-Length
        self.init_headers(begun.headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers, pieces, is_whole = self.raw_headers, self._begun.pieces, self._begun.is_whole

        async def send_body(data: bytes, is_whole: bool) -> None:
            message = {"type": "http.response.body", "body": data, "more_body": not is_whole}
            await asyncio.wait_for(send(message), _SEND_SECONDS)

        await send({"type": "http.response.start", "status": self.status_code, "headers": headers})
        data = self._begun.first
        try:
            async with while_wanted(self._request, self._cancellation):
                while not is_whole:
                    following = asyncio.create_task(self._work(partial(_next_of, pieces)))
                    try:
                        await send_body(data, is_whole=False)
                    except BaseException:
                        self._cancellation.cancel()
                        await asyncio.gather(following, return_exceptions=True)
                        raise
                    data, is_whole = await following
            await send_body(data, is_whole=True)
        except QueryCancelled:
            pass  # the client has left
        except TimeoutError:
            log.warning("An answer was cut off: its client took nothing for %g s.", _SEND_SECONDS)
        except (IndexServiceError, OSError) as error:
            # Without its end, the answer is known to be a part.
            log.warning("An answer was cut off: %s.", getattr(error, "code", type(error).__name__))
        finally:
            if not is_whole:
                await self._work(pieces.close)


def _next_of(pieces: Generator[bytes]) -> tuple[bytes, bool]:
    """The next pieces, some `SENT_AT_ONCE` bytes, and whether they are the last."""
    data = bytearray()
    for piece in pieces:
        data += piece
        if len(data) >= SENT_AT_ONCE:
            return bytes(data), False
    return bytes(data), True


async def client_left(receive: Receive) -> None:
    """Returns once the client of a request has gone, whose body has been read."""
    while (await receive())["type"] != "http.disconnect":
        pass


@asynccontextmanager
async def while_wanted(request: Request, cancellation: Cancellation) -> AsyncIterator[None]:
    """Ends the queries within it when the client leaves. The request's body has been read."""

    async def cancel_when_left() -> None:
        await client_left(request.receive)
        cancellation.cancel()

    leaving = asyncio.create_task(cancel_when_left())
    try:
        with cancellation:
            yield
    finally:
        leaving.cancel()
