"""The Lucene index type: one multi-column Lucene index per base file, by PyLucene.

A row is a document; its row id is the document's id, because documents are added in row order and
segments are never merged or reordered. A string column is held as a keyword (the whole value as one
term), and analysed as well when asked; every other type as an order-preserving 64-bit point.
"""

from hudi_index_service.index.lucene.index_type import LuceneIndexType

__all__ = ["LuceneIndexType"]
