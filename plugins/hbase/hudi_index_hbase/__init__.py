"""The HBase index type: a B+ tree per base file whose leaves are rows of an HBase table.

The small inner part of the tree stays in the entry's packed file: for each leaf, its first key, the
number of rows before it, and its checksum. The leaves of a look-up are adjacent in HBase, so one
short scan reads them. Row counts need no request to HBase. A reader detects leaves that are
missing or damaged.
"""

from hudi_index_hbase.index_type import HBaseIndexType

__all__ = ["HBaseIndexType"]
