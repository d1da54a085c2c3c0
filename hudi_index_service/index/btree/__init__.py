"""The B+ tree index type: trees of one base file's columns, or of several columns together.

The inner part of the trees holds the first key of each leaf. The leaves are next to it in the
entry's packed file, so that a reader fetches and checks only those that it needs. A leaf holds
some thousand rows in the order of their values, or one value with the compressed set of its rows.
"""

from hudi_index_service.index.btree.index_type import BTreeIndexType

__all__ = ["BTreeIndexType"]
