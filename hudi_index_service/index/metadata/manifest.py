"""The manifest: the small document that makes an entry exist and describes what it covers, in the
entry's folder.

    .hoodie/.index/<index type>/<instant>/<file id>/<partition digest>/manifest-000N.json
                                                                       data-<build>-<random>.pack

An entry is identified by its base file's path. The folder's name contains the base file's instant
and file id. The partition digest distinguishes base files of two partitions that share both; bucket
indexes with non-blocking concurrency control write such files.
"""

import hashlib
from enum import StrEnum
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_core import PydanticSerializationError

from hudi_index_service.hudi.snapshot import BaseFile, parse_path
from hudi_index_service.index.contract import ColumnSpec, IndexType, StoredColumn
from hudi_index_service.index.metadata.documents import INDEX_ROOT, Document
from hudi_index_service.index.packed_file import Count, DataFile
from hudi_index_service.predicate.bounds import UNKNOWN, ValueBounds


def index_type_folder(index_type: str) -> str:
    """The folder of all entries of an index type."""
    return f"{INDEX_ROOT}/{index_type}"


def entry_folder(index_type: str, base_file: BaseFile) -> str:
    """The folder of the base file's entry, which may not exist."""
    digest = _partition_digest(base_file.partition)
    return f"{index_type_folder(index_type)}/{base_file.instant}/{base_file.file_id}/{digest}"


@lru_cache(maxsize=4096)
def _partition_digest(partition: str) -> str:
    return hashlib.sha256(partition.encode()).hexdigest()[:16]


def entry_folder_at(index_type: str, path: str) -> str | None:
    """The same for the base file at a path; None if no base file has such a name."""
    base_file = parse_path(path)
    return entry_folder(index_type, base_file) if isinstance(base_file, BaseFile) else None


def instant_of(folder: str) -> str:
    """The instant of the base file that an entry's folder belongs to."""
    return folder.removeprefix(f"{INDEX_ROOT}/").split("/")[1]


PARQUET_METADATA = "parquet-metadata"
"""Name of the packed member that holds the base file's stripped footer and offset index."""


def _relative_path(value: str) -> str:
    """Checks that a path cannot leave the table's base path."""
    if not value or value.startswith("/") or ".." in value.split("/") or "\0" in value:
        raise ValueError("must be a path below the table")
    return value


RelativePath = Annotated[str, AfterValidator(_relative_path)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class IndexedBaseFile(_Part):
    """The base file that the entry was built from."""

    path: RelativePath
    length: Count
    rows: Count
    footer_sha256: str


class SkippedColumn(_Part):
    """What an entry does not hold of a column, because only Spark reads it in this base file: its
    type in the table's schema, the fields, and the reason."""

    name: str
    type_name: str = Field(alias="type")
    fields: tuple[str, ...]
    reason: str

    @classmethod
    def of(cls, spec: ColumnSpec, reason: str) -> Self:
        """The column as it was to be indexed."""
        return cls(name=spec.name, type=spec.type_name, fields=spec.fields, reason=reason)


class BuildInfo(_Part):
    """The build that made the entry."""

    id: str
    started: str
    finished: str
    versions: dict[str, str]


class Layout(StrEnum):
    """Whether this release reads an entry: the layout of its index type, and the codec."""

    READ = "read"
    UNREAD = "unread"  #: a build replaces the entry
    NEWER = "newer"  #: another release's, which this one never replaces


class Manifest(Document):
    """See docs/format.md."""

    kind: ClassVar[str] = "manifest"

    generation: Annotated[int, Field(ge=1)]
    index_type: str
    index_type_version: int
    codec: str | None = None
    base_file: IndexedBaseFile
    data: DataFile
    columns: tuple[StoredColumn, ...]
    skipped: tuple[SkippedColumn, ...] = ()
    definitions: dict[str, str]
    build: BuildInfo

    def _fields(self) -> dict[str, Any]:
        fields = super()._fields()
        absent = [name for name in ("codec", "skipped") if not fields[name]]
        return {name: value for name, value in fields.items() if name not in absent}

    def __reduce__(self) -> tuple[object, ...]:
        # As JSON: the plans of Spark's tasks hold thousands of manifests, of 30 models each.
        try:
            return type(self).model_validate_json, (self.model_dump_json(by_alias=True),)
        except PydanticSerializationError:  # of text with a lone surrogate
            return type(self).model_validate, (self.model_dump(by_alias=True),)

    def column(self, name: str) -> StoredColumn | None:
        """The column of that name, spelled as in the table's schema, if the entry holds it."""
        return next((column for column in self.columns if column.name == name), None)

    def bounds(self, name: str) -> ValueBounds:
        """The bounds of a column's values; unknown for a column that the entry does not hold."""
        column = self.column(name)
        return UNKNOWN if column is None else column.bounds(self.base_file.rows)

    def layout(self, kind: IndexType) -> Layout:
        """Whether this release reads the entry. If not, it does not serve."""
        if self.index_type_version > kind.version:
            return Layout.NEWER
        return Layout.READ if self.not_read(kind) is None else Layout.UNREAD

    def not_read(self, kind: IndexType) -> str | None:
        """What the entry has that this release does not read, such as "the older version 1"; None
        if it reads the entry."""
        version = self.index_type_version
        if not kind.oldest <= version <= kind.version:
            return f"the {'newer' if version > kind.version else 'older'} version {version}"
        if self.codec in kind.codecs:
            return None
        return f"the codec {self.codec}, which this release does not read"

    def specs(self) -> tuple[ColumnSpec, ...]:
        """The column specs that the entry was built with. Raises EntryInvalid for a type that is
        unknown here."""
        return tuple(column.spec for column in self.columns)

    def holds(self, spec: ColumnSpec) -> bool:
        """Whether the entry holds a column with the specified type and at least its fields."""
        column = self.column(spec.name)
        return column is not None and column.holds(spec)

    def settles(self, spec: ColumnSpec) -> bool:
        """Whether the entry holds the column, as far as its base file allows: another build would
        skip what this one skipped."""
        all_columns: tuple[StoredColumn | SkippedColumn, ...] = (*self.columns, *self.skipped)
        key = spec.name, spec.type_name
        parts = [each.fields for each in all_columns if (each.name, each.type_name) == key]
        return bool(parts) and set(spec.fields) <= {name for each in parts for name in each}

    def skips(self, spec: ColumnSpec) -> str | None:
        """Why the entry lacks a column, if its base file is the reason; None if it is not."""
        if self.holds(spec) or not self.settles(spec):
            return None
        return next(each.reason for each in self.skipped if each.name == spec.name)
