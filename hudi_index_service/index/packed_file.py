"""One packed data file per entry: the files of an index, one after the other, in one object.

Members start on 64-byte boundaries. Nothing in the file describes it: the table of contents and the
checksums stand in the manifest, which has a checksum of its own, so that no untrusted byte is
parsed to find one's way. See docs/format.md.
"""

import hashlib
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hudi_index_service.errors import EntryInvalid
from hudi_index_service.index.contract import PackedIndex

BLOCK_SIZE = 64 * 1024
"""Bytes per checksummed block."""

_ALIGNMENT = 64
_COPY_SIZE = 16 * BLOCK_SIZE  # a multiple of the block size, so that checksums see whole blocks


@dataclass(frozen=True, slots=True)
class PackedFile:
    """What the manifest records of a packed file.

    Attributes:
        length: Bytes in all.
        members: name → (offset, length).
        block_crc32: CRC-32 (zlib's polynomial) of each `BLOCK_SIZE` block; the last is shorter.
        sha256: Of the whole file, hexadecimal.
    """

    length: int
    members: Mapping[str, tuple[int, int]]
    block_crc32: tuple[int, ...]
    sha256: str


def pack(members: Mapping[str, Path | bytes], target: Path) -> PackedFile:
    """Writes the members (local files or bytes) to `target`, in order of their names."""
    contents: dict[str, tuple[int, int]] = {}
    with target.open("wb") as out:
        for name in sorted(members):
            out.write(b"\0" * (-out.tell() % _ALIGNMENT))
            start = out.tell()
            source = members[name]
            if isinstance(source, bytes):
                out.write(source)
            else:
                with source.open("rb") as file:
                    while chunk := file.read(_COPY_SIZE):
                        out.write(chunk)
            contents[name] = (start, out.tell() - start)
        length = out.tell()
    crc32s, sha256 = checksums(target)
    return PackedFile(length, contents, crc32s, sha256)


def checksums(path: Path) -> tuple[tuple[int, ...], str]:
    """Block checksums and SHA-256 of a local file, in one pass."""
    crc32s: list[int] = []
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_COPY_SIZE):
            digest.update(chunk)
            view = memoryview(chunk)
            crc32s += [
                zlib.crc32(view[at : at + BLOCK_SIZE]) for at in range(0, len(chunk), BLOCK_SIZE)
            ]
    return tuple(crc32s), digest.hexdigest()


def read_member(index: PackedIndex, name: str) -> bytes:
    """The bytes of one member, after the blocks that hold them were checked.

    Raises:
        EntryInvalid: there is no such member, a block is damaged, or the file cannot be read.
    """
    if name not in index.members:
        raise EntryInvalid(f"{index.path} has no member {name}.")
    offset, length = index.members[name]
    first = offset // index.block_size
    last = -(-(offset + length) // index.block_size)
    try:
        with index.path.open("rb") as file:
            file.seek(first * index.block_size)
            blocks = file.read(
                min(last * index.block_size, index.length) - first * index.block_size
            )
    except OSError as error:
        raise EntryInvalid(f"{index.path} cannot be read: {error.strerror}.") from error
    for number in range(first, last):
        start = (number - first) * index.block_size
        if zlib.crc32(blocks[start : start + index.block_size]) != index.block_crc32[number]:
            raise EntryInvalid(f"{index.path}: block {number} is damaged.")
    start = offset - first * index.block_size
    return blocks[start : start + length]
