"""Strategies: which base files a definition wants indexed (RFC-51, "index strategy")."""

from collections.abc import Callable, Mapping
from enum import Enum

from hudi_index_service.definitions import IndexDefinition
from hudi_index_service.errors import ConfigInvalid
from hudi_index_service.table.protocol import BaseFile, HudiTable, Instant, ServiceKind


class Strategy(Enum):
    """INCREMENTAL: base files that clustering or compaction wrote since the index was defined.
    ALL: every base file of the present snapshot."""

    INCREMENTAL = "incremental"
    ALL = "all"

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


def selector(strategy: Strategy, table: HudiTable) -> Selector:
    """Says of a definition and a base file whether the strategy wants an entry for it."""
    if strategy is Strategy.ALL:
        return lambda definition, base_file: True
    instants: Mapping[str, Instant] = {i.requested: i for i in table.completed_instants()}
    kinds: dict[str, ServiceKind] = {}

    def by_table_service(requested: str) -> bool:
        instant = instants.get(requested)
        if instant is None:
            # Archived since: nobody can tell any more who wrote it, so it counts as due.
            return True
        if requested not in kinds:
            kinds[requested] = table.service_kind(instant)
        return kinds[requested] is not ServiceKind.NONE

    def wanted(definition: IndexDefinition, base_file: BaseFile) -> bool:
        if definition.seen.covers(base_file.instant):
            return False
        return by_table_service(base_file.instant)

    return wanted
