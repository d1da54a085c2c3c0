"""Numbered, immutable JSON documents: manifests and definitions (design, rule 5).

A document is a pydantic model stored as canonical JSON with a checksum over everything else in it.
It is created by put-if-absent under ``<stem>-<number>.json``. The highest valid number is used, and
nothing is ever replaced.
"""

import hashlib
import json
import re
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from datetime import UTC, datetime
from functools import lru_cache
from threading import Lock
from typing import Any, ClassVar, Generic, Self, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from hudi_index_service.errors import EntryInvalid, EntryUnusable, Remedy
from hudi_index_service.wording import first_mistake

INDEX_ROOT = ".hoodie/.index"
"""The only folder of a table that the service writes, relative to the table."""

SERVICE_FOLDER = f"{INDEX_ROOT}/_service"
"""Folder of everything except entries: definitions, build records, segments and summaries."""

FORMAT_MAJOR = 1
"""Major version of everything below ``.hoodie/.index``. For a newer one, a reader scans; a builder
never rewrites it."""

FORMAT_MINOR = 4

_NUMBERED = re.compile(r"(?P<stem>.+)-(?P<number>\d{4,9})\.json")


UNREADABLE = (EntryUnusable, FileNotFoundError)
"""Errors after which a stored file that saves time is ignored."""


class NewerFormat(EntryInvalid):
    """The document was written by a newer major format."""

    default_remedy = Remedy("Upgrade hudi-index-service; until then the slice is scanned.")


class Document(BaseModel):
    """Base of the stored documents: strict, frozen, checksummed."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: ClassVar[str]
    """The document's kind, stored in it: ``manifest``, ``definition`` or ``summary``."""

    def to_json(self) -> bytes:
        """Canonical JSON with kind, format and checksum."""
        body = {
            "kind": self.kind,
            "format": [FORMAT_MAJOR, FORMAT_MINOR],
            **self._fields(),
        }
        return _canonical({**body, "checksum": checksum_of(body)}, indent=1) + b"\n"

    def _fields(self) -> dict[str, Any]:
        """The fields stored beside kind, format and checksum."""
        return self.model_dump(mode="json", by_alias=True)

    @classmethod
    def from_json(cls, data: bytes, *, source: str) -> Self:
        """Reads and checks a document.

        Args:
            source: The path, for error messages.

        Raises:
            NewerFormat: the major format is newer than this reader's.
            EntryInvalid: not JSON, checksum wrong, fields missing or unknown.
        """
        try:
            body = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise EntryInvalid(f"{source} is not JSON: {error}.") from error
        if not isinstance(body, dict) or not _is_format(body.get("format")):
            raise EntryInvalid(f"{source} is not a document of this service.")
        if body["format"][0] > FORMAT_MAJOR:
            raise NewerFormat(
                f"{source} has format {body['format'][0]}; this release reads {FORMAT_MAJOR}."
            )
        checksum = body.pop("checksum", None)
        try:
            expected = checksum_of(body)
        except RecursionError as error:  # writing takes more recursion than reading
            raise EntryInvalid(f"{source} is nested too deeply.") from error
        if checksum != expected:
            raise EntryInvalid(f"{source} is damaged: its checksum does not match its content.")
        if body.pop("kind", None) != cls.kind:
            raise EntryInvalid(f"{source} is not a {cls.kind}.")
        minor = body.pop("format")[1]
        if minor > FORMAT_MINOR:  # newer minors only add fields, which this reader may ignore
            body = {key: body[key] for key in body if key in cls.model_fields}
        try:
            return cls.model_validate(body)
        except ValidationError as error:
            raise EntryInvalid(
                f"{source} is not a valid {cls.kind}: {first_mistake(error)}."
            ) from error


Kept = TypeVar("Kept", bound=Document)


class DocumentCache(Generic[Kept]):
    """An LRU cache of valid documents of one kind. They are immutable, so each is fetched once per
    process. Thread-safe.

    Args:
        most_bytes: Maximum bytes kept, as stored: those of all entries of a table, which queries
            walk through again and again, unless it is very large.
    """

    def __init__(self, kind: type[Kept], *, most_bytes: int = 128 * 2**20) -> None:
        self._kind = kind
        self._most_bytes = most_bytes
        self._documents: OrderedDict[Hashable, tuple[Kept, int]] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def knows(self, key: Hashable) -> bool:
        """Whether the document is cached."""
        with self._lock:
            return key in self._documents

    def get(self, key: Hashable, read: Callable[[], bytes], *, source: str) -> Kept:
        """The document, read only if it is not cached.

        Args:
            key: Identifies this content: the file's location and its attributes in a listing.
            read: Fetches the bytes; its errors pass through.
            source: The path, for error messages.

        Raises:
            NewerFormat, EntryInvalid: see `Document.from_json`.
        """
        with self._lock:
            cached = self._documents.get(key)
            if cached is not None:
                self._documents.move_to_end(key)
                return cached[0]
        data = read()
        document = self._kind.from_json(data, source=source)
        self.put(key, document, len(data))
        return document

    def drop(self, key: Hashable) -> None:
        """Forgets a document, if it is cached."""
        with self._lock:
            _, size = self._documents.pop(key, (None, 0))
            self._bytes -= size

    def put(self, key: Hashable, document: Kept, size: int) -> None:
        """Caches a valid document of `size` bytes as stored (see `get`)."""
        with self._lock:
            if key not in self._documents:  # another thread may have put it first
                self._documents[key] = document, size
                self._bytes += size
            while self._bytes > self._most_bytes:
                _, (_, evicted_size) = self._documents.popitem(last=False)
                self._bytes -= evicted_size


def utc_now() -> str:
    """The time as documents state it: ISO 8601 in UTC, with milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def document_name(stem: str, number: int) -> str:
    """The file name of a numbered document."""
    return f"{stem}-{number:04d}.json"


def numbers_of(stem: str, file_names: Iterable[str]) -> list[int]:
    """The numbers under which documents of the stem exist, highest first. Names that
    `document_name` would not return, such as one with an extra zero, are ignored."""
    numbers = [_number_of(stem, name) for name in file_names]
    return sorted([number for number in numbers if number is not None], reverse=True)


@lru_cache(maxsize=4_096)  # all entries' folders hold the same few names
def _number_of(stem: str, name: str) -> int | None:
    match = _NUMBERED.fullmatch(name)
    number = None if match is None else int(match["number"])
    return number if number is not None and name == document_name(stem, number) else None


def _is_format(value: object) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 2
        and all(isinstance(part, int) and part >= 0 for part in value)
    )


def _canonical(body: dict[str, Any], *, indent: int | None = None) -> bytes:
    separators = (",", ":") if indent is None else (",", ": ")
    text = json.dumps(
        body, sort_keys=True, ensure_ascii=False, indent=indent, separators=separators
    )
    return text.encode("utf-8", "surrogatepass")


def checksum_of(body: dict[str, Any]) -> str:
    """The checksum of a document's other fields, as it states it."""
    return "sha256:" + hashlib.sha256(_canonical(body)).hexdigest()
