"""The keys that the table's writers stored with their commits."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hudi_index_service.hook.write_keys import holds_write_keys, index_options
from hudi_index_service.hudi.table import HudiTable


@dataclass(frozen=True, slots=True)
class StoredKeys:
    """Keys stored with a commit.

    Attributes:
        options: The options ``hoodie.index.*``, including Hudi's own.
        instant: Requested time of the commit.
    """

    options: Mapping[str, str]
    instant: str


def newest_keys(table: HudiTable) -> StoredKeys | None:
    """The keys of the newest commit that has any. Commits of table services, and of writers without
    keys, have none and change nothing."""
    return next(_newest_first(table), None)


def first_instant_with_keys(table: HudiTable) -> str | None:
    """The earliest commit of the active timeline with keys. The index covers base files from then
    on, although it is defined only now."""
    return min((stored.instant for stored in _newest_first(table)), default=None)


def _newest_first(table: HudiTable) -> Iterator[StoredKeys]:
    for instant in reversed(table.completed_instants()):
        extra = table.extra_metadata(instant)
        if holds_write_keys(extra):
            yield StoredKeys(index_options(extra), instant.requested)
