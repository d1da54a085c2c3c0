"""Defines an index, and changes its definition (RFC-51: createIndex)."""

import re
from collections.abc import Mapping, Sequence

from hudi_index_service.columns import require_list
from hudi_index_service.errors import IndexDefinitionInvalid, IndexExists, TableFeatureUnsupported
from hudi_index_service.hudi.as_of import instant_of
from hudi_index_service.hudi.protocol import HudiTable
from hudi_index_service.index.factory import index_types
from hudi_index_service.index.metadata.definitions import (
    Column,
    DefinitionStore,
    IndexDefinition,
    SeenTimeline,
    check_index_name,
)
from hudi_index_service.maintain.definition_changes import altered_columns, new_columns

_INSTANT = re.compile("[0-9]{14}([0-9]{3})?")


def latest_instant(table: HudiTable) -> str:
    """The requested time of the latest completed instant; "" if there is none."""
    instants = table.completed_instants()
    return instants[-1].requested if instants else ""


def create_index(
    table: HudiTable,
    definitions: DefinitionStore,
    live: Sequence[IndexDefinition],
    name: str,
    columns: Sequence[str | Column],
    *,
    include: Sequence[str | Column] = (),
    using: str | Sequence[str],
    if_not_exists: bool,
    since: str | None,
) -> IndexDefinition:
    """Stores and returns a new definition; see `IndexedTable.create_index`.

    Args:
        definitions: The store of the table's definitions.
        live: The table's live definitions.

    Raises:
        IndexExists, IndexTypeUnknown, ColumnNotFound, ColumnNotIndexable,
        IndexDefinitionInvalid, PermissionDenied.
        ConfigInvalid: `columns` or `using` is not a list, or `since` is not a time.
        NativeModuleMissing: an index type cannot work here, for lack of a module or of Java.
        TableFeatureUnsupported: the table cannot be read without Spark, so no query could use the
            index.
    """
    check_index_name(name)
    existing = next((definition for definition in live if definition.name == name), None)
    if existing is not None:
        if if_not_exists:
            return existing
        raise IndexExists(f"The table has an index named {name}.")
    reason = table.unsupported_feature()
    if reason is not None:
        raise TableFeatureUnsupported(
            f"{table.storage.uri} cannot be indexed: {reason}",
            remedy="Query it through Spark: an index would never serve it.",
        )
    if not isinstance(using, str):
        require_list(using, "using")
    kinds = index_types([using] if isinstance(using, str) else using)
    for kind in kinds:
        kind.check_runtime()
    definition_columns = new_columns(name, columns, include, kinds, table.schema())
    names = tuple(kind.name for kind in kinds)
    return definitions.create(name, names, definition_columns, _seen_timeline(table, since))


def _seen_timeline(table: HudiTable, since: str | None) -> SeenTimeline:
    """The timeline up to now, or up to the first instant for INCREMENTAL builds."""
    instants = [instant.requested for instant in table.completed_instants()]
    first = _first_instant(since, instants) if since else since
    seen = tuple(each for each in instants if first is None or each < first)
    return SeenTimeline(start=min(seen, default=first or ""), instants=seen)


def _first_instant(since: str, instants: Sequence[str]) -> str:
    """An instant, which need not have happened: the next one after second 59 may be second 60.
    Raises ConfigInvalid."""
    if isinstance(since, str) and _INSTANT.fullmatch(since):
        instant_of(f"{since[:12]}00", "since")
        return since
    return since if since in instants else instant_of(since, "since")


def alter_index(
    table: HudiTable,
    definitions: DefinitionStore,
    name: str,
    *,
    add: Sequence[str | Column],
    drop: Sequence[str],
    options: Mapping[str, Mapping[str, str]],
    options_for_all: Mapping[str, str],
    rename_to: str | None,
) -> IndexDefinition:
    """Stores and returns the next version of a definition; see `IndexedTable.alter_index`.

    Args:
        add, drop, options, options_for_all: See `altered_columns`.
        rename_to: See `DefinitionStore.rename`.

    Raises:
        IndexNotFound, PermissionDenied.
        IndexExists: `rename_to` is taken.
        IndexDefinitionInvalid: nothing would change.
        IndexDefinitionInvalid, ColumnNotFound, ColumnNotIndexable, IndexTypeUnknown: see
            `altered_columns`.
        IndexChanged: the index was changed concurrently; this call changed nothing.
    """
    current = definitions.get(name)
    columns = altered_columns(
        current,
        table.schema(),
        add=add,
        drop=drop,
        options=options,
        options_for_all=options_for_all,
    )
    if rename_to is not None and rename_to != name:
        return definitions.rename(current, rename_to, columns)
    if columns == current.columns:
        raise IndexDefinitionInvalid(
            f"Nothing about index {name} would change.",
            remedy="Name columns to add or drop, other options, or another name.",
        )
    return definitions.change(current, columns)
