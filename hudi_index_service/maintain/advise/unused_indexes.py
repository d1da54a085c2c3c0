"""Finds built indexes that no query used."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from hudi_index_service.optimizer.history.record import HistoryShape
from hudi_index_service.wording import counted

_LEAST_QUERIES = 20  # fewer are not significant


@dataclass(frozen=True, slots=True)
class IndexInUse:
    """An index with entries.

    Attributes:
        since: Time at which its last entry was built, in seconds since the epoch.
        entries, index_bytes: Number of its entries, and the bytes of their data files, including
            other indexes' columns.
    """

    name: str
    columns: tuple[str, ...]
    since: float
    entries: int
    index_bytes: int


@dataclass(frozen=True, slots=True)
class UnusedAdvice:
    """Columns for which no query used an index.

    Attributes:
        index: The index's name.
        columns: Unused columns of the index.
        whole: Whether these are all of its columns.
        since: Time at which its last entry was built, ISO 8601 in UTC.
        queries: Number of queries recorded since the day after.
        entries, index_bytes: See `IndexInUse`.
    """

    index: str
    columns: tuple[str, ...]
    whole: bool
    since: str
    queries: int
    entries: int
    index_bytes: int

    def lines(self) -> list[str]:
        """The advice as text."""
        names = ", ".join(self.columns)
        action = f"Drop index {self.index}" if self.whole else f"Drop {names} from {self.index}"
        return [
            f"{action}: none of {counted(self.queries, 'query')} since it was built ({self.since}) "
            f"used an index on {names}. {counted(self.entries, 'entry')} with all columns: "
            f"{self.index_bytes:,} bytes."
        ]


def unused_indexes(
    built: Iterable[IndexInUse],
    shapes: Sequence[HistoryShape],
    queries_since: Callable[[float], int],
) -> tuple[UnusedAdvice, ...]:
    """The advice, by index.

    Args:
        queries_since: Returns the number of queries recorded after the day of a time.
    """
    last_used = _last_used(shapes)
    advice = []
    for each in built:
        unused = tuple(name for name in each.columns if last_used.get(name, 0.0) < each.since)
        queries = queries_since(each.since) if unused else 0
        if queries >= _LEAST_QUERIES:
            since = datetime.fromtimestamp(each.since, UTC).isoformat(timespec="seconds")
            whole = len(unused) == len(each.columns)
            advice.append(
                UnusedAdvice(
                    each.name, unused, whole, since, queries, each.entries, each.index_bytes
                )
            )
    return tuple(advice)


def _last_used(shapes: Iterable[HistoryShape]) -> Mapping[str, float]:
    last: dict[str, float] = {}
    for shape in shapes:
        for name in shape.used:
            last[name] = max(last.get(name, 0.0), shape.last_used)
    return last
