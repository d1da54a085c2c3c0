"""The table's own settings: ``.hoodie/hoodie.properties``."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from hudi_index_service.errors import NotAHudiTable, TableNotFound
from hudi_index_service.storage.store import Storage
from hudi_index_service.wording import did_you_mean

HOODIE_FOLDER = ".hoodie"
PROPERTIES_FILE = f"{HOODIE_FOLDER}/hoodie.properties"
# Hudi briefly deletes the file while it rewrites the properties; until the new file exists, Hudi's
# own readers use this copy.
PROPERTIES_BACKUP = f"{HOODIE_FOLDER}/hoodie.properties.backup"

_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)", re.DOTALL)
_CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_KEY = re.compile(r"(?:\\.|[^\s:=\\])+", re.DOTALL)
_SEPARATOR = re.compile(r"[ \t\f]*[=:]?[ \t\f]*")


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
    if storage.is_local and not storage.root_exists():
        raise _no_folder(storage)
    for path in (PROPERTIES_FILE, PROPERTIES_BACKUP):
        try:
            return storage.read(path)
        except FileNotFoundError:
            continue
    if not storage.root_exists():
        raise TableNotFound(f"Nothing is stored at {storage.uri}.")
    raise NotAHudiTable(
        f"{storage.uri} has no {PROPERTIES_FILE}.", remedy=_remedy(Path(storage.uri), storage)
    )


def _no_folder(storage: Storage) -> TableNotFound | NotAHudiTable:
    path = Path(storage.uri)
    if path.is_file():
        return NotAHudiTable(f"{path} is a file.", remedy=_remedy(path, storage))
    near = did_you_mean(path.name, _names_beside(path)) if path.parent.is_dir() else ""
    return TableNotFound(
        f"Nothing is stored at {path}.",
        remedy=near + TableNotFound.default_remedy,
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
