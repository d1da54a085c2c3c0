"""The ``hoodie.index.*`` keys of a table: those that its writers stored with their commits, those
that the service remembers between runs, and the index that they define."""

import hashlib
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from hudi_index_service.errors import IndexDefinitionInvalid, IndexExists
from hudi_index_service.hook.write_options import PREFIX, WriteKeys, holds_write_keys, index_options
from hudi_index_service.hudi.table import HudiTable
from hudi_index_service.index.metadata.definitions import WRITE_CONFIG, Column, IndexDefinition
from hudi_index_service.maintain.overwrite import KnownTable
from hudi_index_service.storage.disk import write_private_file
from hudi_index_service.table import IndexedTable
from hudi_index_service.wording import first_mistake

log = logging.getLogger(__name__)

INDEX_NAME = WRITE_CONFIG
"""Name of the index that the keys create and change."""


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


class Remembered(BaseModel):
    """One table.

    Attributes:
        uri: Its base path.
        table: Its indexes and its latest completed instant.
        keys: The ``hoodie.index.*`` keys applied last, as written in the write config.
        committed: Those that a commit stored, archived or not.
    """

    model_config = ConfigDict(frozen=True)

    uri: str
    table: KnownTable
    keys: dict[str, str] = {}
    committed: dict[str, str] = {}


class TableMemory:
    """What the service remembers of a table between runs: a JSON file in the user's state folder
    (mode 0700), named by a digest of the base path. Without it, the service only misses that the
    table was overwritten between two runs, and the keys of archived commits.

    Args:
        folder: The state folder; created at first use.
        uri: The table's base path.
    """

    def __init__(self, folder: Path, uri: str) -> None:
        digest = hashlib.sha256(uri.encode()).hexdigest()[:32]
        self._uri = uri
        self._path = folder / "tables" / f"{digest}.json"
        self._state: Remembered | None = None
        self._has_warned = False

    def load(self) -> Remembered | None:
        """The remembered state; None if there is none or it cannot be read."""
        if self._state is None:
            try:
                state = Remembered.model_validate_json(self._path.read_bytes())
            except FileNotFoundError:
                return None
            except OSError as error:
                log.warning("%s is ignored: %s", self._path, error)
                return None
            except ValidationError as error:
                log.warning("%s is ignored: %s.", self._path, first_mistake(error))
                return None
            self._state = state if state.uri == self._uri else None
        return self._state

    def store(self, table: KnownTable, *, keys: dict[str, str], committed: dict[str, str]) -> None:
        """Remembers the table. Logs only the first failure to write the folder."""
        state = Remembered(uri=self._uri, table=table, keys=keys, committed=committed)
        if state == self.load():
            return
        self._state = state
        try:
            write_private_file(self._path, state.model_dump_json(indent=1).encode())
        except OSError as error:
            if not self._has_warned:
                log.warning("%s cannot be remembered across restarts: %s", self._uri, error)
            self._has_warned = True


def define(
    table: IndexedTable, live: Sequence[IndexDefinition], keys: WriteKeys, *, since: str | None
) -> Sequence[IndexDefinition]:
    """Creates the keys' index, or changes it to match the keys. Does nothing if they name no
    columns, or if another index already matches them.

    Args:
        live: The table's live definitions.
        since: First instant for INCREMENTAL; see `IndexedTable.create_index`.

    Returns the live definitions afterwards.

    Raises:
        ColumnNotFound, ColumnNotIndexable, IndexTypeUnknown, TableFeatureUnsupported,
        PermissionDenied.
        IndexDefinitionInvalid: the keys name other index types than before.
    """
    if not keys.columns or any(_matches(each, keys) for each in live):
        return live
    current = next((each for each in live if each.name == INDEX_NAME), None)
    if current is not None:
        _change(table, current, keys)
        log.info("%s: changed index %s to match the write config.", table.uri, INDEX_NAME)
        return table.indexes()
    try:
        table.create_index(
            INDEX_NAME, keys.columns, using=keys.types, since=since, owner=WRITE_CONFIG
        )
        log.info("%s: created index %s from the write config.", table.uri, INDEX_NAME)
    except IndexExists:  # the same commit woke another process
        log.info("%s: another process created index %s.", table.uri, INDEX_NAME)
    return table.indexes()


def _matches(definition: IndexDefinition, keys: WriteKeys) -> bool:
    return set(definition.index_types) == set(keys.types) and options_by_name(
        definition.columns
    ) == options_by_name(keys.columns)


def _change(table: IndexedTable, current: IndexDefinition, keys: WriteKeys) -> None:
    if set(current.index_types) != set(keys.types):
        raise IndexDefinitionInvalid(
            f"Index {INDEX_NAME} of {table.uri} is of type {', '.join(current.index_types)}; "
            f"{PREFIX}types={','.join(keys.types)} cannot change that.",
            remedy=f"Drop it: hudi-index drop {table.uri} {INDEX_NAME}. The next write with the "
            "keys creates it again.",
        )
    before, after = options_by_name(current.columns), options_by_name(keys.columns)
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


def options_by_name(columns: Iterable[Column]) -> dict[str, dict[str, str]]:
    """The options of each column, by lower-case name."""
    return {column.name.lower(): column.options for column in columns}
