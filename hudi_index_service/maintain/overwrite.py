"""Detects that a table was overwritten: Hudi's ``mode("overwrite")`` removes the whole ``.hoodie``,
including index definitions and entries.

The new table has no trace of this, so the caller compares it with definitions known before.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Self

from pydantic import BaseModel, ConfigDict

from hudi_index_service.errors import TableOverwritten
from hudi_index_service.hudi.table import HudiTable
from hudi_index_service.index.metadata.definitions import DefinitionStore, IndexDefinition

log = logging.getLogger(__name__)


class KnownIndex(BaseModel):
    """What is needed to create an index again, with columns in the command line's syntax."""

    model_config = ConfigDict(frozen=True)

    name: str
    types: tuple[str, ...]
    columns: tuple[str, ...]

    @classmethod
    def of(cls, definition: IndexDefinition) -> Self:
        """The known state of a definition."""
        columns = tuple(each.argument for each in definition.columns)
        return cls(name=definition.name, types=definition.index_types, columns=columns)


class KnownTable(BaseModel):
    """A table's state at some time.

    Attributes:
        instant: Requested time of the latest completed instant; "" if there was none.
        indexes: Its live indexes.
    """

    model_config = ConfigDict(frozen=True)

    instant: str
    indexes: tuple[KnownIndex, ...]

    @classmethod
    def of(cls, instant: str, definitions: Iterable[IndexDefinition]) -> Self:
        """The known state of a table."""
        return cls(instant=instant, indexes=tuple(map(KnownIndex.of, definitions)))


def overwritten_since(table: HudiTable, known: KnownTable) -> TableOverwritten | None:
    """The error to report if the table was overwritten since and lost indexes; else None.

    Cheap unless an index is missing: then it also reads the archived timeline, since an instant
    that left the active timeline may only have been archived. Dropped indexes do not count, nor
    does the removal of the index folder alone.
    """
    stored_names = DefinitionStore(table.storage).names()
    missing = [index for index in known.indexes if index.name not in stored_names]
    if not missing:
        return None
    try:
        if known.instant and table.ever_completed(known.instant):
            return None
    except FileNotFoundError:  # Hudi rewrote its archive; a new table does not have one yet
        return None
    commands = "; ".join(
        f"hudi-index create '{table.storage.uri}' {index.name} "
        + " ".join(f"'{column}'" for column in index.columns)
        for index in missing
    )
    names = ", ".join(index.name for index in missing)
    return TableOverwritten(
        f"{table.storage.uri} was overwritten, including .hoodie: its index definitions {names} "
        "and their entries are gone.",
        remedy=TableOverwritten.default_remedy + f"By command: {commands}",
    )


class OverwriteWatch:
    """Logs an overwrite of a table when definitions that were live before are gone."""

    def __init__(self, table: HudiTable) -> None:
        self._table = table
        self._known: Mapping[str, IndexDefinition] = {}

    def see(self, live: Sequence[IndexDefinition]) -> None:
        """Compares the live definitions with those of the last call."""
        before, self._known = self._known, {each.name: each for each in live}
        lost = [each for name, each in before.items() if name not in self._known]
        if lost:
            last_seen = max((i for each in lost for i in each.seen.instants), default="")
            overwritten = overwritten_since(self._table, KnownTable.of(last_seen, lost))
            if overwritten is not None:
                log.warning("%s", overwritten)
