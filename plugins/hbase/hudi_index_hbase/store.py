"""The rows of the HBase table: their keys, and how entries are stored, listed and removed.

A key begins with a byte that spreads entries over the table (the salt) and a byte for the kind of
row. All leaves of an entry are adjacent, in the order of columns, branches and keys:

    salt | 1 | entry, 16 bytes | column, 2 bytes | branch, 1 byte | first key    a leaf
    salt | 0 | table, 16 bytes | path of the data file                           an entry is stored

An entry is identified by a hash of its table's URI and its data file's path below it, which no
other entry or generation ever shares. The salt is a hash of the same, so that base files built at
the same time are written to different regions, wherever these are split.

The row that an entry is stored is written before its first leaf and deleted after its last one. So
these rows cover everything that a killed builder or removal leaves in HBase.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from time import time
from typing import Any, TypeVar

from hudi_index_hbase.server import HBaseServer
from hudi_index_service.errors import EntryInvalid, IndexServerUnavailable
from hudi_index_service.index.btree.leaf_file import LEAVES, checked
from hudi_index_service.index.btree.tree import TREE, Branch, LeafPlace, Tree
from hudi_index_service.index.contract import FileRange
from hudi_index_service.predicate.bounds import above_prefix

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

STORED = "stored"
"""The packed file that leads a reader to the leaves."""

LAYOUT = 1

# Leaves are read by their whole keys, and their bytes are already compressed.
_FAMILY_OPTIONS = {"max_versions": 1, "bloom_filter_type": "ROW", "block_cache_enabled": True}

_LISTING_ROWS = 2_000  # row keys at a time
_CHECKS = 3  # checks of what was written, each followed by a rewrite of what is missing

T = TypeVar("T")

FilesToPack = Mapping[str, Path | FileRange | bytes]


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


class EntryStore:
    """The entries of one Hudi table.

    Args:
        server: The server that stores the entries.
        table: The URI of the Hudi table.
    """

    def __init__(self, server: HBaseServer, table: str) -> None:
        self._server = server
        self._uri = table
        self._catalog = TableKeys.of(table)

    def store(self, files: Mapping[str, Path | FileRange | bytes], path: str) -> FilesToPack:
        """Writes the leaves of a whole tree in batches, each retried if it fails. Leaves of the
        same tree that an earlier attempt for the same data file wrote are not written again.

        Args:
            files: The tree's files by name.
            path: The path of the new entry's data file.

        Returns:
            The files to pack: the tree's inner part, and the location of the leaves.

        Raises:
            IndexServerUnavailable: HBase did not accept the leaves.
            EntryInvalid: the files are damaged.
        """
        tree_bytes = _content(files[TREE])
        places = list(_all_leaves(Tree(lambda: tree_bytes)))
        keys = EntryKeys.of(self._uri, path)
        content = hashlib.sha256(tree_bytes).hexdigest()
        if self._server.settings.create_table:
            self._server.make_table({FAMILY.decode(): _FAMILY_OPTIONS})
        leaves = files[LEAVES]
        assert not isinstance(leaves, bytes), "B+ trees are built on the disk"
        self._put_all(leaves, places, keys, path, content)
        reference = {
            "layout": LAYOUT,
            "table": self._server.table_name,
            "prefix": keys.prefix.hex(),
            "leaves": len(places),
            "bytes": sum(place.length for place in places),
        }
        return {TREE: files[TREE], STORED: json.dumps(reference).encode()}

    def _put_all(
        self,
        leaves: Path | FileRange,
        places: Sequence[LeafPlace],
        keys: EntryKeys,
        path: str,
        content: str,
    ) -> None:
        row = self._catalog.entry(path)
        record = self._server.write(lambda table: table.row(row))
        leaf_of_key = {keys.leaf(place): place for place in places}
        present: set[bytes] = set()
        if record:
            present = set(self._keys(keys))
            if record.get(CONTENT, b"").decode() != content:
                self._delete(present - leaf_of_key.keys())
                present = set()
        complete = str(len(places)).encode()
        if not record or record.get(CONTENT, b"").decode() != content:
            cells = {
                URI: self._uri.encode(),
                BEGUN: repr(time()).encode(),
                CONTENT: content.encode(),
                DONE: b"",
            }
            self._server.write(_puts([(row, cells)]))
        for _ in range(_CHECKS):
            missing = [place for key, place in leaf_of_key.items() if key not in present]
            if not missing:
                break
            for batch in batches(
                _bodies(leaves, missing),
                lambda leaf: len(leaf[1]),
                self._server.settings.batch_rows,
                self._server.settings.batch_kb * 1024,
            ):
                self._server.write(_puts([(keys.leaf(at), chunks(body)) for at, body in batch]))
            # A delete marker hides cells written in the same millisecond, or by a slower clock.
            present = set(self._keys(keys))
        if leaf_of_key.keys() - present:
            count = len(present & leaf_of_key.keys())
            raise self._unfinished(f"shows {count} of {len(leaf_of_key)} leaves that were written")
        self._server.write(_puts([(row, {DONE: complete})]))

    def stored(self) -> dict[str, float]:
        """The data files whose entries are stored, completely or not, and when storing began."""
        prefix = self._catalog.prefix

        def scan_entries(table: Any) -> list[tuple[bytes, dict[bytes, bytes]]]:
            return list(table.scan(row_prefix=prefix, columns=[BEGUN, URI]))

        if not self._server.has_table():
            return {}
        return {
            self._catalog.path(key): _moment(cells)
            for key, cells in self._server.write(scan_entries)
            if cells.get(URI, b"").decode() == self._uri
        }

    def destroy(self, paths: Iterable[str]) -> None:
        """Removes the leaves of these entries, and then their rows in the catalog.

        Raises:
            IndexServerUnavailable: HBase did not remove them.
        """
        paths = list(paths)
        if not paths or not self._server.has_table():
            return
        for path in paths:
            keys = EntryKeys.of(self._uri, path)
            for _ in range(_CHECKS):
                present = list(self._keys(keys))
                if not present:
                    break
                self._delete(present)
            else:
                # A delete marker does not hide cells with a later timestamp, from a faster clock.
                if any(self._keys(keys)):
                    raise self._unfinished(f"still has leaves of {path} that were removed")
            self._delete([self._catalog.entry(path)])

    def _unfinished(self, problem: str) -> IndexServerUnavailable:
        return IndexServerUnavailable(
            f"HBase at {self._server.name}, table {self._server.table_name}, {problem}.",
            remedy="Make sure that the clocks of HBase's region servers agree; the next build or "
            "clean tries again.",
        )

    def _keys(self, keys: EntryKeys) -> Iterator[bytes]:
        """The row keys of an entry's stored leaves: one range of the table."""
        start = keys.prefix
        while True:
            batch = self._server.write(_listing(start, keys.end))
            yield from batch
            if len(batch) < _LISTING_ROWS:
                return
            start = batch[-1] + b"\0"

    def _delete(self, keys: Iterable[bytes]) -> None:
        remaining = iter(keys)
        while batch := list(islice(remaining, _LISTING_ROWS)):
            self._server.write(_deletes(batch))


def _bodies(
    leaves: Path | FileRange, places: Iterable[LeafPlace]
) -> Iterator[tuple[LeafPlace, bytes]]:
    """The leaves' bytes in the builder's file, checked."""
    path, start = (leaves.path, leaves.offset) if isinstance(leaves, FileRange) else (leaves, 0)
    with path.open("rb") as file:
        for place in places:
            body = os.pread(file.fileno(), place.length, start + place.offset)
            yield place, checked(body, place, str(path))


def _moment(cells: Mapping[bytes, bytes]) -> float:
    """When storing began; 0 if that is unknown."""
    try:
        return float(cells.get(BEGUN, b""))
    except ValueError:
        return 0.0


def _content(file: Path | FileRange | bytes) -> bytes:
    if isinstance(file, bytes):
        return file
    if isinstance(file, Path):
        return file.read_bytes()
    with file.path.open("rb") as stream:
        content = os.pread(stream.fileno(), file.length, file.offset)
    if len(content) != file.length:
        raise EntryInvalid(f"{file.path} ends before byte {file.offset + file.length}.")
    return content


def _all_leaves(tree: Tree) -> Iterator[LeafPlace]:
    """All leaves, in the order of their keys in HBase."""
    for column in range(len(tree.description().columns)):
        for branch in Branch:
            yield from tree.leaves(column, branch)


Rows = list[tuple[bytes, dict[bytes, bytes]]]


def batches(
    items: Iterable[T], size_of: Callable[[T], int], most: int, most_bytes: int
) -> Iterator[list[T]]:
    """The items in batches that are limited in number and bytes; an item may be larger."""
    batch: list[T] = []
    size = 0
    for item in items:
        if batch and (len(batch) == most or size + size_of(item) > most_bytes):
            yield batch
            batch, size = [], 0
        batch.append(item)
        size += size_of(item)
    if batch:
        yield batch


def _puts(rows: Rows) -> Callable[[Any], None]:
    def request(table: Any) -> None:
        batch = table.batch()
        for key, cells in rows:
            batch.put(key, cells)
        batch.send()

    return request


def _deletes(keys: Sequence[bytes]) -> Callable[[Any], None]:
    def request(table: Any) -> None:
        batch = table.batch()
        for key in keys:
            batch.delete(key, columns=[FAMILY])
        batch.send()

    return request


def _listing(start: bytes, end: bytes) -> Callable[[Any], list[bytes]]:
    def request(table: Any) -> list[bytes]:
        rows = table.scan(
            row_start=start,
            row_stop=end,
            filter=b"FirstKeyOnlyFilter() AND KeyOnlyFilter()",
            batch_size=_LISTING_ROWS,
            limit=_LISTING_ROWS,
        )
        return [key for key, _ in rows]

    return request
