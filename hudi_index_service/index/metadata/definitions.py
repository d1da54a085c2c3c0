"""Index definitions: which columns each index covers, decided before anything is built. And the
switch by which a table's owner keeps all readers from its indexes.

Both are stored under ``.hoodie/.index/_service/definitions/`` as immutable, numbered documents,
``<name>-000N.json`` and ``reading-switch-000N.json``. The - keeps the switch's name apart from
those of indexes, so that older releases ignore it. The highest number is current. Changing an index
adds a version; dropping it adds a version marked as dropped.
"""

import hashlib
import json
import logging
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from hudi_index_service.errors import (
    EntryInvalid,
    IndexChanged,
    IndexDefinitionInvalid,
    IndexExists,
    IndexNotFound,
    SnapshotChanged,
)
from hudi_index_service.index.metadata.documents import (
    SERVICE_FOLDER,
    Document,
    DocumentCache,
    Kept,
    document_name,
    numbers_of,
    utc_now,
)
from hudi_index_service.storage.store import Storage, StoredFile
from hudi_index_service.wording import did_you_mean

log = logging.getLogger(__name__)

DEFINITIONS_FOLDER = f"{SERVICE_FOLDER}/definitions"

MANUAL = "manual"
"""Owner of a definition that a user created: by the API, the command line or SQL."""

WRITE_CONFIG = "write_config"
"""Owner of the definition that writers' keys ``hoodie.index.*`` create; also its name."""

FLEET = "fleet"
"""Owner of the definitions that the service creates from its fleet file."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_SWITCH_STEM = "reading-switch"
_STEM = re.compile(r"(?P<name>[A-Za-z_][A-Za-z0-9_]{0,127})-\d{4,9}\.json")


def check_index_name(name: str) -> None:
    """Raises IndexDefinitionInvalid for a name that cannot name an index."""
    if not (isinstance(name, str) and _NAME.fullmatch(name)):
        raise IndexDefinitionInvalid(
            f"{name!r} cannot name an index.",
            remedy="Use at most 128 letters, digits and _, without a digit at the start.",
        )


class Column(BaseModel):
    """A column to index, with options of the index types, such as ``{"analyzer": "standard"}``.

    An option applies to every index type of the index. An option for one type begins with the
    type's name, as in ``{"lucene.analyzer": "standard"}``.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    options: dict[str, str] = Field(default_factory=dict)

    @property
    def argument(self) -> str:
        """The column as the command line takes it: ``msg:analyzer=standard``."""
        pairs = ",".join(f"{key}={value}" for key, value in self.options.items())
        return f"{self.name}:{pairs}" if pairs else self.name

    def options_of(self, index_type: str) -> dict[str, str]:
        """The options for one index type; its own options override those for every type."""
        common = {key: value for key, value in self.options.items() if "." not in key}
        pairs = [(key.partition("."), value) for key, value in self.options.items()]
        return common | {
            key: value for (prefix, _, key), value in pairs if prefix == index_type and key
        }


class SeenTimeline(BaseModel):
    """The timeline's state when the definition was created: INCREMENTAL starts after it.

    Attributes:
        start: The earliest instant of the active timeline; older base files count as seen.
        instants: The completed instants from then on.
    """

    model_config = ConfigDict(frozen=True)

    start: str
    instants: tuple[str, ...]

    def covers(self, instant: str) -> bool:
        """Whether the instant had completed when the definition was created."""
        return instant < self.start or instant in self.instants


class IndexDefinition(Document):
    """One version of an index definition.

    `latest` is the latest instant that had completed when this version was stored; "" if there was
    none, or in format 1.0. Requests (``hoodie.index.*``) in commits up to then are outdated.

    `owner` is who created the index, and changes it without being asked: `MANUAL`, `WRITE_CONFIG`
    or `FLEET`. Up to format 1.2 it follows from the name.
    """

    kind: ClassVar[str] = "definition"

    name: Annotated[str, Field(pattern=f"^{_NAME.pattern}$")]
    version: Annotated[int, Field(ge=1)]
    index_types: Annotated[tuple[str, ...], Field(min_length=1)]
    columns: tuple[Column, ...]
    seen: SeenTimeline
    created: str
    dropped: bool = False
    latest: str = ""
    owner: str = MANUAL

    @model_validator(mode="before")
    @classmethod
    def _of_older_format(cls, fields: Any) -> Any:
        """Adds what format 1.0, with one `index_type`, and formats up to 1.2, in which only the
        name stated writers' keys as the owner, lack."""
        if not isinstance(fields, dict):
            return fields
        others = {key: value for key, value in fields.items() if key != "index_type"}
        older: dict[str, Any] = {
            "owner": WRITE_CONFIG if fields.get("name") == WRITE_CONFIG else MANUAL
        }
        if "index_type" in fields:
            older["index_types"] = [fields["index_type"]]
        return older | others

    def _fields(self) -> dict[str, Any]:
        # A reader of format 1.0 ignores `index_types`, and builds and serves the first of them.
        return {**super()._fields(), "index_type": self.index_types[0]}

    @field_validator("columns", mode="before")
    @classmethod
    def _drop_newer_column_fields(cls, columns: Any) -> Any:
        """Drops a column's fields from a newer minor format, as `from_json` does with the
        document's own fields. `Column` refuses them, since a caller's unknown key is a mistake."""
        if not isinstance(columns, list):
            return columns
        return [
            {key: value for key, value in column.items() if key in Column.model_fields}
            if isinstance(column, dict)
            else column
            for column in columns
        ]

    def fingerprint(self, index_type: str) -> str:
        """A short digest of one index type, the columns and their options; equal if they are."""
        content = json.dumps(
            [index_type, [[each.name, each.options_of(index_type)] for each in self.columns]],
            sort_keys=True,
        )
        return hashlib.sha256(content.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class StoredVersions:
    """All stored versions of one definition.

    Attributes:
        current: The highest version; None if it is damaged or of a newer format, so that it is
            unknown here whether the index is live.
        newest: The file of the highest version.
        older: The files of the other versions, which are never read.
    """

    current: IndexDefinition | None
    newest: StoredFile
    older: tuple[StoredFile, ...]

    def may_use(self, index_type: str, column: str) -> bool:
        """Whether the live index has a column in entries of an index type; True if it is unknown
        whether it does."""
        current = self.current
        return current is None or (
            not current.dropped
            and index_type in current.index_types
            and column in {each.name for each in current.columns}
        )


class ReadingSwitch(Document):
    """One state of the switch that keeps readers from a table's indexes."""

    kind: ClassVar[str] = "switch"

    number: Annotated[int, Field(ge=1)]
    disabled: bool
    created: str


class Definitions(NamedTuple):
    """The definitions of a table at one moment.

    Attributes:
        live: The current ones, without the dropped ones, sorted by name.
        complete: Whether these are all: False if the highest version of one is damaged or of a
            newer format, so that its columns are unknown here.
        disabled: Whether no query may use the table's indexes; see `DefinitionStore.disable`.
    """

    live: tuple[IndexDefinition, ...]
    complete: bool
    disabled: bool = False


_definitions = DocumentCache(IndexDefinition)
_switches = DocumentCache(ReadingSwitch)


class DefinitionStore:
    """The definitions of one table. Every call lists them; cached ones are not read again.

    Args:
        storage: The table's storage.
        latest: Returns the latest completed instant, which is stored with each version.
    """

    def __init__(self, storage: Storage, latest: Callable[[], str] = lambda: "") -> None:
        self._storage = storage
        self._latest = latest
        self._last: tuple[Mapping[str, StoredFile], Definitions] | None = None

    def live(self) -> tuple[IndexDefinition, ...]:
        """The current definitions, without the dropped ones, sorted by name.

        A definition whose highest version is damaged or newer is left out and logged.
        """
        return self.read().live

    def read(self) -> Definitions:
        """Reads the live definitions, whether some cannot be read, and the reading switch."""
        files, last = self._files(), self._last
        if last is not None and last[0] == files:
            return last[1]
        current = [versions.current for versions in self._versions(files)]
        definitions = Definitions(
            tuple(each for each in current if each is not None and not each.dropped),
            complete=None not in current,
            disabled=self._is_disabled(files),
        )
        if definitions.complete:  # else it is logged each time
            self._last = (files, definitions)
        return definitions

    def disable(self, *, disabled: bool) -> None:
        """Forbids every query to use the table's indexes, or permits it again. Builds and cleans
        go on. Calling it again changes nothing.

        Raises:
            PermissionDenied: no write access below ``.hoodie/.index``.
        """
        while self._is_disabled(files := self._files()) != disabled:
            number = max(numbers_of(_SWITCH_STEM, files), default=0) + 1
            path = f"{DEFINITIONS_FOLDER}/{document_name(_SWITCH_STEM, number)}"
            switch = ReadingSwitch(number=number, disabled=disabled, created=utc_now())
            with suppress(FileExistsError):  # another user was first; the next pass sees it
                self._storage.create(path, switch.to_json())

    def versions(self) -> list[StoredVersions]:
        """All stored definitions by name, including dropped ones."""
        return self._versions(self._files())

    def _versions(self, files: Mapping[str, StoredFile]) -> list[StoredVersions]:
        versions = []
        for name in sorted(_names(files)):
            numbers = numbers_of(name, files)
            version_files = [files[document_name(name, number)] for number in numbers]
            if version_files:
                current = self._current(name, files)
                versions.append(StoredVersions(current, version_files[0], tuple(version_files[1:])))
        return versions

    def names(self) -> frozenset[str]:
        """The names of all stored definitions, including dropped ones."""
        return _names(self._files())

    def get(self, name: str) -> IndexDefinition:
        """The current definition with that name. Raises IndexNotFound."""
        files = self._files()
        current = self._current(name, files)
        numbers = numbers_of(name, files)
        if current is None and numbers:
            raise IndexNotFound(
                f"{files[document_name(name, numbers[0])].path}, which defines index {name}, "
                "cannot be read: see the log for the reason.",
                remedy="If the file is damaged, create the index again, which repairs it. If a "
                "newer release wrote it, use that release.",
            )
        if current is None or current.dropped:
            hint = did_you_mean(name, (each.name for each in self.live()))
            raise IndexNotFound(
                f"The table has no index named {name}.",
                remedy=hint + IndexNotFound.default_remedy if hint else None,
            )
        return current

    def create(
        self,
        name: str,
        index_types: tuple[str, ...],
        columns: Iterable[Column],
        seen: SeenTimeline,
        created: str | None = None,
        owner: str = MANUAL,
    ) -> IndexDefinition:
        """Stores a new definition.

        Args:
            created: The time of its creation; None for now.
            owner: See `IndexDefinition`.

        Raises:
            IndexExists: a live index has the name, perhaps created concurrently.
            IndexDefinitionInvalid: the name cannot name an index.
            PermissionDenied: no write access below ``.hoodie/.index``.
        """
        check_index_name(name)
        files = self._files()
        current = self._current(name, files)
        if current is not None and not current.dropped:
            raise IndexExists(f"The table has an index named {name}.")
        definition = IndexDefinition(
            name=name,
            version=max(numbers_of(name, files), default=0) + 1,
            index_types=index_types,
            columns=tuple(columns),
            seen=seen,
            created=created or utc_now(),
            owner=owner,
        )
        try:
            return self._store(definition)
        except IndexChanged as error:
            raise IndexExists(f"An index named {name} was just created concurrently.") from error

    def change(self, current: IndexDefinition, columns: Iterable[Column]) -> IndexDefinition:
        """Stores the next version of a live definition with other columns; without columns, the
        version is marked as dropped.

        Args:
            current: The version that the change is based on.

        Raises:
            IndexChanged: `current` is no longer the current version.
        """
        columns = tuple(columns)
        update = {"version": current.version + 1, "columns": columns}
        changed = current.model_copy(update=update) if columns else _drop_marker(current)
        return self._store(changed)

    def rename(
        self, current: IndexDefinition, name: str, columns: Iterable[Column]
    ) -> IndexDefinition:
        """Gives a live definition another name, and perhaps other columns.

        The new name is stored first; then the old one is marked as dropped. A process killed
        between the two steps leaves both names valid, with shared entries. Calling this again, or
        dropping the old name, completes the rename.

        Raises:
            IndexExists: another index has the new name.
            IndexDefinitionInvalid: the new name cannot name an index.
            IndexChanged: `current` is no longer the current version; the new name is free again.
        """
        columns = tuple(columns)
        attributes = (current.index_types, columns, current.seen, current.created)
        try:
            renamed = self.create(name, *attributes, owner=current.owner)
        except IndexExists:
            renamed = self.get(name)
            if (renamed.index_types, renamed.columns, renamed.seen, renamed.created) != attributes:
                raise
        try:
            self._store(_drop_marker(current))
        except IndexChanged:
            self._store(_drop_marker(renamed))
            raise
        return renamed

    def drop(self, name: str) -> IndexDefinition:
        """Marks the index as dropped, even while it is changed concurrently. The next clean deletes
        its entries. Returns the last live version. Raises IndexNotFound."""
        while True:
            current = self.get(name)
            with suppress(IndexChanged):
                self._store(_drop_marker(current))
                return current

    def _store(self, version: IndexDefinition) -> IndexDefinition:
        definition = version.model_copy(update={"latest": self._latest()})
        path = f"{DEFINITIONS_FOLDER}/{document_name(definition.name, definition.version)}"
        try:
            self._storage.create(path, definition.to_json())
        except FileExistsError as error:
            raise IndexChanged(
                f"Index {definition.name} was changed concurrently by another user."
            ) from error
        return definition

    def _files(self) -> Mapping[str, StoredFile]:
        """The files of all definitions by name."""
        files = self._storage.files(DEFINITIONS_FOLDER)
        return {file.path.rsplit("/", 1)[1]: file for file in files}

    def _current(self, name: str, files: Mapping[str, StoredFile]) -> IndexDefinition | None:
        """The definition's highest version; None if there is none or it cannot be read. An older
        version is not used instead: the unreadable one may have dropped or narrowed it."""
        if not isinstance(name, str):
            raise IndexNotFound(f"{name!r} is not an index name.", remedy="Give the name as text.")
        try:
            definition = self._newest(_definitions, name, files)
        except EntryInvalid as error:
            log.warning("Index %s serves nothing: %s", name, error.message)
            return None
        number = max(numbers_of(name, files), default=0)
        if definition is not None and (definition.name, definition.version) != (name, number):
            path = f"{DEFINITIONS_FOLDER}/{document_name(name, number)}"
            log.warning("Index %s serves nothing: %s names another one.", name, path)
            return None
        return definition

    def _is_disabled(self, files: Mapping[str, StoredFile]) -> bool:
        """Whether no query may use the table's indexes. True, too, if the newest state cannot be
        read here."""
        try:
            switch = self._newest(_switches, _SWITCH_STEM, files)
        except EntryInvalid as error:
            log.warning("No index of %s is used: %s", self._storage.uri, error.message)
            return True
        return switch is not None and switch.disabled

    def _newest(
        self, known: DocumentCache[Kept], stem: str, files: Mapping[str, StoredFile]
    ) -> Kept | None:
        """The document of a stem with the highest number; None if there is none.

        Raises:
            EntryInvalid: it is damaged, or of a newer format.
            SnapshotChanged: it was deleted in the meantime.
        """
        numbers = numbers_of(stem, files)
        if not numbers:
            return None
        file = files[document_name(stem, numbers[0])]
        read = partial(self._storage.read, file.path)
        try:
            return known.get((self._storage.uri, file), read, source=file.path)
        except FileNotFoundError as error:
            # Not the same as "there is none": a cleaner would treat the entries as unused.
            raise SnapshotChanged(
                f"{file.path} was deleted while the definitions were read.",
                remedy="Try again; if the table was overwritten, create its indexes again.",
            ) from error


def _names(file_names: Iterable[str]) -> frozenset[str]:
    """The index names among the file names."""
    return frozenset(match["name"] for match in map(_STEM.fullmatch, file_names) if match)


def _drop_marker(current: IndexDefinition) -> IndexDefinition:
    """The version after `current` that marks the index as dropped."""
    return current.model_copy(update={"version": current.version + 1, "dropped": True})
