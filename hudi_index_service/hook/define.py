"""Turns the keys of a write config into an index definition."""

import logging

from hudi_index_service.errors import IndexDefinitionInvalid, IndexExists
from hudi_index_service.hook.write_keys import PREFIX, WriteKeys
from hudi_index_service.index.metadata.definitions import Column, DefinitionStore, IndexDefinition
from hudi_index_service.table import IndexedTable

log = logging.getLogger(__name__)

INDEX_NAME = "write_config"
"""Name of the index that the keys create and change."""


def define(table: IndexedTable, keys: WriteKeys, *, since: str | None) -> None:
    """Creates the keys' index, or changes it to match the keys. Does nothing if they name no
    columns, or if another index already matches them.

    Args:
        since: First instant for INCREMENTAL; see `IndexedTable.create_index`.

    Raises:
        ColumnNotFound, ColumnNotIndexable, IndexTypeUnknown, TableFeatureUnsupported,
        PermissionDenied.
        IndexDefinitionInvalid: the keys name other index types than before.
    """
    live = {each.name: each for each in table.indexes()}
    current = live.get(INDEX_NAME)
    if not keys.columns or any(_matches(each, keys) for each in live.values()):
        return
    if current is not None:
        _change(table, current, keys)
        log.info("%s: changed index %s to match the write config.", table.uri, INDEX_NAME)
        return
    try:
        table.create_index(INDEX_NAME, keys.columns, using=keys.types, since=since)
        log.info("%s: created index %s from the write config.", table.uri, INDEX_NAME)
    except IndexExists:  # the same commit woke another process
        log.info("%s: another process created index %s.", table.uri, INDEX_NAME)


def is_defined(table: IndexedTable) -> bool:
    """Whether the keys' index exists."""
    return any(each.name == INDEX_NAME for each in table.indexes())


def is_outdated(table: IndexedTable, instant: str) -> bool:
    """Whether the index was created, changed or dropped since this instant. If so, only the keys of
    a later commit change it or recreate it."""
    live = {each.name: each for each in table.indexes()}
    store = DefinitionStore(table.hudi_table.storage)
    version = live.get(INDEX_NAME) or store.dropped(INDEX_NAME)
    return version is not None and instant <= version.latest


def _matches(definition: IndexDefinition, keys: WriteKeys) -> bool:
    return set(definition.index_types) == set(keys.types) and _by_name(
        definition.columns
    ) == _by_name(keys.columns)


def _change(table: IndexedTable, current: IndexDefinition, keys: WriteKeys) -> None:
    if set(current.index_types) != set(keys.types):
        raise IndexDefinitionInvalid(
            f"Index {INDEX_NAME} of {table.uri} is of type {', '.join(current.index_types)}; "
            f"{PREFIX}types={','.join(keys.types)} cannot change that.",
            remedy=f"Drop it: hudi-index drop {table.uri} {INDEX_NAME}. The next write with the "
            "keys creates it again.",
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
    """The options of each column, by lower-case name."""
    return {column.name.lower(): column.options for column in columns}
