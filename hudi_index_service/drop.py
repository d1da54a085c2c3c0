"""Dropping: an index by its name, or columns out of every index (RFC-51: dropIndex)."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import pyarrow as pa

from hudi_index_service.columns import column_path, find_column
from hudi_index_service.definition_changes import without_columns
from hudi_index_service.definitions import DefinitionStore, IndexDefinition
from hudi_index_service.errors import ColumnAmbiguous, ColumnNotFound, IndexChanged, IndexNotFound
from hudi_index_service.purge import Purge


@dataclass(frozen=True, slots=True)
class Dropped:
    """What a drop took away.

    Attributes:
        indexes: Those that are no more, as they were.
        narrowed: Those that lost columns, as they are now.
        purge: What was removed with them, and what could not be; None without `purge`.
    """

    indexes: tuple[IndexDefinition, ...] = ()
    narrowed: tuple[IndexDefinition, ...] = ()
    purge: Purge | None = None


def drop_by_name(definitions: DefinitionStore, name: str, *, again: bool) -> Dropped:
    """Drops an index.

    Args:
        again: One that has been dropped before is no error.

    Raises:
        IndexNotFound, PermissionDenied.
    """
    try:
        return Dropped((definitions.drop(name),))
    except IndexNotFound:
        names = {each.current.name for each in definitions.versions() if each.current is not None}
        if again and name in names:
            return Dropped()
        raise


def drop_columns(
    definitions: DefinitionStore, columns: Sequence[str], schema: pa.Schema, *, again: bool
) -> Dropped:
    """Takes columns out of every index; an index left with none is dropped.

    Args:
        schema: The table's.
        again: A column of the table that no index has is no error.

    Raises:
        IndexNotFound: no index has one of the columns; nothing was changed.
        PermissionDenied.
    """
    live = definitions.live()
    for column in columns:
        if not without_columns(live, [column]) and not (again and _is_column(schema, column)):
            raise IndexNotFound(f"No index of the table has column {column}.")
    dropped: dict[str, IndexDefinition] = {}
    narrowed: dict[str, IndexDefinition] = {}
    while left := without_columns(definitions.live(), columns):
        for definition, remaining in left:
            with suppress(IndexChanged):  # then it is looked at once more
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
