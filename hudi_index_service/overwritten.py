"""Notices that a table was overwritten: Hudi's ``mode("overwrite")`` removes the whole ``.hoodie``,
and with it index definitions and entries.

The table itself cannot tell: it begins anew. So whoever knew its definitions compares.
"""

from collections.abc import Iterable
from typing import Self

from pydantic import BaseModel, ConfigDict

from hudi_index_service.definitions import DefinitionStore, IndexDefinition
from hudi_index_service.errors import TableOverwritten
from hudi_index_service.table.protocol import HudiTable


class KnownIndex(BaseModel):
    """An index as it would have to be created again; columns as the command line writes them."""

    model_config = ConfigDict(frozen=True)

    name: str
    types: tuple[str, ...]
    columns: tuple[str, ...]

    @classmethod
    def of(cls, definition: IndexDefinition) -> Self:
        """What is to be known of a definition."""
        columns = []
        for column in definition.columns:
            options = ",".join(f"{key}={value}" for key, value in column.options.items())
            columns.append(f"{column.name}:{options}" if options else column.name)
        return cls(name=definition.name, types=definition.index_types, columns=tuple(columns))


class KnownTable(BaseModel):
    """A table as it was known at some moment.

    Attributes:
        instant: The latest instant that had completed; "" if there was none.
        indexes: Its live indexes.
    """

    model_config = ConfigDict(frozen=True)

    instant: str
    indexes: tuple[KnownIndex, ...]

    @classmethod
    def of(cls, instant: str, definitions: Iterable[IndexDefinition]) -> Self:
        """What is to be known of a table."""
        return cls(instant=instant, indexes=tuple(map(KnownIndex.of, definitions)))


def overwritten_since(table: HudiTable, known: KnownTable) -> TableOverwritten | None:
    """What to tell if the table was overwritten since, and indexes went with it; else None.

    Cheap unless an index is missing: then the archived timeline is read too, since an instant that
    left the active timeline may only have been archived. Nothing is said of an index that was
    dropped, nor when only the index folder was removed.
    """
    stored = DefinitionStore(table.storage).names()
    missing = [index for index in known.indexes if index.name not in stored]
    if not missing:
        return None
    try:
        if known.instant and table.has_had(known.instant):
            return None
    except FileNotFoundError:  # Hudi rewrote its archive, which an overwritten table has not yet
        return None
    commands = "; ".join(
        f"hudi-index create '{table.storage.uri}' {index.name} "
        + " ".join(f"'{column}'" for column in index.columns)
        for index in missing
    )
    names = ", ".join(index.name for index in missing)
    return TableOverwritten(
        f"{table.storage.uri} was overwritten, .hoodie included: its index definitions {names} and "
        "their entries are gone.",
        remedy=f"{TableOverwritten.default_remedy} By command: {commands}",
    )
