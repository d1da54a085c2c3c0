"""The HBase index type: a B+ tree for each base file whose leaves are rows of an HBase table.

The tree's inner part, small, stays in the entry's packed file: it knows the first key of each leaf,
how many rows there are before it, and its checksum. What a look-up wants lies side by side in
HBase and is had by one short scan; how many rows there are costs HBase nothing; and what was not
written, or is gone or damaged, is noticed by whoever reads it.
"""

from hudi_index_service.index.hbase.index_type import HBaseIndexType

__all__ = ["HBaseIndexType"]
