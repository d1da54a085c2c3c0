"""Row keys and cell names of the HBase table.

A key begins with a byte that spreads entries over the table (the salt) and a byte for the kind of
row. All leaves of an entry are adjacent, in the order of columns, branches and keys:

    salt | 1 | entry, 16 bytes | column, 2 bytes | branch, 1 byte | first key    a leaf
    salt | 0 | table, 16 bytes | path of the data file                           an entry is stored

An entry is identified by a hash of its table's URI and its data file's path below it, which no
other entry or generation ever shares. The salt is a hash of the same, so that base files built at
the same time are written to different regions, wherever these are split.
"""

import hashlib
from dataclasses import dataclass

from hudi_index_service.index.btree.intervals import above_prefix
from hudi_index_service.index.btree.tree import LeafPlace

FAMILY = b"i"
"""The one column family."""

URI = b"i:uri"
"""The table's URI, in the row that records a stored entry."""

BEGUN = b"i:begun"
"""When storing began, in seconds since 1970."""

CONTENT = b"i:content"
"""SHA-256 of the tree that the leaves belong to."""

DONE = b"i:done"
"""The number of leaves; written when all leaves are."""

CHUNK_BYTES = 512 * 1024
"""The size of the cells into which a longer leaf is cut. (By default, HBase accepts cells of up to
10 MB, and its Thrift server frames of up to 2 MB.)"""

_HASHED = 16
_LEAF, _ENTRY = b"\x01", b"\x00"


@dataclass(frozen=True, slots=True)
class EntryKeys:
    """The row keys of one entry's leaves.

    Attributes:
        prefix: The prefix of these keys, and of no others.
    """

    prefix: bytes

    @classmethod
    def of(cls, table: str, path: str) -> "EntryKeys":
        """The keys of the entry with this data file.

        Args:
            table: The URI of the Hudi table.
            path: The path of the data file, relative to the table.
        """
        return cls(_prefix(_LEAF, f"{table}\0{path}"))

    @property
    def end(self) -> bytes:
        """The least key above all of them."""
        end = above_prefix(self.prefix)
        assert end is not None, "the second byte is not 255"
        return end

    def leaf(self, place: LeafPlace) -> bytes:
        """The key of a leaf."""
        return self.prefix + place.prefix + place.key


@dataclass(frozen=True, slots=True)
class TableKeys:
    """The row keys that record the stored entries of one Hudi table."""

    prefix: bytes

    @classmethod
    def of(cls, table: str) -> "TableKeys":
        """The keys of the table with this URI."""
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
    """The cells of a leaf, by column name."""
    starts = range(0, max(len(body), 1), CHUNK_BYTES)
    return {_chunk(at): body[start : start + CHUNK_BYTES] for at, start in enumerate(starts)}


def joined(cells: dict[bytes, bytes]) -> bytes:
    """The leaf made of these cells, if none is missing."""
    return b"".join(cells[name] for name in sorted(cells))


def _chunk(number: int) -> bytes:
    return FAMILY + b":" + number.to_bytes(2, "big")
