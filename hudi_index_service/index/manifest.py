"""The manifest: the small document that makes an entry exist and says exactly what it covers."""

import base64
import struct
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Self

import pyarrow as pa
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from hudi_index_service.documents import Document
from hudi_index_service.errors import EntryInvalid
from hudi_index_service.index.arrow_types import parse_arrow_type
from hudi_index_service.index.contract import ColumnStatistics, StoredColumn
from hudi_index_service.index.packed_file import BLOCK_SIZE, PackedFile
from hudi_index_service.predicate.bounds import UNKNOWN, ValueBounds, bound_of

PARQUET_METADATA = "parquet-metadata"
"""Name of the packed member that holds the base file's stripped footer and offset index."""


def _plain_name(value: str) -> str:
    """A file name inside the entry's folder: no way out of it."""
    if not value or "/" in value or "\\" in value or "\0" in value or value.startswith(".."):
        raise ValueError("must be a plain file name")
    return value


def _relative_path(value: str) -> str:
    """A path below the table's base path: no way out of it."""
    if not value or value.startswith("/") or ".." in value.split("/") or "\0" in value:
        raise ValueError("must be a path below the table")
    return value


def _crc32s(value: str) -> str:
    if len(base64.b64decode(value, validate=True)) % 4:
        raise ValueError("must be base64 of 32-bit integers")
    return value


PlainName = Annotated[str, AfterValidator(_plain_name)]
RelativePath = Annotated[str, AfterValidator(_relative_path)]
Count = Annotated[int, Field(ge=0)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class IndexedBaseFile(_Part):
    """The base file that the entry was built from."""

    path: RelativePath
    length: Count
    rows: Count
    footer_sha256: str


class Member(_Part):
    """A file packed in the data file."""

    name: PlainName
    offset: Count
    length: Count


class DataFile(_Part):
    """The packed data file: name in the entry's folder, checksums, table of contents.

    `block_crc32` is base64 of little-endian unsigned 32-bit integers, one a block.
    """

    name: PlainName
    length: Count
    block_size: Annotated[int, Field(gt=0, le=2**30)]
    block_crc32: Annotated[str, AfterValidator(_crc32s)]
    sha256: str
    members: tuple[Member, ...]

    def crc32s(self) -> tuple[int, ...]:
        """The block checksums as unsigned integers."""
        raw = base64.b64decode(self.block_crc32, validate=True)
        return struct.unpack(f"<{len(raw) // 4}I", raw)

    @classmethod
    def of(cls, name: str, packed: PackedFile) -> Self:
        """The description of a packed file that is stored as `name`."""
        return cls(
            name=name,
            length=packed.length,
            block_size=BLOCK_SIZE,
            block_crc32=cls.encode_crc32s(packed.block_crc32),
            sha256=packed.sha256,
            members=tuple(
                Member(name=member, offset=offset, length=length)
                for member, (offset, length) in packed.members.items()
            ),
        )

    @staticmethod
    def encode_crc32s(crc32s: tuple[int, ...]) -> str:
        """The stored form of block checksums."""
        return base64.b64encode(struct.pack(f"<{len(crc32s)}I", *crc32s)).decode()


class ManifestColumn(_Part):
    """What the entry holds of one column."""

    name: str
    type: str
    fields: tuple[str, ...]
    null_count: Count
    distinct: Count | None = None
    truncated: Count = 0
    minimum: str | None = None
    maximum: str | None = None

    def stored(self) -> StoredColumn:
        """The same in the contract's terms. Raises EntryInvalid for an unknown type."""
        return StoredColumn(
            self.name,
            self.arrow_type(),
            self.fields,
            ColumnStatistics(self.null_count, self.distinct, self.truncated),
        )

    def bounds(self, rows: int) -> ValueBounds:
        """What the statistics say of the column's values; `rows` is the base file's number."""
        least, greatest = _bound(self.minimum, self.type), _bound(self.maximum, self.type)
        return ValueBounds(
            may_be_null=self.null_count > 0,
            may_be_value=self.null_count < rows,
            least=least,
            greatest=greatest,
            may_be_nan=least is None or greatest is None,  # a column with a NaN has neither
        )

    def arrow_type(self) -> pa.DataType:
        """The column's Arrow type. Raises EntryInvalid for one that is not known here."""
        return parse_arrow_type(self.type)


@lru_cache(maxsize=65_536)
def _bound(spelled: str | None, type: str) -> Any:
    """The bound that a minimum or maximum spells; None where that is not sure: no answer depends
    on it."""
    if spelled is None:
        return None
    try:
        value = pa.scalar(spelled).cast(parse_arrow_type(type))
        return bound_of(value) if str(value.cast(pa.string()).as_py()) == spelled else None
    except (pa.ArrowException, UnicodeDecodeError, EntryInvalid):
        return None


class BuildInfo(_Part):
    """Where the entry came from."""

    id: str
    started: str
    finished: str
    versions: dict[str, str]


class Manifest(Document):
    """See docs/format.md."""

    kind: ClassVar[str] = "manifest"

    generation: Annotated[int, Field(ge=1)]
    index_type: str
    index_type_version: int
    base_file: IndexedBaseFile
    data: DataFile
    columns: tuple[ManifestColumn, ...]
    definitions: dict[str, str]
    build: BuildInfo

    def column(self, name: str) -> ManifestColumn | None:
        """The column of that name (as the table's schema spells it), if the entry holds it."""
        return next((column for column in self.columns if column.name == name), None)

    def bounds(self, name: str) -> ValueBounds:
        """What is known of a column's values; nothing of one that the entry does not hold."""
        column = self.column(name)
        return UNKNOWN if column is None else column.bounds(self.base_file.rows)

    def holds(self, name: str, type: pa.DataType, fields: tuple[str, ...]) -> bool:
        """Whether the entry can serve a column under these requirements."""
        column = self.column(name)
        return column is not None and column.type == str(type) and set(fields) <= set(column.fields)
