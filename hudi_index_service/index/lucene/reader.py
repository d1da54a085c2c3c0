"""Answers predicate leaves from a packed Lucene index."""

from array import array
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from itertools import accumulate, compress
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

from hudi_index_service.cancellation import check
from hudi_index_service.errors import EntryInvalid
from hudi_index_service.index.contract import (
    Answer,
    IndexReader,
    PackedIndex,
    Positions,
    RankedRows,
    StoredColumn,
    Truths,
)
from hudi_index_service.index.leaf_lookup import LookupReader, LookupReaders, row_sets
from hudi_index_service.index.lucene import jvm
from hudi_index_service.index.lucene.directory import packed_directory
from hudi_index_service.index.lucene.fields import KEYWORD, NUMBER, lucene_field
from hudi_index_service.index.lucene.full_text import LuceneRankedRows, holds_ranking
from hudi_index_service.index.lucene.lookup import (
    LuceneLookup,
    known_lookup,
    lookup_by_words,
    lookup_of_a_row,
    null_elements_of,
)
from hudi_index_service.index.lucene.queries import to_query
from hudi_index_service.index.lucene.search import (
    AllOf,
    PointRange,
    Points,
    Search,
    Terms,
    Words,
)
from hudi_index_service.index.routed import Routed
from hudi_index_service.index.stored_column import is_array
from hudi_index_service.predicate.comparison import is_string
from hudi_index_service.predicate.expression import In, Match, MatchMode, Predicate

_FIRST_BUFFER = 2**20  # row ids; memory costs nothing until it is written to
_ANY_NUMBER = 2**63 - 1
_ALWAYS = "the number of steps is unlimited"
_SHORT_LIST = 64
_MOST_TERMS = 1_024  # terms whose row counts are read: some tenths of a millisecond
_LOW_HALF = 2**32 - 1


class LuceneReader(LookupReader[Search]):
    """See `hudi_index_service.index.contract.IndexReader`."""

    def __init__(self, index: PackedIndex, columns: Sequence[StoredColumn]) -> None:
        jvm.attach()
        from org.apache.lucene.index import DirectoryReader
        from org.apache.lucene.search import IndexSearcher

        super().__init__(known_lookup, index.rows, columns, is_local=index.blocks is None)
        self._path = index.path
        self._lock = Lock()
        with jvm.damage_named(self._path), ExitStack() as stack:
            self._directory = packed_directory(index)
            stack.callback(self._directory.close)
            self._reader: Any = DirectoryReader.open(self._directory)
            stack.callback(self._reader.close)
            if self._reader.maxDoc() != self.rows:
                raise EntryInvalid(
                    f"{self._path} holds {self._reader.maxDoc()} rows, not {self.rows}."
                )
            self._searcher = IndexSearcher(self._reader)
            self._searcher.setQueryCache(None)
            stack.pop_all()

    def row_ids(self, leaf: Predicate) -> BitMap:
        """The rows where the leaf is TRUE, or a superset (see `IndexType.answer`)."""
        with jvm.damage_named(self._path):
            rows = self._find(self._lookup(leaf), _ANY_NUMBER)
        assert rows is not None, _ALWAYS
        return rows

    def candidates(self, leaf: Predicate, most: int | None) -> BitMap | None:
        """The rows of `row_ids` or, if cheaper for LIKE and RLIKE, the rows with a word that every
        match contains."""
        lookup, by_words = self._lookup(leaf), lookup_by_words(leaf, self.columns)
        with jvm.damage_named(self._path):
            if by_words is not None:
                lookup = min(lookup, by_words, key=self._estimate_found)
            return self._find(lookup, _ANY_NUMBER if most is None else most)

    def narrowed(self, leaf: Predicate, rows: BitMap) -> tuple[BitMap, Answer]:
        """Checks each row against the words of a text, or a single term."""
        lookup = lookup_of_a_row(leaf, self.columns)
        if lookup is None:
            return rows, Answer.NONE
        with jvm.damage_named(self._path):
            hit = self._among(rows, lookup.search)
            return self._others(lookup, rows, hit) if lookup.complement else hit, lookup.answer

    def estimate(self, leaf: Predicate) -> int:
        """Lucene's own cost of the leaf's query. It is at most the number of rows of its terms, or
        about the number of rows of a range of numbers. For a range of terms, it assumes that rows
        are spread evenly over terms."""
        with jvm.damage_named(self._path):
            return super().estimate(leaf)

    def steps(self, leaf: Predicate) -> int:
        """See `IndexReader`."""
        from hudiindex import RowIds

        with jvm.damage_named(self._path):
            query = to_query(self._lookup(leaf).search)
            return int(RowIds.steps(self._searcher, query))

    def row_bounds(self, leaf: Predicate) -> tuple[int, int]:
        """Bounds from the terms' row counts, and from the points' tree along the paths to both ends
        of a range."""
        with jvm.damage_named(self._path):
            return super().row_bounds(leaf)

    def _found_bounds(self, lookup: LuceneLookup) -> tuple[int, int]:
        # The leaves at the ends of a range are read too, for exact numbers, if they are local.
        from hudiindex import RowBounds

        query = to_query(lookup.search)
        both = int(RowBounds.of(self._searcher, query, _MOST_TERMS, self.is_local))
        return both >> 32, both & _LOW_HALF

    def ranked(self, match: Match) -> RankedRows | None:
        """The matching rows, ready to be scored; None if the entry lacks the data for scores."""
        column = self.columns.get(match.column.name)
        if column is None or not holds_ranking(column.fields, match):
            return None
        return LuceneRankedRows(self._searcher, match, self._path)

    def value_counts(self, column: str, among: BitMap | None, most: int) -> dict[str, int] | None:
        """The number of rows per value of a text column, counting only `among` if given: from the
        terms and their postings alone."""
        stored = self.columns[column]
        if not is_string(stored.type) or KEYWORD not in stored.fields or stored.truncated:
            return None  # the terms are not the values
        with jvm.damage_named(self._path):
            return self._term_counts(lucene_field(KEYWORD, column), among, most)

    def _term_counts(self, field: str, among: BitMap | None, most: int) -> dict[str, int] | None:
        from org.apache.lucene.index import MultiTerms
        from org.apache.lucene.util import BytesRefIterator

        terms = MultiTerms.getTerms(self._reader, field)
        if terms is None:  # every value is NULL
            return {}
        terms_enum = terms.iterator()
        values = BytesRefIterator.cast_(terms_enum)
        counts: dict[str, int] = {}
        values_read = 0
        while (term := values.next()) is not None:
            values_read += 1
            if values_read > most:
                return None
            check()
            # Java would make other characters of bytes that are not UTF-8.
            text = bytes.fromhex(str(term.toString())[1:-1])
            try:
                value = text.decode()
            except UnicodeDecodeError:
                return None
            if among is None:
                counts[value] = int(terms_enum.docFreq())
            elif count := self._collect(Terms(field, (text,))).intersection_cardinality(among):
                counts[value] = count
        return counts

    def close(self) -> None:
        """Closes the index."""
        jvm.attach()
        with self._lock:
            if self._reader is not None:
                self._reader.close()
                self._directory.close()
                self._reader = None

    def _find_nulls(self, column: StoredColumn) -> BitMap:
        rows = BitMap()
        if column.null_count:
            rows |= self._collect(known_lookup.nulls(column.name))
        if is_array(column.type):
            rows |= self._collect(null_elements_of(column.name))
        return rows

    def _collect(self, search: Search) -> BitMap:
        rows = self._collect_within(search, _ANY_NUMBER)
        assert rows is not None, _ALWAYS
        return rows

    def _find(self, lookup: LuceneLookup, most: int) -> BitMap | None:
        """The rows of a look-up; None if that would take more than `most` steps."""
        found = self._collect_within(lookup.search, most)
        if found is None or not lookup.complement:
            return found
        return self._others(lookup, BitMap(range(self.rows)), found)

    def _among(self, rows: BitMap, search: Search) -> BitMap:
        """The given rows that a search finds, by checking each row."""
        from hudiindex import RowIds

        ids = np.frombuffer(rows.to_array(), dtype=np.uint32).copy()
        at = ids.ctypes.data
        count = int(RowIds.among(self._searcher, to_query(search), at, len(ids), at))
        return BitMap(array("I", ids[:count].tobytes()))

    def _estimate_found(self, lookup: LuceneLookup) -> int:
        from hudiindex import RowIds

        return min(int(RowIds.cost(self._searcher, to_query(lookup.search))), self.rows)

    def _collect_within(self, search: Search, most: int) -> BitMap | None:
        match search:
            case Terms(terms=()) | Points(points=()):
                return BitMap()
        from hudiindex import RowIds

        query, size = to_query(search), min(_FIRST_BUFFER, max(1, self.rows))
        while True:
            buffer = np.empty(size, dtype=np.uint32)
            count = int(RowIds.into(self._searcher, query, buffer.ctypes.data, size, most))
            if count == RowIds.TOO_MANY_STEPS:
                return None
            if count >= 0:
                return BitMap(array("I", buffer[:count].tobytes()))  # the fastest way into a bitmap
            size = -1 - count


class LuceneReaders(LookupReaders[LuceneReader]):
    """Many open entries, as one object of Java, which cannot fetch the blocks that some lack.
    Look-ups that go through many terms are left to the single readers."""

    def __init__(self, readers: Sequence[IndexReader]) -> None:
        super().__init__(LuceneReader, readers)
        with self._damage_named():
            from hudiindex import ManyIndexes

            searchers = [each._searcher for each in self._readers if each.is_local]
            self._indexes = ManyIndexes(searchers)

    def few_rows(
        self, leaf: Predicate, among: Positions, most: int
    ) -> Sequence[BitMap | None] | None:
        """See `ManyReaders`."""
        search = self._search(leaf)
        if search is None:
            return None
        is_local, asked = self._asked(among)
        with self._damage_named():
            places = asked.ctypes.data, len(asked)
            found = self._indexes.fewRows(to_query(search), *places, most)
            return self._rows(found, is_local)

    def rows_of_values(
        self, leaf: In, among: Positions, values: Routed, most: int
    ) -> Sequence[BitMap | None] | None:
        """See `ManyReaders`."""
        found = self._listed(leaf, among, values)
        if found is None:
            return None
        lookup, listed, starts, numbers = found
        is_local, asked = self._asked(among)
        places = asked.ctypes.data, len(asked), starts.ctypes.data, numbers.ctypes.data
        with self._damage_named():
            import lucene

            if isinstance(listed.values, list):
                terms = lucene.JArray("byte")(b"".join(listed.values))
                ends = lucene.JArray("int")(list(accumulate(map(len, listed.values))))
                field = lucene_field(KEYWORD, lookup.column)
                found = self._indexes.rowsOfTerms(field, terms, ends, *places, most)
            else:
                points = listed.values.ctypes.data, len(listed.values)
                field = lucene_field(NUMBER, lookup.column)
                found = self._indexes.rowsOfPoints(field, *points, *places, most)
            return self._rows(found, is_local)

    def narrowed(
        self, leaf: Predicate, among: Positions, rows: Sequence[BitMap]
    ) -> Sequence[BitMap | None] | None:
        """See `ManyReaders`."""
        lookup = lookup_of_a_row(leaf, self._readers[0].columns)
        if lookup is None or lookup.answer is not Answer.EXACT:
            return None
        is_local, asked = self._asked(among)
        arrays = [each.to_array() for each in compress(rows, is_local)]
        ids = np.frombuffer(b"".join(arrays), dtype=np.uint32)
        starts = np.cumsum([0, *map(len, arrays)], dtype=np.int32)
        with self._damage_named():
            places = asked.ctypes.data, len(asked), starts.ctypes.data, ids.ctypes.data
            found = self._indexes.among(to_query(lookup.search), *places)
            hits = self._rows(found, is_local)
            if not lookup.complement:
                return hits
            return [
                hit if hit is None else self._readers[position]._others(lookup, given, hit)
                for position, given, hit in zip(among.tolist(), rows, hits, strict=True)
            ]

    def without_rows(self, leaf: Predicate, among: Positions) -> Truths | None:
        """See `ManyReaders`."""
        search = self._search(leaf)
        if search is None:
            return None
        is_local, asked = self._asked(among)
        is_empty = np.empty(len(asked), dtype=bool)
        with self._damage_named():
            addresses = asked.ctypes.data, len(asked), is_empty.ctypes.data
            self._indexes.withoutRows(to_query(search), *addresses)
        answers = np.zeros(len(among), dtype=bool)
        answers[is_local] = is_empty
        return answers

    def counts(self, leaf: Predicate, among: Positions) -> npt.NDArray[np.int64] | None:
        """See `ManyReaders`: from the terms' row counts, and along the paths to both ends of a
        range of points; by visiting the rows of conjuncts looked up together."""
        search = self._search(leaf)
        if search is None:
            return None
        is_local, asked = self._asked(among)
        found = np.empty(len(asked), dtype=np.int32)
        with self._damage_named():
            places = asked.ctypes.data, len(asked)
            self._indexes.counts(to_query(search), *places, _MOST_TERMS, found.ctypes.data)
        counts = np.full(len(among), -1, dtype=np.int64)
        counts[is_local] = found
        return counts

    def _rows(self, found: Any, is_local: Truths) -> list[BitMap | None]:
        """The rows that Java has found in those of some entries that it can ask."""
        counts = np.empty(np.count_nonzero(is_local), dtype=np.int32)
        rows = np.empty(int(found.size()), dtype=np.uint32)
        found.into(counts.ctypes.data, rows.ctypes.data)
        return row_sets(is_local.tolist(), counts.tolist(), rows.tobytes())

    def _search(self, leaf: Predicate) -> Search | None:
        """The search for a leaf; None if single readers are asked instead."""
        lookup = self._lookup(leaf)
        if lookup is None or lookup.complement or not _is_short(lookup.search):
            return None
        search: Search = lookup.search
        return search

    def _damage_named(self) -> AbstractContextManager[None]:
        return jvm.damage_named("One of the open indexes")


def _is_short(search: Search) -> bool:
    match search:
        case Terms(terms=values) | Points(points=values):
            return 0 < len(values) <= _SHORT_LIST
        case PointRange():
            return True
        case Words(mode=MatchMode.ALL | MatchMode.PHRASE):
            return True
        case AllOf(searches=searches):
            return all(map(_is_short, searches))
    return False
