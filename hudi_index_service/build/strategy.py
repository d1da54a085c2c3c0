"""Strategies: which base files are indexed for a definition (RFC-51, "index strategy")."""

from collections.abc import Callable, Collection, Mapping
from enum import Enum

from hudi_index_service.errors import ConfigInvalid, SnapshotChanged
from hudi_index_service.hudi.protocol import BaseFile, HudiTable, Instant, ServiceKind
from hudi_index_service.index.metadata.definitions import IndexDefinition

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


Selector = Callable[[IndexDefinition, BaseFile], bool]


def selector(strategy: Strategy, table: HudiTable, on: Collection[str]) -> Selector:
    """A function that decides whether the strategy selects a base file for a definition.

    It is called only for base files of the present snapshot, so never for base files that were
    rolled back, replaced, or are still pending. A base file brought back by a restore has its old
    instant.

    Args:
        on: The operations whose base files INCREMENTAL selects: the setting `build.on`.
    """
    if strategy is Strategy.ALL:
        return lambda definition, base_file: True
    instants: Mapping[str, Instant] = {i.requested: i for i in table.completed_instants()}
    decisions: dict[str, bool] = {}

    def instant_counts(requested: str) -> bool:
        if requested not in decisions:
            decisions[requested] = _counts(table, instants.get(requested), on)
        return decisions[requested]

    def selects(definition: IndexDefinition, base_file: BaseFile) -> bool:
        if definition.seen.covers(base_file.instant):
            return False
        return instant_counts(base_file.instant)

    return selects


def _counts(table: HudiTable, instant: Instant | None, on: Collection[str]) -> bool:
    """Whether an instant is of a kind in `on`. An archived instant counts, even one archived just
    now: its operation is no longer cheap to find, and a service that was down thus catches up."""
    if instant is None:
        return True
    try:
        return _SETTING[table.service_kind(instant)] in on
    except SnapshotChanged:
        return True
