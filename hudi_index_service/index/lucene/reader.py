"""Answers predicate leaves from a packed Lucene index."""

from array import array
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from threading import Lock
from typing import Any

import numpy as np
from pyroaring import BitMap

from hudi_index_service.errors import EntryInvalid
from hudi_index_service.index.contract import PackedIndex, RankedRows, StoredColumn
from hudi_index_service.index.lucene import jvm
from hudi_index_service.index.lucene.directory import packed_directory
from hudi_index_service.index.lucene.fields import is_array
from hudi_index_service.index.lucene.lookup import (
    Lookup,
    lookup,
    null_elements_of,
    nulls_of,
)
from hudi_index_service.index.lucene.queries import to_query
from hudi_index_service.index.lucene.ranking import LuceneRankedRows, holds_ranking
from hudi_index_service.index.lucene.search import Search
from hudi_index_service.predicate.expression import Match, Predicate

_FIRST_BUFFER = 4096  # row ids; doubled up to what is needed when a query has more


class LuceneReader:
    """See `hudi_index_service.index.contract.IndexReader`."""

    def __init__(self, index: PackedIndex, columns: Sequence[StoredColumn]) -> None:
        jvm.attach()
        from org.apache.lucene.index import DirectoryReader
        from org.apache.lucene.search import IndexSearcher

        self._path = index.path
        self._rows = index.rows
        self._columns = {column.name: column for column in columns}
        self._nulls: dict[str, BitMap] = {}
        self._lock = Lock()
        with _damage_named(self._path), ExitStack() as opened:
            self._directory = packed_directory(index)
            opened.callback(self._directory.close)
            self._reader: Any = DirectoryReader.open(self._directory)
            opened.callback(self._reader.close)
            if self._reader.maxDoc() != self._rows:
                raise EntryInvalid(
                    f"{self._path} holds {self._reader.maxDoc()} rows, not {self._rows}."
                )
            self._searcher = IndexSearcher(self._reader)
            self._searcher.setQueryCache(None)
            opened.pop_all()

    def row_ids(self, leaf: Predicate) -> BitMap:
        """The rows where the leaf is TRUE (or a superset, as `IndexType.answer` says)."""
        found = self._lookup(leaf)
        with _damage_named(self._path):
            rows = self._collect(found.search)
            if not found.complement:
                return rows
            rest = BitMap(range(self._rows)) - rows
            return rest - self._null_rows(found.column) if found.without_null else rest

    def estimate(self, leaf: Predicate) -> int:
        """Lucene's own cost of the leaf's query: an upper bound for terms, near it for points."""
        found = self._lookup(leaf)
        with _damage_named(self._path):
            from hudiindex import RowIds

            cost = min(int(RowIds.cost(self._searcher, to_query(found.search))), self._rows)
        return self._rows - cost if found.complement else cost

    def ranked(self, match: Match) -> RankedRows | None:
        """The rows, to be scored; None if the entry lacks what scores need."""
        stored = self._columns.get(match.column.name)
        if stored is None or not holds_ranking(stored.fields, match):
            return None
        return LuceneRankedRows(self._searcher, match)

    def _lookup(self, leaf: Predicate) -> Lookup:
        found = lookup(leaf, self._columns)
        if found is None:
            raise ValueError(f"This index does not answer {leaf}: ask IndexType.answer first.")
        return found

    def close(self) -> None:
        """Closes the index."""
        jvm.attach()
        with self._lock:
            if self._reader is not None:
                self._reader.close()
                self._directory.close()
                self._reader = None

    def _null_rows(self, column: str) -> BitMap:
        """The rows where the column is NULL, or an array that has an element which is."""
        stored = self._columns[column]
        if column not in self._nulls:
            rows = self._collect(nulls_of(column)) if stored.statistics.null_count else BitMap()
            if is_array(stored.type):
                rows |= self._collect(null_elements_of(column))
            self._nulls[column] = rows
        return self._nulls[column]

    def _collect(self, search: Search) -> BitMap:
        from hudiindex import RowIds

        query = to_query(search)
        buffer = np.empty(min(_FIRST_BUFFER, max(1, self._rows)), dtype=np.uint32)
        found = int(RowIds.into(self._searcher, query, buffer.ctypes.data, len(buffer)))
        if found < 0:
            buffer = np.empty(-1 - found, dtype=np.uint32)
            found = int(RowIds.into(self._searcher, query, buffer.ctypes.data, len(buffer)))
        return BitMap(array("I", buffer[:found].tobytes()))  # the fastest way into a bitmap


@contextmanager
def _damage_named(path: object) -> Iterator[None]:
    """Turns Java's errors while reading an index into EntryInvalid."""
    lucene = jvm.attach()
    try:
        yield
    except lucene.JavaError as error:
        first = str(error).split("\n", 1)[0]
        raise EntryInvalid(f"{path} cannot be read: {first}.") from error
