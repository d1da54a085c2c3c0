"""The keys that the table's writers stored with their commits."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hudi_index_service.table.protocol import HudiTable
from hudi_index_service.upkeep.write_keys import holds_write_keys, index_options


@dataclass(frozen=True, slots=True)
class StoredKeys:
    """Keys stored with a commit.

    Attributes:
        options: The options ``hoodie.index.*``, Hudi's own among them.
        instant: Requested time of the commit.
    """

    options: Mapping[str, str]
    instant: str


def newest_keys(table: HudiTable) -> StoredKeys | None:
    """The keys of the newest commit that has any: what the last such writer asked for. Commits of
    table services have none, nor have those of other writers, who change nothing by it."""
    return next(_newest_first(table), None)


def first_instant_with_keys(table: HudiTable) -> str | None:
    """The earliest commit of the active timeline whose writer asked for the index: from then on it
    was wanted, although it is only defined now."""
    return min((stored.instant for stored in _newest_first(table)), default=None)


def _newest_first(table: HudiTable) -> Iterator[StoredKeys]:
    for instant in reversed(table.completed_instants()):
        extra = table.extra_metadata(instant)
        if holds_write_keys(extra):
            yield StoredKeys(index_options(extra), instant.requested)
