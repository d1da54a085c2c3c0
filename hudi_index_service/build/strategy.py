"""Strategies: which base files a definition wants indexed (RFC-51, "index strategy")."""

from collections.abc import Callable, Collection, Mapping
from enum import Enum

from hudi_index_service.definitions import IndexDefinition
from hudi_index_service.errors import ConfigInvalid, SnapshotChanged
from hudi_index_service.table.protocol import BaseFile, HudiTable, Instant, ServiceKind

_SETTING = {
    ServiceKind.CLUSTERING: "clustering",
    ServiceKind.COMPACTION: "compaction",
    ServiceKind.NONE: "commit",
}


class Strategy(Enum):
    """INCREMENTAL: base files that clustering or compaction (the setting `build.on`) wrote since
    the index was defined. ALL: every base file of the present snapshot. REFRESH: what INCREMENTAL
    wants, and every entry that is there and does not hold exactly what the definitions ask for."""

    INCREMENTAL = "incremental"
    ALL = "all"
    REFRESH = "refresh"

    @classmethod
    def named(cls, name: "str | Strategy") -> "Strategy":
        """The strategy of that name. Raises ConfigInvalid: there is none."""
        try:
            return cls(name)
        except ValueError as error:
            raise ConfigInvalid(
                f"There is no strategy {name!r}.", remedy="Use incremental or all."
            ) from error


Selector = Callable[[IndexDefinition, BaseFile], bool]


def selector(strategy: Strategy, table: HudiTable, on: Collection[str]) -> Selector:
    """Says of a definition and a base file whether the strategy wants an entry for it.

    Asked of base files of the present snapshot only, so what was rolled back, replaced, or is still
    pending never comes up; a base file that a restore brought back does, under its old instant.

    Args:
        on: Whose base files INCREMENTAL wants: the setting `build.on`.
    """
    if strategy is Strategy.ALL:
        return lambda definition, base_file: True
    instants: Mapping[str, Instant] = {i.requested: i for i in table.completed_instants()}
    known: dict[str, bool] = {}

    def written_by_what_counts(requested: str) -> bool:
        if requested not in known:
            known[requested] = _counts(table, instants.get(requested), on)
        return known[requested]

    def wanted(definition: IndexDefinition, base_file: BaseFile) -> bool:
        if definition.seen.covers(base_file.instant):
            return False
        return written_by_what_counts(base_file.instant)

    return wanted


def _counts(table: HudiTable, instant: Instant | None, on: Collection[str]) -> bool:
    """Whether an instant is of a kind in `on`. One that is archived, perhaps at this moment, does
    count: nobody can tell cheaply any more what wrote it, and a service that was down catches up
    so."""
    if instant is None:
        return True
    try:
        return _SETTING[table.service_kind(instant)] in on
    except SnapshotChanged:
        return True
