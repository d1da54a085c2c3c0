"""The B+ tree index type: one LMDB file per base file, for all its columns.

The inner part of the tree, in LMDB, holds the first key of each leaf. The leaves are next to it in
the entry's packed file, so that a reader fetches and checks only those that it needs. A leaf holds
some thousand rows in the order of their values, or one value with the compressed set of its rows.
"""

from hudi_index_service.index.btree.index_type import BTreeIndexType

__all__ = ["BTreeIndexType"]
