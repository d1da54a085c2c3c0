"""Turns look-ups into Lucene queries. The JVM must be attached to threads that make queries."""

from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import accumulate
from typing import Any

from hudi_index_service.index.lucene.fields import ANALYZERS
from hudi_index_service.index.lucene.search import (
    AllOf,
    OpenPhrase,
    Pattern,
    PointRange,
    Points,
    Search,
    TermRange,
    Terms,
    Words,
)
from hudi_index_service.index.number_encoding import WIDE_BYTES, wide_bytes
from hudi_index_service.predicate.expression import MatchMode

_PARTS = {"any": "%", "one": "_"}  # as TermScan spells them
_NO_LIMIT = 2**31 - 1
_FEW_TERMS = 64  # the number of terms up to which Lucene returns row counts at once
_MOST_KEPT = 64  # queries


@lru_cache(maxsize=_MOST_KEPT)
def to_query(search: Search) -> Any:
    """The Lucene query of a search. It is kept, since a look-up is weighed before it runs, and runs
    in many entries; and making that of a long list takes longer than asking an entry."""
    import lucene
    from hudiindex import ListQueries, TermScan
    from hudiindex import OpenPhrase as OpenPhraseQuery
    from org.apache.lucene.document import BinaryPoint, LongPoint
    from org.apache.lucene.search import MatchNoDocsQuery

    match search:
        case Terms(terms=()) | Points(points=()):
            return MatchNoDocsQuery()
        case Terms(field, terms):
            return _any_term(field, terms)
        case TermRange(field, interval):
            low = _bytes_ref(interval.low) if interval.low else None
            high = None if interval.high is None else _bytes_ref(interval.high)
            return TermScan(field, low, True, high, False)
        case Pattern(field, parts, long_bytes):
            spelled = [_PARTS.get(part.kind, "=" + part.text) for part in parts]
            longest = _NO_LIMIT if long_bytes is None else long_bytes
            return TermScan(field, lucene.JArray("string")(spelled), longest)
        case Points(field, points, wide=True):
            values = lucene.JArray("byte")(b"".join(map(wide_bytes, points)))
            return ListQueries.anyPoint(field, values, WIDE_BYTES)
        case Points(field, points):
            return LongPoint.newSetQuery(field, lucene.JArray("long")(list(points)))
        case PointRange(field, low, high, wide=True):
            bounds = [lucene.JArray("byte")(wide_bytes(end)) for end in (low, high)]
            return BinaryPoint.newRangeQuery(field, *bounds)
        case PointRange(field, low, high):
            return LongPoint.newRangeQuery(field, low, high)
        case Words():
            return _of_words(search)
        case OpenPhrase(field, words, beginning):
            return OpenPhraseQuery(field, lucene.JArray("string")(list(words)), beginning)
        case AllOf(searches):
            return _all_of(searches)


def _any_term(field: str, terms: Sequence[bytes]) -> Any:
    import lucene
    from hudiindex import ListQueries
    from org.apache.lucene.index import Term
    from org.apache.lucene.search import BooleanClause, BooleanQuery, TermQuery

    if len(terms) > _FEW_TERMS:
        ends = lucene.JArray("int")(list(accumulate(map(len, terms))))
        return ListQueries.anyTerm(field, lucene.JArray("byte")(b"".join(terms)), ends)
    queries = [TermQuery(Term(field, _bytes_ref(term))) for term in terms]
    if len(queries) == 1:
        return queries[0]
    any_of = BooleanQuery.Builder()
    for query in queries:
        any_of.add(query, BooleanClause.Occur.SHOULD)
    return any_of.build()


def _of_words(search: Words) -> Any:
    from hudiindex import TextQueries

    analyzer = analyzer_of(search.analyzer)
    match search.mode:
        case MatchMode.ALL:
            return TextQueries.all(analyzer, search.field, search.text)
        case MatchMode.ANY:
            return TextQueries.any(analyzer, search.field, search.text)
        case MatchMode.PHRASE:
            return TextQueries.phrase(analyzer, search.field, search.text)
        case MatchMode.PREFIX:
            return TextQueries.prefix(analyzer, search.field, search.text.strip())
    return TextQueries.fuzzy(analyzer, search.field, search.text, search.edits)


def _all_of(searches: Sequence[Search]) -> Any:
    from hudiindex import PointBits
    from org.apache.lucene.search import BooleanClause, BooleanQuery, PointRangeQuery

    all_of = BooleanQuery.Builder()
    for each in searches:
        query = to_query(each)
        if isinstance(each, PointRange):
            query = PointBits(PointRangeQuery.cast_(query))
        all_of.add(query, BooleanClause.Occur.FILTER)
    return all_of.build()


@cache
def analyzer_of(name: str) -> Any:
    """Lucene's analyzer of that short name, shared by all threads."""
    from hudiindex import Analyzers

    return Analyzers.named(ANALYZERS[name])


def _bytes_ref(value: bytes) -> Any:
    import lucene
    from org.apache.lucene.util import BytesRef

    return BytesRef(lucene.JArray("byte")(value)) if value else BytesRef()
