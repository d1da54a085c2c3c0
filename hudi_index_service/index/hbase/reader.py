"""Answers predicate leaves from a tree whose leaves are stored in HBase."""

import json
from collections.abc import Sequence

from pyroaring import BitMap

from hudi_index_service.errors import EntryInvalid
from hudi_index_service.index.btree.reader import BTreeReader
from hudi_index_service.index.contract import Answer, PackedIndex, StoredColumn
from hudi_index_service.index.hbase.leaves import HBaseLeaves
from hudi_index_service.index.hbase.row_keys import EntryKeys
from hudi_index_service.index.hbase.server import HBaseServer
from hudi_index_service.index.hbase.store import LAYOUT, STORED
from hudi_index_service.index.packed_file import read_member
from hudi_index_service.predicate.expression import Predicate


def stored_leaves(index: PackedIndex, server: HBaseServer) -> HBaseLeaves:
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

    def sample(self, leaf: Predicate, most: int) -> BitMap:
        """Rows of some evenly spaced leaves."""
        with self._remote.one_lookup():
            return super().sample(leaf, most)

    def value_counts(self, column: str, among: BitMap | None, most: int) -> dict[str, int] | None:
        """The number of rows per value of a text column, counting only `among` if given."""
        with self._remote.one_lookup():
            return super().value_counts(column, among, most)
