"""Packs the files of an index into one data file per entry.

Members start on 64-byte boundaries. The file does not describe itself: the table of contents and
the checksums are in the manifest, which has its own checksum. So no untrusted byte is parsed to
locate a member. See docs/format.md.
"""

import base64
import hashlib
import struct
import zlib
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Annotated, BinaryIO

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic.dataclasses import dataclass

from hudi_index_service.errors import EntryInvalid
from hudi_index_service.index.contract import FileRange, PackedIndex

BLOCK_SIZE = 64 * 1024
"""Bytes per checksummed block."""

_ALIGNMENT = 64
_COPY_SIZE = 16 * BLOCK_SIZE


def _plain_name(value: str) -> str:
    """Checks that a file name cannot leave the entry's folder."""
    if not value or "/" in value or "\\" in value or "\0" in value or value.startswith(".."):
        raise ValueError("must be a plain file name")
    return value


def _crc32s(value: str) -> str:
    if len(base64.b64decode(value, validate=True)) % 4:
        raise ValueError("must be base64 of 32-bit integers")
    return value


PlainName = Annotated[str, AfterValidator(_plain_name)]
Count = Annotated[int, Field(ge=0)]


# Each entry has some sixteen, and a model takes four times as much memory.
@dataclass(frozen=True, slots=True, config=ConfigDict(extra="ignore"))
class Member:
    """A file packed in the data file."""

    name: PlainName
    offset: Count
    length: Count


class DataFile(BaseModel):
    """The packed data file: its name in the entry's folder, checksums, and table of contents.

    `block_crc32` is base64 of little-endian unsigned 32-bit integers, one per block: the CRC-32 of
    zlib's polynomial. The last block may be shorter.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

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

    def at(self, path: Path, *, rows: int) -> PackedIndex:
        """The data file on the local disk, with an index of so many rows."""
        members = {each.name: (each.offset, each.length) for each in self.members}
        return PackedIndex(path, members, self.length, self.block_size, self.crc32s(), rows)

    @staticmethod
    def encode_crc32s(crc32s: tuple[int, ...]) -> str:
        """The stored form of block checksums."""
        return base64.b64encode(struct.pack(f"<{len(crc32s)}I", *crc32s)).decode()


def pack(
    members: Mapping[str, Path | FileRange | bytes], target: Path, *, first: str = ""
) -> DataFile:
    """Writes the members (local files, file ranges, or bytes) to `target`, ordered by name.

    Args:
        first: How the names of members begin that are put before the others.
    """
    with target.open("wb") as out:
        return pack_into(members, out, target.name, first=first)


def pack_into(
    members: Mapping[str, Path | FileRange | bytes], out: BinaryIO, name: str, *, first: str = ""
) -> DataFile:
    """The same, to an open file, which is to be stored as `name`."""
    contents: list[Member] = []
    sums = _Checksums()
    length = 0
    for member in sorted(members, key=lambda each: (not each.startswith(first), each)):
        padding = b"\0" * (-length % _ALIGNMENT)
        start = length + len(padding)
        for chunk in chain((padding,), _chunks(members[member])):
            out.write(chunk)
            sums.add(chunk)
            length += len(chunk)
        contents.append(Member(name=member, offset=start, length=length - start))
    return DataFile(
        name=name,
        length=length,
        block_size=BLOCK_SIZE,
        block_crc32=DataFile.encode_crc32s(sums.block_crc32()),
        sha256=sums.sha256(),
        members=tuple(contents),
    )


def _chunks(source: Path | FileRange | bytes) -> Iterator[bytes]:
    if isinstance(source, bytes):
        yield source
        return
    path, offset, remaining = (
        (source.path, source.offset, source.length)
        if isinstance(source, FileRange)
        else (source, 0, source.stat().st_size)
    )
    with path.open("rb") as file:
        file.seek(offset)
        while remaining > 0:
            chunk = file.read(min(_COPY_SIZE, remaining))
            if not chunk:
                raise EntryInvalid(f"{path} ends before byte {offset + remaining}.")
            remaining -= len(chunk)
            yield chunk


class _Checksums:
    """Block checksums and SHA-256 of bytes that are added in pieces."""

    def __init__(self) -> None:
        self._crc32s: list[int] = []
        self._digest = hashlib.sha256()
        self._crc32 = 0
        self._in_block = 0

    def add(self, piece: bytes) -> None:
        self._digest.update(piece)
        view = memoryview(piece)
        while view:
            part = view[: BLOCK_SIZE - self._in_block]
            self._crc32 = zlib.crc32(part, self._crc32)
            self._in_block += len(part)
            if self._in_block == BLOCK_SIZE:
                self._end_block()
            view = view[len(part) :]

    def _end_block(self) -> None:
        self._crc32s.append(self._crc32)
        self._crc32, self._in_block = 0, 0

    def block_crc32(self) -> tuple[int, ...]:
        if self._in_block:
            self._end_block()
        return tuple(self._crc32s)

    def sha256(self) -> str:
        return self._digest.hexdigest()


def checksums(path: Path) -> tuple[tuple[int, ...], str]:
    """Block checksums and SHA-256 of a local file, in one pass.

    Raises:
        EntryInvalid: the file cannot be read, or ends before its length.
    """
    sums = _Checksums()
    try:
        for chunk in _chunks(path):
            sums.add(chunk)
    except OSError as error:
        raise EntryInvalid(f"{path} cannot be read: {error.strerror}.") from error
    return sums.block_crc32(), sums.sha256()


def read_member(index: PackedIndex, name: str) -> bytes:
    """The bytes of one member, from blocks whose checksums were verified.

    Raises:
        EntryInvalid: there is no such member, a block is damaged, or the file cannot be read.
    """
    if name not in index.members:
        raise EntryInvalid(f"{index.path} has no member {name}.")
    offset, length = index.members[name]
    blocks = range(offset // index.block_size, -(-(offset + length) // index.block_size))
    content = _read(index, blocks)
    damaged = _damaged(index, blocks, content)
    if damaged and index.blocks is not None:
        for number in damaged:
            index.blocks.fetch(number)
        content = _read(index, blocks)
        damaged = _damaged(index, blocks, content)
    if damaged:
        raise EntryInvalid(f"{index.path}: block {damaged[0]} is damaged.")
    start = offset - blocks.start * index.block_size
    return content[start : start + length]


def _read(index: PackedIndex, blocks: range) -> bytes:
    try:
        with index.path.open("rb") as file:
            file.seek(blocks.start * index.block_size)
            return file.read(len(blocks) * index.block_size)
    except OSError as error:
        raise EntryInvalid(f"{index.path} cannot be read: {error.strerror}.") from error


def _damaged(index: PackedIndex, blocks: range, content: bytes) -> list[int]:
    """Those of the blocks, of which this is the content, that are missing or damaged."""
    view, size = memoryview(content), index.block_size
    return [
        number
        for place, number in enumerate(blocks)
        if zlib.crc32(view[place * size : (place + 1) * size]) != index.block_crc32[number]
    ]
