"""Drops an index by name, or columns from every index (RFC-51: dropIndex)."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import pyarrow as pa

from hudi_index_service.columns import column_path, find_column, require_list
from hudi_index_service.errors import (
    ColumnAmbiguous,
    ColumnNotFound,
    ConfigInvalid,
    IndexChanged,
    IndexNotFound,
    Remedy,
)
from hudi_index_service.hudi.protocol import HudiTable
from hudi_index_service.index.metadata.definitions import DefinitionStore, IndexDefinition
from hudi_index_service.maintain.definition_changes import without_columns
from hudi_index_service.maintain.purge import Purge


@dataclass(frozen=True, slots=True)
class Dropped:
    """The result of a drop.

    Attributes:
        indexes: Dropped indexes, as they were.
        narrowed: Indexes that lost columns, as they are now.
        purge: The files removed, and those that could not be; None without a purge.
    """

    indexes: tuple[IndexDefinition, ...] = ()
    narrowed: tuple[IndexDefinition, ...] = ()
    purge: Purge | None = None


def drop(
    table: HudiTable,
    definitions: DefinitionStore,
    name: str | None,
    columns: Sequence[str] | None,
    *,
    again: bool,
) -> Dropped:
    """Drops an index, or removes columns from every index; an index that has none left is dropped.

    Args:
        name, columns: One of the two.
        again: Accept an index that has already been dropped, and a column of the table that no
            index has.

    Raises:
        IndexNotFound: there is no such index, or a column is in no index; nothing was changed.
        ConfigInvalid: neither or both of name and columns are given, or `columns` is not a list.
        PermissionDenied.
    """
    if (name is None) == (columns is None):
        raise ConfigInvalid(
            "An index is dropped by its name, or by columns.",
            remedy=Remedy("Give one of name and columns.", command="Give either NAME or --column."),
        )
    if name is not None:
        return _by_name(definitions, name, again=again)
    require_list(columns, "columns")
    return _columns(definitions, columns or (), table.schema(), again=again)


def _by_name(definitions: DefinitionStore, name: str, *, again: bool) -> Dropped:
    try:
        return Dropped((definitions.drop(name),))
    except IndexNotFound:
        names = {each.current.name for each in definitions.versions() if each.current is not None}
        if again and name in names:
            return Dropped()
        raise


def _columns(
    definitions: DefinitionStore, columns: Sequence[str], schema: pa.Schema, *, again: bool
) -> Dropped:
    live = definitions.live()
    for column in columns:
        if not without_columns(live, [column]) and not (again and _is_column(schema, column)):
            raise IndexNotFound(f"No index of the table has column {column}.")
    dropped: dict[str, IndexDefinition] = {}
    narrowed: dict[str, IndexDefinition] = {}
    while affected := without_columns(definitions.live(), columns):
        for definition, remaining in affected:
            with suppress(IndexChanged):  # the next pass sees the change
                changed = definitions.change(definition, remaining)
                if changed.dropped:
                    narrowed.pop(definition.name, None)
                    dropped[definition.name] = definition
                else:
                    narrowed[definition.name] = changed
    return Dropped(tuple(dropped.values()), tuple(narrowed.values()))


def _is_column(schema: pa.Schema, name: str) -> bool:
    try:
        find_column(schema, column_path(name))
    except (ColumnNotFound, ColumnAmbiguous):
        return False
    return True
