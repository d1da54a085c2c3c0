"""Row keys of the HBase table, and what its cells are called.

A key begins with a byte that spreads entries over the table (the salt) and one that says what the
row is. All leaves of an entry follow each other, in the order of columns, branches and keys:

    salt | 1 | entry, 16 bytes | column, 2 bytes | branch, 1 byte | first key    a leaf
    salt | 0 | table, 16 bytes | path of the data file                           an entry is stored

An entry is known by a hash of its table's URI and its data file's path below it, which no other
entry, nor another generation of the same one, ever has. The salt is a hash of the same, so that
base files that are built at once are written to different regions, wherever these are split.
"""

import hashlib
from dataclasses import dataclass

from hudi_index_service.index.btree.intervals import above_prefix
from hudi_index_service.index.btree.tree import LeafPlace

FAMILY = b"i"
"""The one column family."""

URI = b"i:uri"
"""The table's URI, in the row that says that an entry is stored."""

BEGUN = b"i:begun"
"""When storing began, in seconds since 1970."""

CONTENT = b"i:content"
"""SHA-256 of the tree that the leaves belong to."""

DONE = b"i:done"
"""How many leaves there are; written when all are."""

CHUNK_BYTES = 512 * 1024
"""A longer leaf is cut into cells of so many bytes. (HBase takes cells of up to 10 MB as it is set
up, and its Thrift server frames of 2 MB.)"""

_HASHED = 16
_LEAF, _ENTRY = b"\x01", b"\x00"


@dataclass(frozen=True, slots=True)
class EntryKeys:
    """The row keys of one entry's leaves.

    Attributes:
        prefix: What they all begin with, and no others.
    """

    prefix: bytes

    @classmethod
    def of(cls, table: str, path: str) -> "EntryKeys":
        """Of the entry with this data file.

        Args:
            table: URI of the Hudi table.
            path: Of the data file, relative to it.
        """
        return cls(_prefix(_LEAF, f"{table}\0{path}"))

    @property
    def end(self) -> bytes:
        """The least key above them all."""
        end = above_prefix(self.prefix)
        assert end is not None, "the second byte is no 255"
        return end

    def leaf(self, place: LeafPlace) -> bytes:
        """The key of a leaf."""
        return self.prefix + place.prefix + place.key


@dataclass(frozen=True, slots=True)
class TableKeys:
    """The row keys that tell which entries of one Hudi table are stored."""

    prefix: bytes

    @classmethod
    def of(cls, table: str) -> "TableKeys":
        """Of the table with this URI."""
        return cls(_prefix(_ENTRY, table))

    def entry(self, path: str) -> bytes:
        """The key for the entry with this data file."""
        return self.prefix + path.encode(errors="surrogateescape")

    def path(self, key: bytes) -> str:
        """The data file that a key stands for."""
        return key.removeprefix(self.prefix).decode(errors="surrogateescape")


def _prefix(kind: bytes, identity: str) -> bytes:
    digest = hashlib.sha256(identity.encode()).digest()
    return digest[-1:] + kind + digest[:_HASHED]


def chunks(body: bytes) -> dict[bytes, bytes]:
    """The cells of a leaf, by the names of their columns."""
    starts = range(0, max(len(body), 1), CHUNK_BYTES)
    return {_chunk(at): body[start : start + CHUNK_BYTES] for at, start in enumerate(starts)}


def joined(cells: dict[bytes, bytes]) -> bytes:
    """The leaf of which these are the cells, if none is missing."""
    return b"".join(cells[name] for name in sorted(cells))


def _chunk(number: int) -> bytes:
    return FAMILY + b":" + number.to_bytes(2, "big")
