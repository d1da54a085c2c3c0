"""Questions that wait until indexes cover a table."""

from collections.abc import Awaitable, Callable
from time import monotonic
from typing import TypeVar

from starlette.requests import Request

from hudi_index_service.errors import NotCovered
from hudi_index_service.fleet.web.events import Streams

T = TypeVar("T")


async def when_covered(
    begin: Callable[[], Awaitable[T]],
    looks: Callable[[], object],
    seconds: float,
    request: Request,
    streams: Streams,
) -> T:
    """The beginning of an answer, tried again whenever the fleet has seen something new of the
    table, such as the end of a build, while it is not covered and there is time to wait.

    Args:
        looks: What the fleet has seen of the table.

    Raises:
        NotCovered: it is still not, or too many requests wait already.
    """
    until = monotonic() + seconds
    while True:
        seen = looks()  # before the try, so that nothing is missed after it
        try:
            return await begin()
        except NotCovered:
            if (rest := until - monotonic()) <= 0:
                raise
            await streams.until(_has_changed(looks, seen), rest, request.is_disconnected)
            if looks() == seen:
                raise


def _has_changed(looks: Callable[[], object], seen: object) -> Callable[[], bool]:
    return lambda: looks() != seen
