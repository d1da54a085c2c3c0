"""The Lucene index type: one multi-column Lucene index per base file, through PyLucene.

A row is a document, and its row id is the document's id, because documents are added in row order
and segments are never merged or reordered. A string column is indexed as a keyword (the whole value
as one term), and optionally as analyzed text; every other type as an order-preserving 64-bit point.
"""

from hudi_index_service.index.lucene.index_type import LuceneIndexType

__all__ = ["LuceneIndexType"]
