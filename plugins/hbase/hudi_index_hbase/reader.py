"""Looks up the leaves of one entry, which are rows of an HBase table, and checks them."""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from threading import local
from time import monotonic
from typing import Any

from pyroaring import BitMap

from hudi_index_hbase.server import HBaseServer
from hudi_index_hbase.store import LAYOUT, STORED, EntryKeys, batches, joined
from hudi_index_service.errors import EntryInvalid
from hudi_index_service.index.btree.check import findings
from hudi_index_service.index.btree.leaf_file import (
    Find,
    LeafStore,
    checked,
    found,
)
from hudi_index_service.index.btree.merge import MergeSource
from hudi_index_service.index.btree.reader import BTreeReader
from hudi_index_service.index.btree.tree import LeafPlace, Leaves, Tree
from hudi_index_service.index.contract import Answer, PackedIndex, StoredColumn
from hudi_index_service.index.files.opened_file import count
from hudi_index_service.index.packed_file import read_member
from hudi_index_service.predicate.expression import Predicate

_LEAST_FOR_SCAN = 32  # adjacent leaves for which a scan, with its three round trips, is faster
_REQUEST_BYTES = 4 * 2**20
_REQUEST_LEAVES = 512


class HBaseReader(BTreeReader):
    """See `hudi_index_service.index.contract.IndexReader`. Estimates and bounds send no request to
    HBase. All other methods may raise IndexServerUnavailable, after the time limit in the
    settings."""

    def __init__(
        self, index: PackedIndex, columns: Sequence[StoredColumn], server: HBaseServer
    ) -> None:
        self._remote = stored_leaves(index, server)
        super().__init__(index, columns, self._remote)

    def row_ids(self, leaf: Predicate) -> BitMap:
        """The rows where the leaf is TRUE, or a superset (see `IndexType.answer`)."""
        with self._remote.one_lookup():
            return super().row_ids(leaf)

    def narrowed(self, leaf: Predicate, rows: BitMap) -> tuple[BitMap, Answer]:
        """Narrows the rows by looking them all up, if they are few."""
        with self._remote.one_lookup():
            return super().narrowed(leaf, rows)

    def value_counts(self, column: str, among: BitMap | None, most: int) -> dict[str, int] | None:
        """The number of rows per value of a text column, counting only `among` if given."""
        with self._remote.one_lookup():
            return super().value_counts(column, among, most)


def check_index(
    index: PackedIndex, columns: Sequence[StoredColumn], server: HBaseServer
) -> list[str]:
    """The defects of the index, one sentence each; see `IndexType.verify`. Fetches all leaves, and
    compares them with each other and the manifest.

    Raises:
        IndexServerUnavailable: HBase does not answer.
    """
    try:
        source = MergeSource(Tree.of(index), stored_leaves(index, server))
        return list(findings(source, index.rows, columns))
    except EntryInvalid as error:
        return [error.message]


def stored_leaves(index: PackedIndex, server: HBaseServer) -> "HBaseLeaves":
    """The HBase leaves that a packed index refers to.

    Raises:
        EntryInvalid: the index lacks the reference, or names another table than the settings.
    """
    try:
        reference = json.loads(read_member(index, STORED))
        layout, table = reference["layout"], reference["table"]
        prefix = bytes.fromhex(reference["prefix"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise EntryInvalid(f"{index.path} does not name the location of its leaves.") from error
    if layout != LAYOUT:
        raise EntryInvalid(f"{index.path} has layout {layout}; this release reads {LAYOUT}.")
    if table != server.table_name:
        raise EntryInvalid(
            f"{index.path} has its leaves in HBase table {table}, but the settings name "
            f"{server.table_name}.",
            remedy="Set hbase.namespace and hbase.table as they were when it was built, or run "
            "`hudi-index verify --repair` to rebuild it.",
        )
    return HBaseLeaves(server, EntryKeys(prefix))


class _Thread(local):
    """The state of one thread's look-up.

    Attributes:
        ahead: Row key → bytes of the leaves fetched in advance.
        deadline: The deadline of the look-up.
    """

    def __init__(self) -> None:
        self.ahead: dict[bytes, bytes] = {}
        self.deadline: float | None = None


class HBaseLeaves(LeafStore):
    """See `hudi_index_service.index.btree.leaf_file.LeafStore`.

    Args:
        server: The server with the leaves.
        keys: The entry's row keys.
    """

    def __init__(self, server: HBaseServer, keys: EntryKeys) -> None:
        self._server = server
        self._keys = keys
        self.source = f"HBase table {server.table_name}"
        self._thread = _Thread()

    @contextmanager
    def one_lookup(self) -> Iterator[None]:
        """Limits all reads of this thread in the block to the time for one look-up."""
        outer = self._thread.deadline
        if outer is None:
            self._thread.deadline = self._deadline()
        try:
            yield
        finally:
            self._thread.deadline = outer
            if outer is None:
                self._thread.ahead = {}

    def neighbors(self, places: list[LeafPlace]) -> list[bytes]:
        """Reads the bytes of leaves; those not fetched by `expect` are fetched together."""
        ahead = self._thread.ahead
        keys = [self._keys.leaf(place) for place in places]
        missing = [place for place, key in zip(places, keys, strict=True) if key not in ahead]
        bodies = self._fetch(missing) if missing else {}
        return [ahead[key] if key in ahead else bodies[key] for key in keys]

    def rows(self, leaves: Leaves, numbers: list[int], find: Find) -> bytes:
        """The row ids that a search finds in packed leaves, which are some of a branch."""
        rows = found(find, self.neighbors([*map(leaves.place, numbers)]), leaves, numbers)
        assert rows is not None, "each leaf has been checked"
        return rows

    def expect(self, places: Iterable[LeafPlace]) -> None:
        """Fetches the leaves together in advance."""
        self._thread.ahead = {}  # leaves expected earlier are no longer needed
        self._thread.ahead = self._fetch(list(places))

    def _deadline(self) -> float:
        return monotonic() + self._server.settings.read_seconds

    def body(self, place: LeafPlace) -> bytes:
        """Reads the bytes of a leaf."""
        key = self._keys.leaf(place)
        body = self._thread.ahead.get(key)
        return self._fetch([place])[key] if body is None else body

    def _fetch(self, places: Sequence[LeafPlace]) -> dict[bytes, bytes]:
        """The leaves' bytes by their row keys.

        Raises:
            EntryInvalid: a leaf is missing or damaged.
            IndexServerUnavailable: HBase does not answer, or not in time.
        """
        bodies: dict[bytes, bytes] = {}
        missing: dict[bytes, LeafPlace] = {}
        for place in places:
            key = self._keys.leaf(place)
            body = self._server.kept.get(key)
            if body is None:
                missing[key] = place
            else:
                bodies[key] = body
        deadline = self._thread.deadline
        if deadline is None:
            deadline = self._deadline()
        for batch in _requests(list(missing.values())):
            cells = self._server.read(self._request(batch), deadline)
            for place in batch:
                key = self._keys.leaf(place)
                if key not in cells:
                    raise EntryInvalid(f"{self.source} lacks the leaf at {place.offset}.")
                count(bytes=len(cells[key]))
                bodies[key] = checked(cells[key], place, self.source)
                self._server.kept.add(key, cells[key])
        return bodies

    def _request(self, places: Sequence[LeafPlace]) -> Any:
        keys = [self._keys.leaf(place) for place in places]

        def request(table: Any) -> dict[bytes, bytes]:
            if len(keys) < _LEAST_FOR_SCAN or not _is_run(places):
                rows = table.rows(keys)
            else:
                rows = table.scan(
                    row_start=keys[0],
                    row_stop=keys[-1] + b"\0",
                    batch_size=len(keys),
                    limit=len(keys),
                )
            return {key: joined(cells) for key, cells in rows}

        return request


def _requests(places: list[LeafPlace]) -> Iterator[list[LeafPlace]]:
    """The leaves of each request: runs of adjacent leaves that are worth a scan, and the other
    leaves, limited in number and bytes."""
    runs: list[list[LeafPlace]] = []
    single: list[LeafPlace] = []
    for run in _runs(sorted(places, key=lambda place: place.offset)):
        if len(run) < _LEAST_FOR_SCAN:
            single += run
        else:
            runs.append(run)
    for group in (*runs, single):
        yield from batches(group, lambda place: place.length, _REQUEST_LEAVES, _REQUEST_BYTES)


def _runs(places: Sequence[LeafPlace]) -> Iterator[list[LeafPlace]]:
    run: list[LeafPlace] = []
    for place in places:
        if run and place.offset != run[-1].offset + run[-1].length:
            yield run
            run = []
        run.append(place)
    if run:
        yield run


def _is_run(places: Sequence[LeafPlace]) -> bool:
    return len(list(_runs(places))) == 1
