"""What a build takes on: base files by a strategy (RFC-51, "index strategy"), up to a budget."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from enum import Enum
from functools import cache

from hudi_index_service.errors import ConfigInvalid, SnapshotChanged
from hudi_index_service.hudi.snapshot import BaseFile, ServiceKind
from hudi_index_service.hudi.table import HudiTable
from hudi_index_service.index.metadata.definitions import FLEET, IndexDefinition

NO_BACKFILL = timedelta(0)
WHOLE_BACKFILL = timedelta.max

_SETTING = {
    ServiceKind.CLUSTERING: "clustering",
    ServiceKind.COMPACTION: "compaction",
    ServiceKind.NONE: "commit",
}


class Strategy(Enum):
    """The strategies of a build.

    - INCREMENTAL: base files that clustering or compaction (the setting `build.on`) wrote since
      the index was defined
    - ALL: every base file of the present snapshot
    - REFRESH: the base files of INCREMENTAL, and every existing entry that does not hold exactly
      what the definitions require: it lacks a column, or holds one that no live index needs. It
      gets a new generation; entries that match stay untouched. Older base files without an entry
      are left to ALL.
    """

    INCREMENTAL = "incremental"
    ALL = "all"
    REFRESH = "refresh"

    @classmethod
    def named(cls, name: "str | Strategy") -> "Strategy":
        """The strategy of that name. Raises ConfigInvalid if there is none."""
        try:
            return cls(name)
        except ValueError as error:
            raise ConfigInvalid(
                f"There is no strategy {name!r}.", remedy="Use incremental, all or refresh."
            ) from error


def selector(
    strategy: Strategy, table: HudiTable, on: Collection[str], backfill: timedelta = NO_BACKFILL
) -> Callable[[IndexDefinition, BaseFile], bool]:
    """A function that decides whether the strategy selects a base file for a definition.

    It is called only for base files of the present snapshot, so never for base files that were
    rolled back, replaced, or are still pending. A base file brought back by a restore has its old
    instant.

    Args:
        on: The operations whose base files INCREMENTAL selects: the setting `build.on`.
        backfill: Of the base files that were there when the fleet defined an index, INCREMENTAL
            also selects those of this time: counted back from the last instant of then, in days.
    """
    if strategy is Strategy.ALL:
        return lambda definition, base_file: True
    instants = table.timeline().by_requested

    @cache
    def counts(requested: str) -> bool:
        """Whether an instant is of a kind in `on`. An archived instant counts, even one archived
        just now: its operation is no longer cheap to find, and a service that was down thus catches
        up."""
        instant = instants.get(requested)
        try:
            return instant is None or _SETTING[table.service_kind(instant)] in on
        except SnapshotChanged:
            return True

    @cache
    def is_backfilled(last: str, requested: str) -> bool:
        return requested >= _days_before(last, backfill)

    def selects(definition: IndexDefinition, base_file: BaseFile) -> bool:
        seen = definition.seen
        if not seen.covers(base_file.instant):
            return counts(base_file.instant)
        if not backfill or definition.owner != FLEET or not seen.instants:
            return False
        return is_backfilled(max(seen.instants), base_file.instant)

    return selects


def _days_before(instant: str, backfill: timedelta) -> str:
    """The beginning of the day that is so many days before that of an instant."""
    if backfill == WHOLE_BACKFILL:
        return ""
    try:
        day = datetime.strptime(instant[:8], "%Y%m%d") - backfill
        return day.date().isoformat().replace("-", "")
    except (ValueError, OverflowError):  # a bootstrap's instant, or before the year 1
        return ""


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of one build. Entries begun when a limit is reached are finished. The next build
    continues with the rest: newest instant first, entries that failed before last.

    Attributes:
        files: The maximum number of entries to build: one per base file and index type.
        bytes: Base file bytes to read. A base file is begun while the total of those begun is
            below this limit, so a base file larger than the whole budget is built too.
        minutes: The time after which nothing more is begun.
        requests_per_second: The maximum rate of requests to the table's store, of all tasks
            together. It stops nothing.

    Raises:
        ConfigInvalid: a limit is not greater than 0.
    """

    files: int | None = None
    bytes: int | None = None
    minutes: float | None = None
    requests_per_second: float | None = None

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if value is None:
                continue
            if not isinstance(value, int | float) or not 0 < value < float("inf"):
                raise ConfigInvalid(
                    f"The budget's {each.name} is {value!r}.", remedy="Use a number above 0."
                )

    def affordable(self, sizes: Iterable[int]) -> int:
        """How many of the first entries files and bytes allow.

        Args:
            sizes: The length of each entry's base file, in bytes.
        """
        count = total_bytes = 0
        for size in sizes:
            if self.files is not None and count >= self.files:
                break
            if self.bytes is not None and total_bytes >= self.bytes:
                break
            count += 1
            total_bytes += size
        return count


UNLIMITED = Budget()
