"""Turns look-ups into Lucene queries. The JVM must be attached to threads that make queries."""

from functools import cache, singledispatch
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


def to_query(search: Search) -> Any:
    """The Lucene query of a search."""
    match search:
        case Terms(terms=values) | Points(points=values) if len(values) > _FEW_TERMS:
            if not search.query:
                search.query.append(_new_query(search))
            return search.query[0]
    return _new_query(search)


@singledispatch
def _new_query(search: Search) -> Any:
    raise TypeError(search)


@_new_query.register
def _terms(search: Terms) -> Any:
    from org.apache.lucene.search import BooleanClause, BooleanQuery

    if not search.terms:
        return _nothing()
    if len(search.terms) == 1:
        return _term(search.field, search.terms[0])
    if len(search.terms) <= _FEW_TERMS:
        any_of = BooleanQuery.Builder()
        for term in search.terms:
            any_of.add(_term(search.field, term), BooleanClause.Occur.SHOULD)
        return any_of.build()
    import lucene
    from hudiindex import ListQueries

    ends = lucene.JArray("int")(list(accumulate(map(len, search.terms))))
    return ListQueries.anyTerm(search.field, lucene.JArray("byte")(b"".join(search.terms)), ends)


def _term(field: str, term: bytes) -> Any:
    from org.apache.lucene.index import Term
    from org.apache.lucene.search import TermQuery

    return TermQuery(Term(field, _bytes_ref(term)))


def _nothing() -> Any:
    from org.apache.lucene.search import MatchNoDocsQuery

    return MatchNoDocsQuery()


@_new_query.register
def _term_range(search: TermRange) -> Any:
    from hudiindex import TermScan

    low, high = (None if end is None else _bytes_ref(end) for end in (search.low, search.high))
    return TermScan(search.field, low, search.low_included, high, search.high_included)


@_new_query.register
def _pattern(search: Pattern) -> Any:
    import lucene
    from hudiindex import TermScan

    parts = [_PARTS.get(part.kind, "=" + part.text) for part in search.parts]
    longest = _NO_LIMIT if search.long_bytes is None else search.long_bytes
    return TermScan(search.field, lucene.JArray("string")(parts), longest)


@_new_query.register
def _points(search: Points) -> Any:
    import lucene
    from org.apache.lucene.document import LongPoint

    if not search.points:
        return _nothing()
    if search.wide:
        from hudiindex import ListQueries

        values = b"".join(map(wide_bytes, search.points))
        return ListQueries.anyPoint(search.field, lucene.JArray("byte")(values), WIDE_BYTES)
    return LongPoint.newSetQuery(search.field, lucene.JArray("long")(list(search.points)))


@_new_query.register
def _point_range(search: PointRange) -> Any:
    import lucene
    from org.apache.lucene.document import BinaryPoint, LongPoint

    if search.wide:
        low, high = (lucene.JArray("byte")(wide_bytes(end)) for end in (search.low, search.high))
        return BinaryPoint.newRangeQuery(search.field, low, high)
    return LongPoint.newRangeQuery(search.field, search.low, search.high)


@_new_query.register
def _words(search: Words) -> Any:
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


@_new_query.register
def _open_phrase(search: OpenPhrase) -> Any:
    import lucene
    from hudiindex import OpenPhrase as Query

    return Query(search.field, lucene.JArray("string")(list(search.words)), search.beginning)


@_new_query.register
def _all_of(search: AllOf) -> Any:
    from hudiindex import PointBits
    from org.apache.lucene.search import BooleanClause, BooleanQuery, PointRangeQuery

    all_of = BooleanQuery.Builder()
    for each in search.searches:
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
