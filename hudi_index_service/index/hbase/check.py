"""Verifies a stored tree: fetches all its leaves from HBase, and compares them with each other and
the manifest."""

from collections.abc import Sequence

from hudi_index_service.errors import EntryInvalid
from hudi_index_service.index.btree.check import findings
from hudi_index_service.index.btree.leaf_file import TREE
from hudi_index_service.index.btree.tree import Tree
from hudi_index_service.index.btree.writing.merge import MergeSource
from hudi_index_service.index.contract import PackedIndex, StoredColumn
from hudi_index_service.index.hbase.reader import stored_leaves
from hudi_index_service.index.hbase.server import HBaseServer
from hudi_index_service.index.packed_file import read_member


def check_index(
    index: PackedIndex, columns: Sequence[StoredColumn], server: HBaseServer
) -> list[str]:
    """The defects of the index, one sentence each; see `IndexType.verify`.

    Raises:
        IndexServerUnavailable: HBase does not answer.
    """
    tree = Tree(lambda: read_member(index, TREE))
    try:
        source = MergeSource(tree, stored_leaves(index, server), tree.description())
        if source.description.rows != index.rows:
            return [f"{index.path} holds {source.description.rows} rows."]
        return list(findings(source, index.rows, columns))
    except EntryInvalid as error:
        return [error.message]
