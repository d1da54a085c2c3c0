"""Answers predicate leaves from a tree whose leaves lie in HBase."""

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
    """The leaves of a packed index, wherever in HBase it says that they are.

    Raises:
        EntryInvalid: it does not say so, or names another table than the settings do.
    """
    try:
        described = json.loads(read_member(index, STORED))
        layout, table = described["layout"], described["table"]
        prefix = bytes.fromhex(described["prefix"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise EntryInvalid(f"{index.path} does not say where its leaves are.") from error
    if layout != LAYOUT:
        raise EntryInvalid(f"{index.path} has layout {layout}, this release reads {LAYOUT}.")
    if table != server.table_name:
        raise EntryInvalid(
            f"{index.path} has its leaves in HBase table {table}, the settings say "
            f"{server.table_name}.",
            remedy="Set hbase.namespace and hbase.table as they were when it was built, or let "
            "`hudi-index verify --repair` build it anew.",
        )
    return HBaseLeaves(server, EntryKeys(prefix))


class HBaseReader(BTreeReader):
    """See `hudi_index_service.index.contract.IndexReader`. Estimates and bounds ask HBase nothing;
    everything else may raise IndexServerUnavailable, after the time that the settings give it."""

    def __init__(
        self, index: PackedIndex, columns: Sequence[StoredColumn], server: HBaseServer
    ) -> None:
        self._remote = stored_leaves(index, server)
        super().__init__(index, columns, self._remote)

    def row_ids(self, leaf: Predicate) -> BitMap:
        """The rows where the leaf is TRUE (or a superset, as `IndexType.answer` says)."""
        with self._remote.one_lookup():
            return super().row_ids(leaf)

    def narrowed(self, leaf: Predicate, rows: BitMap) -> tuple[BitMap, Answer]:
        """By looking all rows up, where these are few."""
        with self._remote.one_lookup():
            return super().narrowed(leaf, rows)

    def sample(self, leaf: Predicate, most: int) -> BitMap:
        """Rows of some leaves, evenly spaced."""
        with self._remote.one_lookup():
            return super().sample(leaf, most)

    def value_counts(self, column: str, among: BitMap | None, most: int) -> dict[str, int] | None:
        """How many rows have each value of a text column; of `among` alone, if given."""
        with self._remote.one_lookup():
            return super().value_counts(column, among, most)
