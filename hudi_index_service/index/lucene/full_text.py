"""Full-text searches beyond an entry's row ids: which texts match that no index holds, and how well
rows do by Lucene's BM25, in entries and in rows without an entry.

Rows without an entry are indexed, in memory or in a temporary folder, as they would be in one, and
searched with the same query, so that both always give the same result.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from hudi_index_service.arrow import as_truths, truths_array
from hudi_index_service.cancellation import check
from hudi_index_service.index.contract import ColumnSpec, RankedRows, RankedTexts
from hudi_index_service.index.lucene import jvm
from hudi_index_service.index.lucene.fields import RANKED_PREFIX, TEXT_PREFIX
from hudi_index_service.index.lucene.lookup import words_of
from hudi_index_service.index.lucene.queries import analyzer_of, to_query
from hudi_index_service.index.lucene.search import Words
from hudi_index_service.predicate.expression import Match
from hudi_index_service.storage.temporary_folder import RANKING, temporary_folder

_RANKING_MB = 64
BYTES_AT_ONCE = 16 << 20  # of text, so that its index fits into the JVM's heap


def matches(match: Match, texts: pa.Array) -> pa.BooleanArray:
    """See `hudi_index_service.predicate.expression.AnalyzedText`.

    Raises:
        NativeModuleMissing: PyLucene or the JDK is missing.
    """
    jvm.attach()
    search = words_of(match)
    analyzer, query = analyzer_of(search.analyzer), to_query(search)
    hits = np.zeros(len(texts), dtype=bool)
    for start, piece in _pieces(texts):
        hits[start + _rows(piece, search.field, analyzer, query)] = True
    return truths_array(hits, as_truths(texts.is_null()))


def _rows(texts: pa.Array, field: str, analyzer: object, query: object) -> np.ndarray:
    """The positions of the matching texts."""
    from hudiindex import TextRows

    validity, offsets, data = texts.buffers()
    rows = np.empty(max(1, len(texts)), dtype=np.uint32)
    count = TextRows.into(
        analyzer,
        field,
        query,
        0 if validity is None or not texts.null_count else validity.address,
        0 if offsets is None else offsets.address,
        0 if data is None else data.address,
        pa.types.is_large_string(texts.type),
        texts.offset,
        len(texts),
        rows.ctypes.data,
    )
    return rows[: int(count)]


def _pieces(texts: pa.Array) -> Iterator[tuple[int, pa.Array]]:
    """The texts in pieces of limited size, each with its start position."""
    if not len(texts):
        return
    pieces = 1 + texts.nbytes // BYTES_AT_ONCE
    length = -(-len(texts) // pieces)
    for start in range(0, len(texts), length):
        check()
        yield start, texts.slice(start, length)


@dataclass(frozen=True, slots=True)
class LuceneRankedRows:
    """See `hudi_index_service.index.contract.RankedRows`: the rows of an open Lucene index at
    `path`."""

    searcher: Any
    match: Match
    path: Path

    def statistics(self) -> np.ndarray:
        """The number of rows with a word, of words, and of distinct words; and for each searched
        word, the number of rows with it and of its occurrences."""
        jvm.attach()
        from hudiindex import RankedSearch

        search = words_of(self.match)
        with jvm.damage_named(self.path):
            return np.array(RankedSearch.statistics(self.searcher, search.field, _words(search)))

    def best(self, k: int, statistics: np.ndarray, among: BitMap | None) -> list[tuple[int, float]]:
        """The best rows, scored with the statistics of all rows."""
        lucene = jvm.attach()
        from hudiindex import RankedSearch

        search = words_of(self.match)
        rows, scores = np.empty(k, np.uint32), np.empty(k, np.float32)
        allowed = np.frombuffer(among.to_array(), np.uint32) if among else np.empty(0, np.uint32)
        if among is not None and not among:
            return []
        with jvm.damage_named(self.path):
            count = RankedSearch.best(
                self.searcher,
                to_query(search),
                search.field,
                _words(search),
                lucene.JArray("long")(statistics.tolist()),
                allowed.ctypes.data if among is not None else 0,
                len(allowed),
                k,
                rows.ctypes.data,
                scores.ctypes.data,
            )
        return list(zip(rows[:count].tolist(), scores[:count].tolist(), strict=True))


def _words(search: Words) -> Any:
    from hudiindex import TextQueries

    return TextQueries.words(analyzer_of(search.analyzer), search.field, search.text)


@contextmanager
def ranked_texts(match: Match) -> Iterator[RankedTexts]:
    """See `hudi_index_service.index.contract.TextRanker`. Indexes the texts in a temporary folder,
    as in an entry."""
    from hudi_index_service.index.lucene.builder import LuceneBuilder

    analyzer = match.words.analyzer
    fields = (TEXT_PREFIX + analyzer, RANKED_PREFIX + analyzer)
    spec = ColumnSpec(match.column.name, match.column.type, fields)
    with temporary_folder(RANKING) as folder:
        builder = LuceneBuilder([spec], folder, memory_mb=_RANKING_MB)
        with closing(LuceneTexts(builder, folder, match)) as texts:
            yield texts


class LuceneTexts:
    """See `hudi_index_service.index.contract.RankedTexts`."""

    def __init__(self, builder: Any, folder: Path, match: Match) -> None:
        self._builder = builder
        self._folder = folder
        self._match = match
        self._reader: Any = None

    def add(self, texts: pa.Array) -> None:
        """Adds the texts of the next rows."""
        self._builder.add(pa.record_batch([texts], names=[self._match.column.name]))

    def ranked(self) -> RankedRows:
        """All added rows; nothing can be added afterwards."""
        self._builder.finish()
        from java.nio.file import Paths
        from org.apache.lucene.index import DirectoryReader
        from org.apache.lucene.search import IndexSearcher
        from org.apache.lucene.store import FSDirectory

        self._reader = DirectoryReader.open(FSDirectory.open(Paths.get(str(self._folder))))
        return LuceneRankedRows(IndexSearcher(self._reader), self._match, self._folder)

    def close(self) -> None:
        """Releases the files."""
        self._builder.abort()
        if self._reader is not None:
            jvm.attach()
            self._reader.close()


def holds_ranking(fields: Sequence[str], match: Match) -> bool:
    """Whether a column with these fields can be ranked by the match's analyzer."""
    analyzer = match.words.analyzer
    return TEXT_PREFIX + analyzer in fields and RANKED_PREFIX + analyzer in fields
