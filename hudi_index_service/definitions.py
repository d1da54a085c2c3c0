"""Index definitions: what shall be indexed, decided before anything is built.

They lie under ``.hoodie/.index/_service/definitions/`` as immutable, numbered documents
``<name>-000N.json``; the highest number is current; dropping an index adds a version that says so.
"""

import hashlib
import json
import logging
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, field_validator

from hudi_index_service.documents import (
    SERVICE_FOLDER,
    Document,
    DocumentCache,
    document_name,
    numbers_of,
)
from hudi_index_service.errors import (
    EntryInvalid,
    IndexDefinitionInvalid,
    IndexExists,
    IndexNotFound,
)
from hudi_index_service.storage import Storage, StoredFile

log = logging.getLogger(__name__)

DEFINITIONS_FOLDER = f"{SERVICE_FOLDER}/definitions"

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_STEM = re.compile(r"(?P<name>[A-Za-z_][A-Za-z0-9_]{0,127})-\d{4,9}\.json")


def check_index_name(name: str) -> None:
    """Raises IndexDefinitionInvalid for a name that cannot name an index."""
    if not _NAME.fullmatch(name):
        raise IndexDefinitionInvalid(
            f"{name!r} cannot name an index.",
            remedy="Use letters, digits and _, not starting with a digit, 128 at most.",
        )


class Column(BaseModel):
    """A column to index, with options of the index type, such as ``{"analyzer": "standard"}``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    options: dict[str, str] = Field(default_factory=dict)


class SeenTimeline(BaseModel):
    """Where the timeline stood when the definition was made: what INCREMENTAL starts after.

    Attributes:
        start: The earliest instant of the active timeline; older base files count as seen.
        instants: The completed instants from then on.
    """

    model_config = ConfigDict(frozen=True)

    start: str
    instants: tuple[str, ...]

    def covers(self, instant: str) -> bool:
        """Whether the instant had been completed when the definition was made."""
        return instant < self.start or instant in self.instants


class IndexDefinition(Document):
    """One version of an index definition."""

    kind: ClassVar[str] = "definition"

    name: Annotated[str, Field(pattern=f"^{_NAME.pattern}$")]
    version: Annotated[int, Field(ge=1)]
    index_type: str
    columns: tuple[Column, ...]
    seen: SeenTimeline
    created: str
    dropped: bool = False

    @field_validator("columns", mode="before")
    @classmethod
    def _known_of_columns(cls, columns: Any) -> Any:
        """Passes over what a newer minor format says of a column, as `from_json` does with the
        document's own fields; `Column` refuses it, since a caller's unknown key is a mistake."""
        if not isinstance(columns, list):
            return columns
        return [
            {key: value for key, value in column.items() if key in Column.model_fields}
            if isinstance(column, dict)
            else column
            for column in columns
        ]

    def fingerprint(self) -> str:
        """A short digest of index type, columns and options: equal while they are."""
        content = json.dumps(
            [self.index_type, [[column.name, column.options] for column in self.columns]],
            sort_keys=True,
        )
        return hashlib.sha256(content.encode()).hexdigest()[:16]


_definitions = DocumentCache(IndexDefinition, capacity=1024)


class DefinitionStore:
    """The definitions of one table. Every call lists them; those known are not read again.

    Args:
        storage: The table's storage.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def live(self) -> tuple[IndexDefinition, ...]:
        """The current definitions, without the dropped ones, sorted by name.

        One whose highest version is damaged or newer is left out, and the log says so.
        """
        listed = self._listed()
        stems = {match["name"] for match in map(_STEM.fullmatch, listed) if match}
        current = (self._current(name, listed) for name in sorted(stems))
        return tuple(d for d in current if d is not None and not d.dropped)

    def get(self, name: str) -> IndexDefinition:
        """The current definition of that name. Raises IndexNotFound."""
        current = self._current(name, self._listed())
        if current is None or current.dropped:
            raise IndexNotFound(f"The table has no index named {name}.")
        return current

    def create(
        self, name: str, index_type: str, columns: Iterable[Column], seen: SeenTimeline
    ) -> IndexDefinition:
        """Stores a new definition.

        Raises:
            IndexExists: a live one has the name, also one that was made at the same moment.
            PermissionDenied: no write access below ``.hoodie/.index``.
        """
        check_index_name(name)
        listed = self._listed()
        current = self._current(name, listed)
        if current is not None and not current.dropped:
            raise IndexExists(f"The table has an index named {name}.")
        definition = IndexDefinition(
            name=name,
            version=max(numbers_of(name, listed), default=0) + 1,
            index_type=index_type,
            columns=tuple(columns),
            seen=seen,
            created=datetime.now(UTC).isoformat(timespec="milliseconds"),
        )
        self._store(definition)
        return definition

    def drop(self, name: str) -> IndexDefinition:
        """Marks the index as dropped; its entries go with the next clean. Raises IndexNotFound."""
        current = self.get(name)
        version = max(numbers_of(name, self._listed())) + 1
        self._store(current.model_copy(update={"version": version, "dropped": True}))
        return current

    def _store(self, definition: IndexDefinition) -> None:
        path = f"{DEFINITIONS_FOLDER}/{document_name(definition.name, definition.version)}"
        try:
            self._storage.create(path, definition.to_json())
        except FileExistsError as error:
            raise IndexExists(
                f"Index {definition.name} was changed by somebody else at the same moment.",
                remedy="Look at the table's indexes and try again.",
            ) from error

    def _listed(self) -> Mapping[str, StoredFile]:
        """The files of all definitions by name."""
        files = self._storage.files(DEFINITIONS_FOLDER)
        return {file.path.rsplit("/", 1)[1]: file for file in files}

    def _current(self, name: str, listed: Mapping[str, StoredFile]) -> IndexDefinition | None:
        """The definition's highest version; None if there is none, or if it cannot be read: an
        older one may have been dropped or narrowed by it, so it neither serves nor builds."""
        numbers = numbers_of(name, listed)
        if not numbers:
            return None
        file = listed[document_name(name, numbers[0])]
        try:
            definition = _definitions.get(
                (self._storage.uri, file), partial(self._storage.read, file.path), source=file.path
            )
        except EntryInvalid as error:
            log.warning("Index %s serves nothing: %s", name, error.message)
            return None
        if (definition.name, definition.version) != (name, numbers[0]):
            log.warning("Index %s serves nothing: %s names another one.", name, file.path)
            return None
        return definition
