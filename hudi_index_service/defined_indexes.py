"""A table's index definitions, as the façade shows them: create, alter, list, and the switch for
all readers."""

from collections.abc import Mapping, Sequence
from functools import partial

from hudi_index_service.hudi import HudiTable
from hudi_index_service.index.metadata.definitions import (
    Column,
    Definitions,
    DefinitionStore,
    IndexDefinition,
)
from hudi_index_service.maintain.define import alter_index, create_index, latest_instant
from hudi_index_service.maintain.overwrite import OverwriteWatch
from hudi_index_service.process import awaited_methods


@awaited_methods
class DefinedIndexes:
    """The index definitions of a Hudi table: the part of `IndexedTable` that needs no entry."""

    def __init__(self, table: HudiTable) -> None:
        self._table = table
        self._definitions = DefinitionStore(table.storage, partial(latest_instant, table))
        self._overwrites = OverwriteWatch(table)

    def create_index(
        self,
        name: str,
        columns: Sequence[str | Column],
        *,
        include: Sequence[str | Column] = (),
        using: str | Sequence[str] = "lucene",
        if_not_exists: bool = False,
        since: str | None = None,
    ) -> IndexDefinition:
        """Defines an index (RFC-51: createIndex). Builds nothing: entries are built after the next
        clustering or compaction, or by `build`.

        Args:
            name: Letters, digits and _.
            columns: Column names, or `Column` with options of the index type.
            include: Columns whose values are stored beside the index, with those of `columns`: a
                query that mentions only such columns reads no base file.
            using: One or several index types; each builds its own entries with all the columns.
            if_not_exists: Return the existing definition if the name is taken.
            since: The first instant (requested time) for INCREMENTAL builds, or another time in
                one of the forms of `instant_of`; None for the first one after the completed
                instants.

        Raises:
            IndexServiceError: IndexExists, IndexTypeUnknown, ColumnNotFound,
                ColumnNotIndexable, IndexDefinitionInvalid, ConfigInvalid,
                TableFeatureUnsupported, PermissionDenied, NativeModuleMissing; see
                `maintain.define.create_index`.
        """
        return create_index(
            self._table,
            self._definitions,
            self.indexes(),
            name,
            columns,
            include=include,
            using=using,
            if_not_exists=if_not_exists,
            since=since,
        )

    def alter_index(
        self,
        name: str,
        *,
        add: Sequence[str | Column] = (),
        drop: Sequence[str] = (),
        options: Mapping[str, Mapping[str, str]] | None = None,
        options_for_all: Mapping[str, str] | None = None,
        rename_to: str | None = None,
    ) -> IndexDefinition:
        """Changes an index. Existing entries keep serving the columns that still match; `refresh`
        updates the entries.

        Args:
            add, drop: Columns to add, perhaps with options, and columns to remove.
            options, options_for_all: Existing column → its new options; options added to every
                column. `maintain.define.alter_index` defines the precedence.
            rename_to: The new name. The index keeps its entries; see `DefinitionStore.rename`.

        Raises:
            IndexServiceError: IndexNotFound, IndexExists, IndexChanged,
                IndexDefinitionInvalid, IndexTypeUnknown, ColumnNotFound,
                ColumnNotIndexable, PermissionDenied; see `maintain.define.alter_index`.
        """
        return alter_index(
            self._table,
            self._definitions,
            name,
            add=add,
            drop=drop,
            options=options or {},
            options_for_all=options_for_all or {},
            rename_to=rename_to,
        )

    def indexes(self) -> tuple[IndexDefinition, ...]:
        """The live index definitions, by name."""
        return self._read_definitions().live

    def _read_definitions(self) -> Definitions:
        definitions = self._definitions.read()
        self._overwrites.see(definitions.live)
        return definitions

    def disable(self) -> None:
        """Keeps every reader from the table's indexes until `enable`: their queries scan, from the
        next one on. Entries are still built and cleaned. Raises PermissionDenied."""
        self._definitions.disable(disabled=True)

    def enable(self) -> None:
        """Lets readers use the table's indexes again, after `disable`. Raises PermissionDenied."""
        self._definitions.disable(disabled=False)

    @property
    def is_disabled(self) -> bool:
        """Whether `disable` keeps readers from the table's indexes."""
        return self._definitions.read().disabled
