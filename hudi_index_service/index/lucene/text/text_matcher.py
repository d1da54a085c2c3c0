"""Full-text search in rows that no index holds. The rows are indexed in memory as they would be on
disk and searched with the same query, so that both always give the same result."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hudi_index_service.arrow import as_truths, truths_array
from hudi_index_service.index.lucene import jvm
from hudi_index_service.index.lucene.lookup import words_of
from hudi_index_service.index.lucene.queries import analyzer_of, to_query
from hudi_index_service.predicate.expression import Match

_BYTES_AT_ONCE = 16 << 20  # of text, so that its index fits into the JVM's heap


@dataclass(frozen=True, slots=True)
class LuceneTextMatcher:
    """See `hudi_index_service.predicate.expression.TextMatcher`.

    Raises:
        NativeModuleMissing: PyLucene or the JDK is missing.
    """

    def matches(self, match: Match, texts: pa.Array) -> pa.BooleanArray:
        """Whether each text matches; null where the text is NULL."""
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
    pieces = 1 + texts.nbytes // _BYTES_AT_ONCE
    length = -(-len(texts) // pieces)
    for start in range(0, len(texts), length):
        yield start, texts.slice(start, length)
