"""Why a table of the fleet is treated as it is: its group, and where each value comes from."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from typing import Any

from pydantic import BaseModel

from hudi_index_service.build.strategy import NO_BACKFILL, WHOLE_BACKFILL
from hudi_index_service.errors import TableNotFound
from hudi_index_service.fleet.policies.discovery import Discovered
from hudi_index_service.fleet.policies.file import FleetFile, Group, Rules
from hudi_index_service.fleet.policies.file_values import duration_text, size_text
from hudi_index_service.fleet.policies.policy import TablePolicy
from hudi_index_service.fleet.policies.sources import DatabaseSource, Place, parse_source
from hudi_index_service.wording import counted, did_you_mean

_SIZES = ("max_backfill_bytes", "max_orphaned", "bytes")


@dataclass(frozen=True, slots=True)
class Explained:
    """A value that holds for a table: key, value and origin as the file has them."""

    key: str
    value: str
    origin: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a table is treated as it is.

    Attributes:
        table: Its name in the fleet; as it was asked for, if it was not found.
        uri: Its base path; "" if it was not found.
        group: The group that holds.
        values: What holds, in the order of the file's keys.
    """

    table: str
    uri: str
    group: Group
    values: tuple[Explained, ...]


def explain(file: FleetFile, discovered: Discovered, table: str) -> Explanation:
    """The group of a table, and where each value comes from.

    A table that was not found is taken by its place alone, as one that is yet to be written.

    Args:
        table: Its name in the fleet, its name in a catalog, or its base path.

    Raises:
        TableNotFound: it is in no group.
    """
    policy = _find(discovered.tables, table)
    if policy is not None:
        group = next(each for each in file.groups if each.name == policy.group)
        return Explanation(policy.name, policy.uri, group, _values(file, group))
    place = _place(table)
    held = place and file.group_of(place)
    if not held:
        raise TableNotFound(
            f"{table} is in no group of the fleet file, which has "
            f"{counted(len(discovered.tables), 'table')} now.",
            remedy=did_you_mean(table, discovered.tables)
            + "Give a table's name in the fleet, its base path, or its name in a catalog.",
        )
    return Explanation(table, "", held, _values(file, held))


def _find(tables: Mapping[str, TablePolicy], table: str) -> TablePolicy | None:
    if table in tables:
        return tables[table]
    place = _place(table)
    for policy in tables.values():
        if place is not None and place.uri and place.uri == policy.uri:
            return policy
        in_catalog = place and (place.catalog, f"{place.database}.{place.table}")
        if policy.catalog and in_catalog == (policy.catalog, f"{policy.database}.{policy.table}"):
            return policy
    return None


def _place(table: str) -> Place | None:
    """The place that a text names; None if it is neither a path nor a table of a catalog."""
    try:
        source = parse_source(table)
    except ValueError:
        return None
    if isinstance(source, DatabaseSource):
        return Place("", source.catalog, source.database, source.tables)
    return Place(source.root)


def _values(file: FleetFile, group: Group) -> tuple[Explained, ...]:
    rules = file.rules(group)
    return tuple(
        Explained(key, value_text(key, getattr(rules, key)), file.origin(group, key))
        for key in Rules.model_fields
    )


def value_text(key: str, value: Any) -> str:
    """A value of a key, as the file has it."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case timedelta() if key == "backfill":
            named = {NO_BACKFILL: "none", WHOLE_BACKFILL: "all"}
            return named.get(value) or f"newest {value.days} days"
        case timedelta():
            return duration_text(value)
        case int() if key in _SIZES:
            return size_text(value)
        case Enum():
            return str(value.value)
        case list() | tuple():
            return f"[{', '.join(value_text(key, each) for each in value)}]"
        case BaseModel():
            return value_text(
                key, {name: getattr(value, name) for name in type(value).model_fields}
            )
        case Mapping():
            pairs = (f"{name}: {value_text(name, each)}" for name, each in value.items())
            return f"{{{', '.join(pairs)}}}"
        case str() if not value:
            return '""'
    return str(value)
