"""From the keys of a write config to an index definition."""

import logging

from hudi_index_service.definitions import Column, DefinitionStore, IndexDefinition
from hudi_index_service.errors import IndexDefinitionInvalid, IndexExists
from hudi_index_service.indexed_table import IndexedTable
from hudi_index_service.upkeep.write_keys import PREFIX, WriteKeys

log = logging.getLogger(__name__)

INDEX_NAME = "write_config"
"""The index that belongs to the keys: they create and change it."""


def define(table: IndexedTable, keys: WriteKeys, *, since: str | None) -> None:
    """Creates the index that the keys ask for, or changes it to what they ask for now. Nothing
    happens if they name no columns, or if another index is just that one already.

    Args:
        since: INCREMENTAL starts with this instant; see `IndexedTable.create_index`.

    Raises:
        ColumnNotFound, ColumnNotIndexable, IndexTypeUnknown, TableFeatureUnsupported,
        PermissionDenied.
        IndexDefinitionInvalid: the keys name other index types than before.
    """
    live = {each.name: each for each in table.indexes()}
    current = live.get(INDEX_NAME)
    if not keys.columns or any(_is_what_is_asked(each, keys) for each in live.values()):
        return
    if current is not None:
        _change(table, current, keys)
        log.info("%s: index %s follows the write config.", table.uri, INDEX_NAME)
        return
    try:
        table.create_index(INDEX_NAME, keys.columns, using=keys.types, since=since)
        log.info("%s: index %s is created from the write config.", table.uri, INDEX_NAME)
    except IndexExists:  # somebody else was woken by the same commit
        log.info("%s: index %s was created by somebody else.", table.uri, INDEX_NAME)


def is_defined(table: IndexedTable) -> bool:
    """Whether the keys' index is there."""
    return any(each.name == INDEX_NAME for each in table.indexes())


def is_outdated(table: IndexedTable, instant: str) -> bool:
    """Whether the index was created, changed or dropped since this instant: then only what a later
    commit asks for changes it, or brings it back."""
    live = {each.name: each for each in table.indexes()}
    store = DefinitionStore(table.hudi_table.storage)
    version = live.get(INDEX_NAME) or store.dropped(INDEX_NAME)
    return version is not None and instant <= version.latest


def _is_what_is_asked(definition: IndexDefinition, keys: WriteKeys) -> bool:
    return set(definition.index_types) == set(keys.types) and _by_name(
        definition.columns
    ) == _by_name(keys.columns)


def _change(table: IndexedTable, current: IndexDefinition, keys: WriteKeys) -> None:
    if set(current.index_types) != set(keys.types):
        raise IndexDefinitionInvalid(
            f"Index {INDEX_NAME} of {table.uri} is of type {', '.join(current.index_types)}; "
            f"{PREFIX}types={','.join(keys.types)} cannot change that.",
            remedy=f"Drop it: hudi-index drop {table.uri} {INDEX_NAME}. The next write that holds "
            "the keys creates it anew.",
        )
    before, after = _by_name(current.columns), _by_name(keys.columns)
    table.alter_index(
        INDEX_NAME,
        add=[column for column in keys.columns if column.name.lower() not in before],
        drop=[column.name for column in current.columns if column.name.lower() not in after],
        options={
            column.name: column.options
            for column in keys.columns
            if before.get(column.name.lower(), column.options) != column.options
        },
    )


def _by_name(columns: tuple[Column, ...]) -> dict[str, dict[str, str]]:
    """The options of each column, whose name counts in any case."""
    return {column.name.lower(): column.options for column in columns}
