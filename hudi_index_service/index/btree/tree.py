"""The inner part of the tree: an LMDB file that maps first keys to the places of leaves.

A key in LMDB is the number of the column (two bytes), the branch (one byte: the rows where the
column is NULL, the arrays with a NULL element, or values), and, for values, the key itself. The
last key of all holds the description of the columns.

LMDB maps its file into memory and trusts it, so that a damaged file could end the process. The file
is therefore stored compressed, checked before it is unpacked, and unpacked into an unnamed file of
this process, which no other process can change. A forked process unpacks its own copy. See
`Environment` in LMDB's documentation, "Caveats".
"""

import json
import os
import struct
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from enum import IntEnum
from mmap import PAGESIZE
from pathlib import Path
from typing import Any, NamedTuple

import lmdb
import pyarrow as pa

from hudi_index_service.errors import EntryInvalid, StorageFailed
from hudi_index_service.index.btree.keys import LONGEST_KEY

LAYOUT = 1

LEAF = struct.Struct("<BQIIQIQ")
"""What the tree says of a leaf: the fields of a `LeafPlace` but its key. See docs/format.md."""

_DESCRIPTION = b"\xff\xff\xff"
_PREFIX = struct.Struct(">HB")
_SLACK = 64  # pages in addition to those for the leaves' keys: inner ones, and LMDB's own
_LENGTH = struct.Struct("<Q")
_CODEC = "zstd"
_FILES = 20  # new files to try


class Branch(IntEnum):
    """The part of a column that lies below an inner key."""

    NULLS = 0
    NULL_ELEMENTS = 1
    VALUES = 2


class LeafPlace(NamedTuple):
    """The place of a leaf, and the facts about it that the tree holds.

    Attributes:
        key: The first key; for a set, the only one.
        is_set: Whether it is a set of rows, else a packed leaf.
        offset: Its start among the bytes of all leaves.
        length: Its length in bytes.
        crc32: The checksum of its bytes.
        rows: The number of its rows: pairs of a key and a row id.
        keys: The number of its keys.
        before: The number of rows in the leaves of the same branch before this one.
        prefix: The bytes before its key in the tree: the number of its column, and its branch.
    """

    key: bytes
    is_set: bool
    offset: int
    length: int
    crc32: int
    rows: int
    keys: int
    before: int
    prefix: bytes


@dataclass(frozen=True, slots=True)
class Description:
    """What a tree holds: the rows that it covers, and its columns (whether their keys are numbers)
    in the order of their numbers."""

    rows: int
    columns: Mapping[str, bool]


def write_tree(
    path: Path, leaves: Sequence[tuple[int, Branch, LeafPlace]], description: Description
) -> None:
    """Writes the compressed tree to `path`; the leaves come in the order of column, branch, key."""
    last = json.dumps(
        {"layout": LAYOUT, "rows": description.rows, "columns": list(description.columns.items())}
    ).encode()
    entry_bytes = sum(len(leaf.key) + LEAF.size + 16 for _, _, leaf in leaves) + len(last)
    size = PAGESIZE * (2 * entry_bytes // PAGESIZE + _SLACK)
    with ExitStack() as files:
        plain, environment = _new_environment(path, size, files)
        try:
            with environment.begin(write=True) as transaction:
                for column, branch, leaf in leaves:
                    key = branch_prefix(column, branch) + leaf.key
                    transaction.put(key, _pack(leaf), append=True)
                transaction.put(_DESCRIPTION, last, append=True)
        finally:
            environment.close()
        content = plain.read_bytes()
    path.write_bytes(_LENGTH.pack(len(content)) + pa.compress(content, codec=_CODEC, asbytes=True))


def _new_environment(beside: Path, size: int, files: ExitStack) -> tuple[Path, Any]:
    """A new environment to write to, and its file, which is deleted when `files` ends."""

    def new_file(number: int) -> Path:
        plain = beside.with_name(f"{beside.name}.{number}.mdb")
        files.callback(plain.unlink, missing_ok=True)
        return plain

    return _in_new_file(new_file, map_size=size, lock=False, sync=False, metasync=False)


def _in_new_file(new_file: Callable[[int], Path], **options: Any) -> tuple[Path, Any]:
    """An environment in a new file, and the file.

    LMDB identifies files by their inodes. A new file can have the inode of a file that another
    thread is just closing, and LMDB takes it for that file. While the new file exists, the next one
    has another inode.
    """
    for number in range(_FILES):
        file = new_file(number)
        try:
            return file, lmdb.open(str(file), subdir=False, **options)
        except lmdb.Error as error:
            if "already open" not in str(error):
                raise
    raise StorageFailed(
        "A btree index cannot be opened: LMDB takes every new file for one that is open already.",
        remedy="Try again, with less running at once on this machine.",
    )


def _pack(leaf: LeafPlace) -> bytes:
    return LEAF.pack(
        leaf.is_set, leaf.offset, leaf.length, leaf.crc32, leaf.rows, leaf.keys, leaf.before
    )


def branch_prefix(column: int, branch: Branch) -> bytes:
    """The prefix of a branch's keys, in the order of columns and branches."""
    return _PREFIX.pack(column, branch)


def _unpack(prefix: bytes, key: bytes, value: bytes) -> LeafPlace:
    if len(value) != LEAF.size:
        raise EntryInvalid("A btree index holds data other than leaves.")
    is_set, offset, length, crc32, rows, keys, before = LEAF.unpack(value)
    return LeafPlace(key, bool(is_set), offset, length, crc32, rows, keys, before, prefix)


class Tree:
    """An open tree. Safe to use from several threads, and in forked processes.

    Args:
        load: Returns the bytes that `write_tree` wrote, checked; called once in each process, for
            the first look-up.
    """

    def __init__(self, load: Callable[[], bytes]) -> None:
        self._load = load
        self._environments: dict[int, Any] = {}

    def leaves(
        self, column: int, branch: Branch, low: bytes = b"", high: bytes | None = None
    ) -> Iterator[LeafPlace]:
        """The leaves that may hold keys from `low` on and below `high` (None: no bound)."""
        with self._transaction() as transaction, transaction.cursor() as cursor:
            yield from _between(cursor, branch_prefix(column, branch), low, high)

    def places(
        self, column: int, ranges: Sequence[tuple[bytes, bytes | None]]
    ) -> list[list[LeafPlace]]:
        """The leaves of values for each of several ranges."""
        prefix = branch_prefix(column, Branch.VALUES)
        with self._transaction() as transaction, transaction.cursor() as cursor:
            return [_places(cursor, prefix, low, high) for low, high in ranges]

    def floors(self, column: int, keys: Iterable[bytes]) -> list[LeafPlace | None]:
        """For each key, the last leaf of values whose first key is not above it."""
        prefix = branch_prefix(column, Branch.VALUES)
        with self._transaction() as transaction, transaction.cursor() as cursor:
            return [_floor(cursor, prefix, key) for key in keys]

    def description(self) -> Description:
        """What the tree holds.

        Raises:
            EntryInvalid: it is damaged, or was written by a newer release.
        """
        with self._transaction() as transaction:
            content = transaction.get(_DESCRIPTION)
        try:
            fields = json.loads(content or b"")
            layout, rows, columns = fields["layout"], int(fields["rows"]), dict(fields["columns"])
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise EntryInvalid("A btree index lacks its description.") from error
        if layout != LAYOUT:
            raise EntryInvalid(f"A btree index has layout {layout}; this release reads {LAYOUT}.")
        return Description(rows, columns)

    def close(self) -> None:
        """Closes the file."""
        environment = self._environments.pop(os.getpid(), None)
        if environment is not None:
            environment.close()

    def _transaction(self) -> Any:
        process = os.getpid()
        environment = self._environments.get(process)
        if environment is None:
            # Two threads may both open one; then only one of them is kept.
            new = _open_environment(self._load())
            environment = self._environments.setdefault(process, new)
        try:
            return environment.begin()
        except lmdb.Error as error:
            raise EntryInvalid(f"A btree index cannot be read: {error}.") from error


def _floor(cursor: Any, prefix: bytes, key: bytes) -> LeafPlace | None:
    if not _seek(cursor, prefix, key):
        return None
    inner_key = cursor.key()
    if not inner_key.startswith(prefix) or inner_key[_PREFIX.size :] > key:
        return None
    return _unpack(prefix, inner_key[_PREFIX.size :], cursor.value())


def _places(cursor: Any, prefix: bytes, low: bytes, high: bytes | None) -> list[LeafPlace]:
    if high == low + b"\0":  # a single key is in one leaf alone
        place = _floor(cursor, prefix, low)
        return [] if place is None else [place]
    return list(_between(cursor, prefix, low, high))


def _between(cursor: Any, prefix: bytes, low: bytes, high: bytes | None) -> Iterator[LeafPlace]:
    if not _seek(cursor, prefix, low):
        return
    for key, value in cursor.iternext():
        first = key[_PREFIX.size :]
        if not key.startswith(prefix) or (high is not None and first >= high):
            return
        yield _unpack(prefix, first, value)


def _seek(cursor: Any, prefix: bytes, key: bytes) -> bool:
    """Moves the cursor to the last leaf of the branch whose first key is not above the given one,
    else to its first leaf; False if there is nothing."""
    target = (prefix + key)[:LONGEST_KEY]
    if cursor.set_range(target):
        if cursor.key() == target:
            return True
        if cursor.prev() and cursor.key().startswith(prefix):
            return True
        return bool(cursor.set_range(prefix))
    return False  # the description comes last: there is nothing at all


def _open_environment(packed: bytes) -> Any:
    """Unpacks a tree, and opens it."""
    try:
        (length,) = _LENGTH.unpack_from(packed)
        content = pa.decompress(packed[_LENGTH.size :], decompressed_size=length, codec=_CODEC)
    except (OSError, ValueError, struct.error, MemoryError) as error:
        raise EntryInvalid("A btree index cannot be unpacked.") from error
    try:
        with ExitStack() as files:

            def new_file(_: int) -> Path:
                file = files.enter_context(tempfile.NamedTemporaryFile(prefix="hudi-index-btree-"))
                file.write(content)
                file.flush()
                return Path(file.name)

            _, environment = _in_new_file(
                new_file, readonly=True, lock=False, create=False, max_spare_txns=8
            )
            return environment
    except lmdb.Error as error:
        raise EntryInvalid(f"A btree index cannot be opened: {error}.") from error
    except OSError as error:
        raise StorageFailed(
            f"A btree index cannot be unpacked into {tempfile.gettempdir()}: {error.strerror}.",
            remedy="Set TMPDIR to a writable folder with free space.",
        ) from error
