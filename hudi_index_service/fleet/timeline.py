"""The last instants of a table's timeline, each with what wrote it and what indexes have of it."""

from collections.abc import Sequence
from dataclasses import dataclass

from hudi_index_service.errors import SnapshotChanged
from hudi_index_service.hudi.snapshot import Instant, ServiceKind
from hudi_index_service.hudi.table import HudiTable
from hudi_index_service.maintain.status import IndexStatus, InstantCoverage

MOST_INSTANTS = 30

_SERVICES = {ServiceKind.CLUSTERING: "clustering", ServiceKind.COMPACTION: "compaction"}
_WRITES = {"deltacommit": "delta commit", "replacecommit": "replace commit"}


@dataclass(frozen=True, slots=True)
class SeenInstant:
    """An instant.

    Attributes:
        requested: Its requested time, by its writer's clock.
        action: What wrote it: ``commit``, ``delta commit``, ``replace commit``, ``clustering``,
            ``compaction``, ``clean``, ``rollback``, ….
        completed: Whether it has completed.
        base_files: Of the snapshot, those that it wrote.
        covered: Of these, those that every index covers.
        due: Of these, those that builds take, of the index with most of them.
    """

    requested: str
    action: str
    completed: bool = True
    base_files: int = 0
    covered: int = 0
    due: int = 0


def seen_instants(table: HudiTable, indexes: Sequence[IndexStatus]) -> tuple[SeenInstant, ...]:
    """The last instants, newest first.

    Args:
        indexes: The status of the table's indexes.

    Raises:
        IndexServiceError: the table cannot be read.
    """
    timeline = table.timeline()
    # A savepoint has the time of the write that it keeps.
    completed = {each.requested: each for each in (*timeline.others, *timeline.instants)}
    requested = sorted({*completed, *timeline.pending}, reverse=True)[:MOST_INSTANTS]
    counts = [{each.instant: each for each in index.instants} for index in indexes]
    found = []
    for time in requested:
        if time not in completed:
            found.append(SeenInstant(time, _words(timeline.pending[time]), completed=False))
            continue
        of_indexes = [each[time] for each in counts if time in each]
        found.append(_completed(completed[time], table, of_indexes))
    return tuple(found)


def _completed(
    instant: Instant, table: HudiTable, counts: Sequence[InstantCoverage]
) -> SeenInstant:
    return SeenInstant(
        instant.requested,
        _action(instant, table),
        base_files=max((each.base_files for each in counts), default=0),
        covered=min((each.covered for each in counts), default=0),
        due=max((each.due for each in counts), default=0),
    )


def _action(instant: Instant, table: HudiTable) -> str:
    if instant.action not in ("commit", "replacecommit"):
        return _words(instant.action)
    try:
        service = _SERVICES.get(table.service_kind(instant))
    except SnapshotChanged:  # archived since
        service = None
    return service or _words(instant.action)


def _words(action: str) -> str:
    return _WRITES.get(action, action)
