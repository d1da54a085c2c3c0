"""The table's own settings, ``.hoodie/hoodie.properties``, and Hudi's own indexes by them: the
complete partitions of its metadata table (``hoodie.table.metadata.partitions``), with their
definitions in ``index.json``."""

import json
import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hudi_index_service.errors import IndexServiceError, NotAHudiTable, TableNotFound
from hudi_index_service.storage.store import Storage
from hudi_index_service.wording import did_you_mean

log = logging.getLogger(__name__)

HOODIE_FOLDER = ".hoodie"
PROPERTIES_FILE = f"{HOODIE_FOLDER}/hoodie.properties"
# Hudi briefly deletes the file while it rewrites the properties; until the new file exists, Hudi's
# own readers use this copy.
PROPERTIES_BACKUP = f"{HOODIE_FOLDER}/hoodie.properties.backup"

_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)", re.DOTALL)
_CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_KEY = re.compile(r"(?:\\.|[^\s:=\\])+", re.DOTALL)
_SEPARATOR = re.compile(r"[ \t\f]*[=:]?[ \t\f]*")

_DEFINITIONS = f"{HOODIE_FOLDER}/.index_defs/index.json"
_NO_INDEX = "files"  # the listing of the table's files
_SECONDARY = "secondary_index"
HUDI_PREFIXES = (f"{_SECONDARY}_", "expr_index_")
"""Prefixes that Hudi adds to the name of an index of one column."""


def read_properties(storage: Storage) -> dict[str, str]:
    """Parses ``hoodie.properties`` of the table at the storage's root. Raises what
    `read_properties_file` raises."""
    return parse_properties(read_properties_file(storage))


def read_properties_file(storage: Storage) -> bytes:
    """Reads ``hoodie.properties`` of the table at the storage's root; a comment in it holds the
    time at which it was written.

    Raises:
        TableNotFound: nothing is stored at the root.
        NotAHudiTable: the root holds no ``.hoodie/hoodie.properties``.
    """
    for path in (PROPERTIES_FILE, PROPERTIES_BACKUP):
        try:
            return storage.read(path)
        except FileNotFoundError:
            continue
    if not storage.root_exists():
        raise _nothing_there(storage)
    raise NotAHudiTable(
        f"{storage.uri} has no {PROPERTIES_FILE}.", remedy=_remedy(Path(storage.uri), storage)
    )


def _nothing_there(storage: Storage) -> TableNotFound | NotAHudiTable:
    path = Path(storage.uri)
    if path.is_file():
        return NotAHudiTable(f"{path} is a file.", remedy=_remedy(path, storage))
    near = did_you_mean(path.name, _names_beside(path)) if path.parent.is_dir() else ""
    return TableNotFound(
        f"Nothing is stored at {storage.uri}.", remedy=near + TableNotFound.default_remedy
    )


def _names_beside(path: Path) -> list[str]:
    try:
        return [each.name for each in path.parent.iterdir()]
    except OSError:  # the suggestion alone is lost
        return []


def _remedy(path: Path, storage: Storage) -> str | None:
    """The base path of the local table that a file, a partition or ``.hoodie`` belongs to; None if
    there is none."""
    if not storage.is_local:
        return None
    above = (each for each in path.parents if (each / PROPERTIES_FILE).is_file())
    table = next(above, None)
    return None if table is None else f"It belongs to the Hudi table {table}: give that path."


def parse_properties(data: bytes) -> dict[str, str]:
    """Parses the format of ``java.util.Properties`` (its ``load`` method): comments, ``=``, ``:``
    or blank as separator, continued lines, backslash escapes, ISO-8859-1."""
    properties: dict[str, str] = {}
    for line in _logical_lines(data.decode("iso-8859-1")):
        key = _KEY.match(line)
        end = key.end() if key else 0
        separator = _SEPARATOR.match(line, end)
        start = separator.end() if separator else end
        properties[_unescape(line[:end])] = _unescape(line[start:])
    return properties


def split_columns(value: str) -> tuple[str, ...]:
    """The column names of a comma-separated property; the ``:TYPE`` that custom key generators add
    to partition columns is dropped."""
    return tuple(part.strip().split(":", 1)[0] for part in value.split(",") if part.strip())


def is_true(properties: Mapping[str, str], key: str, default: bool = False) -> bool:
    """A boolean property as Hudi reads it."""
    return properties.get(key, str(default)).strip().lower() == "true"


def _logical_lines(text: str) -> Iterator[str]:
    prefix: str | None = None
    for natural in re.split(r"\r\n|\r|\n", text):
        line = natural.lstrip(" \t\f")
        if prefix is None and (not line or line[0] in "#!"):
            continue
        line = (prefix or "") + line
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            prefix = line[:-1]
            continue
        prefix = None
        yield line
    if prefix:
        yield prefix


def _unescape(text: str) -> str:
    def character(match: re.Match[str]) -> str:
        escaped = match.group(1)
        if len(escaped) == 5:
            return chr(int(escaped[1:], 16))
        return _CONTROL.get(escaped, escaped)

    return _ESCAPE.sub(character, text)


@dataclass(frozen=True, slots=True)
class OwnIndex:
    """One of Hudi's own indexes.

    Attributes:
        name: The name in SHOW INDEXES; an expression or secondary index has a prefix.
        type: Such as ``record_index``, ``secondary_index``, ``column_stats``, ``bloom_filters``.
        columns: The indexed columns; empty for an index of the whole table.
        options: The options at creation, such as ``{"expr": "lower"}``.
    """

    name: str
    type: str
    columns: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)


def own_indexes(storage: Storage) -> tuple[OwnIndex, ...]:
    """The table's own Hudi indexes, by name. Unreadable definitions are logged and ignored."""
    properties = read_properties(storage)
    names = split_columns(properties.get("hoodie.table.metadata.partitions", ""))
    definitions = _definitions(storage)
    return tuple(_own_index(name, definitions.get(name)) for name in sorted({*names} - {_NO_INDEX}))


def _own_index(name: str, definition: object) -> OwnIndex:
    fields = definition if isinstance(definition, dict) else {}
    kind = fields.get("indexType")
    columns = fields.get("sourceFields")
    if name == kind or not isinstance(columns, list):  # of the whole table
        columns = []
    default_type = _SECONDARY if name.startswith(_SECONDARY) else name
    options = fields.get("indexOptions")
    return OwnIndex(
        name,
        str(kind or default_type),
        tuple(map(str, columns)),
        {str(key): str(value) for key, value in options.items()}
        if isinstance(options, dict)
        else {},
    )


def _definitions(storage: Storage) -> Mapping[str, object]:
    try:
        content = json.loads(storage.read(_DEFINITIONS))
        definitions = content["indexDefinitions"]
    except FileNotFoundError:
        return {}
    except (IndexServiceError, ValueError, KeyError, TypeError, RecursionError) as error:
        log.warning("%s of %s cannot be read: %s", _DEFINITIONS, storage.uri, error)
        return {}
    return definitions if isinstance(definitions, dict) else {}
