"""Which indexes no query used, though they are built."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from hudi_index_service.optimizer.history.record import HistoryShape

_LEAST_QUERIES = 20  # fewer tell nothing


@dataclass(frozen=True, slots=True)
class BuiltIndex:
    """An index, and what is built of it.

    Attributes:
        since: When its last entry was built, in seconds since 1970.
        entries, index_bytes: Its entries, and the bytes of their data files, other indexes' columns
            included.
    """

    name: str
    columns: tuple[str, ...]
    since: float
    entries: int
    index_bytes: int


@dataclass(frozen=True, slots=True)
class UnusedAdvice:
    """Columns that no query asked an index for.

    Attributes:
        index: The index.
        columns: Of it.
        whole: Whether these are all of its columns.
        since: When its last entry was built, ISO 8601 in UTC.
        queries: That were recorded since the day after.
        entries, index_bytes: See `BuiltIndex`.
    """

    index: str
    columns: tuple[str, ...]
    whole: bool
    since: str
    queries: int
    entries: int
    index_bytes: int

    def lines(self) -> list[str]:
        """For people."""
        names = ", ".join(self.columns)
        what = f"Drop index {self.index}" if self.whole else f"Drop {names} from {self.index}"
        return [
            f"{what}: of {self.queries} queries since it was built ({self.since}), none used an "
            f"index on {names}. Its {self.entries} entries, with all columns in them, have "
            f"{self.index_bytes:,} bytes."
        ]


def unused_indexes(
    built: Iterable[BuiltIndex],
    shapes: Sequence[HistoryShape],
    queries_since: Callable[[float], int],
) -> tuple[UnusedAdvice, ...]:
    """The advice, by index.

    Args:
        queries_since: How many queries were recorded after the day of a moment.
    """
    last_used = _last_used(shapes)
    found = []
    for each in built:
        unused = tuple(name for name in each.columns if last_used.get(name, 0.0) < each.since)
        queries = queries_since(each.since) if unused else 0
        if queries >= _LEAST_QUERIES:
            since = datetime.fromtimestamp(each.since, UTC).isoformat(timespec="seconds")
            whole = len(unused) == len(each.columns)
            found.append(
                UnusedAdvice(
                    each.name, unused, whole, since, queries, each.entries, each.index_bytes
                )
            )
    return tuple(found)


def _last_used(shapes: Iterable[HistoryShape]) -> Mapping[str, float]:
    last: dict[str, float] = {}
    for shape in shapes:
        for name in shape.used:
            last[name] = max(last.get(name, 0.0), shape.last_used)
    return last
