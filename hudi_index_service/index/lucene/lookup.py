"""Turns a predicate leaf into a look-up: what to search for, and how well the result answers the
leaf. Look-ups are independent of Lucene; `queries` turns them into Lucene queries.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import singledispatch

import pyarrow as pa

from hudi_index_service.index.column_kinds import element_type, is_array
from hudi_index_service.index.contract import Answer, Conjunction, StoredColumn
from hudi_index_service.index.known_lookups import KnownLookups
from hudi_index_service.index.lucene.fields import (
    KEYWORD,
    NUMBER,
    TEXT_PREFIX,
    WIDE_NUMBER,
    keyword_field,
    null_element_field,
    null_field,
    number_field,
    text_field,
    wide_number_field,
)
from hudi_index_service.index.lucene.intersection import above_prefix, intersection
from hudi_index_service.index.lucene.search import (
    AllOf,
    Pattern,
    PointRange,
    Points,
    Prefix,
    Search,
    TermRange,
    Terms,
    Words,
)
from hudi_index_service.index.lucene.text.words import phrase_by_words, search_by_words
from hudi_index_service.index.number_encoding import encode_range
from hudi_index_service.predicate.comparison import is_binary, is_string
from hudi_index_service.predicate.expression import (
    And,
    ArrayContains,
    Compare,
    In,
    IsNull,
    Like,
    LikePart,
    Match,
    MatchMode,
    Not,
    Operator,
    Predicate,
    RLike,
)
from hudi_index_service.predicate.patterns.like import ANY
from hudi_index_service.predicate.patterns.regex import Regex

MAX_TERM_BYTES = 32_766
"""Lucene's limit; longer values are indexed by their first bytes (`truncated` in the manifest)."""

MAX_RANGE_BYTES = 512
"""Ranges and prefixes are automata in Lucene, which rejects automata of more than 1,000 states. A
longer literal is searched by its first bytes."""

_LONGEST_PATTERN = 10_000
_BROKEN = "\ufffd"  # Java's replacement for bytes that are not UTF-8
_SHORTEST_RUN = 3  # shorter texts occur in too many words


@dataclass(frozen=True, slots=True)
class LuceneLookup:
    """A look-up that answers a leaf: a search, optionally followed by taking the complement.

    Attributes:
        complement: Whether the answer is all rows except those found.
        without_null: Whether the complement also excludes rows where `column`, or an element of
            it, is NULL.
    """

    column: str
    search: Search
    answer: Answer = Answer.EXACT
    complement: bool = False
    without_null: bool = False


Columns = Mapping[str, StoredColumn]


def nulls_of(column: str) -> Terms:
    """The search for the rows where the column is NULL."""
    return Terms(null_field(column), (b"1",))


def null_elements_of(column: str) -> Terms:
    """The search for the rows where the array column has a NULL element."""
    return Terms(null_element_field(column), (b"1",))


@singledispatch
def lookup(leaf: Predicate, columns: Columns) -> LuceneLookup | None:
    """The look-up for a leaf of a predicate in negation normal form, or for an AND of leaves on one
    column; None if Lucene cannot answer it."""
    return None


@lookup.register
def _is_null(leaf: IsNull, columns: Columns) -> LuceneLookup | None:
    if leaf.column.name not in columns:
        return None
    return LuceneLookup(leaf.column.name, nulls_of(leaf.column.name))


@lookup.register
def _compare(leaf: Compare, columns: Columns) -> LuceneLookup | None:
    stored = columns.get(leaf.column.name)
    if stored is None:
        return None
    if leaf.operator is Operator.NE:
        return _negated(_compare(replace(leaf, operator=Operator.EQ), columns), without_null=True)
    if is_array(stored.type):
        return None  # Spark orders arrays, and compares them whole
    points = _points_field(stored)
    if points is not None:
        field, wide = points
        bounds = encode_range(leaf.operator, leaf.value, stored.type)
        if bounds is None:
            return None
        if bounds.is_empty:
            return LuceneLookup(stored.name, Points(field, (), wide))
        return LuceneLookup(stored.name, PointRange(field, bounds.low, bounds.high, wide))
    if KEYWORD in stored.fields and _are_terms(stored, leaf.value):
        return _compare_keyword(leaf, stored)
    return None


def _points_field(stored: StoredColumn) -> tuple[str, bool] | None:
    """The column's number field, and whether its numbers are wide; None if there is no field."""
    if NUMBER in stored.fields:
        return number_field(stored.name), False
    if WIDE_NUMBER in stored.fields:
        return wide_number_field(stored.name), True
    return None


def _are_terms(stored: StoredColumn, *literals: pa.Scalar) -> bool:
    """Whether the literals have the kind of the column's terms: all text, or all binary."""
    check = is_binary if is_binary(element_type(stored.type)) else is_string
    return all(check(literal.type) for literal in literals)


def _compare_keyword(leaf: Compare, stored: StoredColumn) -> LuceneLookup:
    field = keyword_field(stored.name)
    value = _bytes(leaf.value)
    answer = _exactness(stored, value)
    if leaf.operator in (Operator.EQ, Operator.EQ_NULL_SAFE):
        return LuceneLookup(stored.name, Terms(field, (value[:MAX_TERM_BYTES],)), answer)
    # A truncated value is <= the value itself, so both ends are included if values were truncated.
    inclusive = answer is Answer.SUPERSET or leaf.operator in (Operator.LE, Operator.GE)
    if leaf.operator in (Operator.GT, Operator.GE):
        if len(value) > MAX_RANGE_BYTES:  # values above the literal are also above its prefix
            low, answer, inclusive = value[:MAX_RANGE_BYTES], Answer.SUPERSET, True
        else:
            low = value
        return LuceneLookup(stored.name, TermRange(field, low, None, inclusive, False), answer)
    if len(value) > MAX_RANGE_BYTES:
        high = above_prefix(value[:MAX_RANGE_BYTES])
        return LuceneLookup(
            stored.name, TermRange(field, None, high, False, False), Answer.SUPERSET
        )
    return LuceneLookup(stored.name, TermRange(field, None, value, False, inclusive), answer)


@lookup.register
def _in(leaf: In, columns: Columns) -> LuceneLookup | None:
    stored = columns.get(leaf.column.name)
    if stored is None or is_array(stored.type):
        return None
    return _any_of(stored, leaf.values)


def _any_of(stored: StoredColumn, values: Sequence[pa.Scalar]) -> LuceneLookup | None:
    """The look-up for the rows with any of these values."""
    points = _points_field(stored)
    if points is not None:
        type = element_type(stored.type)
        ranges = [encode_range(Operator.EQ, value, type) for value in values]
        if any(each is None for each in ranges):
            return None
        found = tuple(sorted({each.low for each in ranges if each and not each.is_empty}))
        field, wide = points
        return LuceneLookup(stored.name, Points(field, found, wide))
    if KEYWORD in stored.fields and _are_terms(stored, *values):
        literals = [_bytes(value) for value in values]
        terms = tuple(sorted({literal[:MAX_TERM_BYTES] for literal in literals}))
        search = Terms(keyword_field(stored.name), terms)
        return LuceneLookup(stored.name, search, _exactness(stored, *literals))
    return None


@lookup.register
def _array_contains(leaf: ArrayContains, columns: Columns) -> LuceneLookup | None:
    stored = columns.get(leaf.column.name)
    if stored is None or not is_array(stored.type):
        return None
    return _any_of(stored, (leaf.value,))


@lookup.register
def _like(leaf: Like, columns: Columns) -> LuceneLookup | None:
    stored = columns.get(leaf.column.name)
    if stored is None or not is_string(stored.type):
        return None
    if KEYWORD not in stored.fields:
        return _by_words(stored, leaf.parts)
    field = keyword_field(stored.name)
    if stored.truncated and _BROKEN in leaf.pattern:
        # In Spark, the character may also stand for bytes that are not UTF-8.
        prefix = leaf.prefix.split(_BROKEN)[0].encode()[:MAX_RANGE_BYTES]
        return LuceneLookup(stored.name, Prefix(field, prefix), Answer.SUPERSET)
    prefix = leaf.prefix.encode()
    if all(part.kind == "text" for part in leaf.parts):
        search = Terms(field, (prefix[:MAX_TERM_BYTES],))
        return LuceneLookup(stored.name, search, _exactness(stored, prefix))
    if leaf.is_prefix_only and len(prefix) <= MAX_RANGE_BYTES:
        return LuceneLookup(stored.name, Prefix(field, prefix))
    if stored.truncated or len(leaf.pattern) > _LONGEST_PATTERN:
        return LuceneLookup(stored.name, Prefix(field, prefix[:MAX_RANGE_BYTES]), Answer.SUPERSET)
    return LuceneLookup(stored.name, Pattern(field, leaf.parts))


def _by_words(stored: StoredColumn, parts: Sequence[LikePart]) -> LuceneLookup | None:
    search = search_by_words(stored, parts)
    return None if search is None else LuceneLookup(stored.name, search, Answer.SUPERSET)


def lookup_by_words(leaf: Predicate, columns: Columns) -> LuceneLookup | None:
    """Another look-up, for candidates only, for a leaf that `lookup` answers by reading many
    keywords; None if there is none."""
    match leaf:
        case Like(column, parts=parts):
            return _by_words(columns[column.name], parts)
        case RLike(column, regex=regex):
            return _by_words(columns[column.name], _containing(_required(regex)))
    return None


def lookup_of_a_row(leaf: Predicate, columns: Columns) -> LuceneLookup | None:
    """A look-up against which a single row is quickly checked, possibly a superset (see its
    `answer`); None if there is none."""
    match leaf:
        case Like(column, parts=parts) if any(part.kind != "text" for part in parts):
            phrase = phrase_by_words(columns[column.name], parts)
            return None if phrase is None else LuceneLookup(column.name, phrase, Answer.SUPERSET)
    found = lookup(leaf, columns)
    if found is None:
        return None
    match found.search:
        case Terms(terms=terms) if len(terms) == 1:
            return found
        case Words(mode=MatchMode.ALL | MatchMode.PHRASE):
            return found
    return None


def _containing(text: str) -> tuple[LikePart, ...]:
    return (ANY, LikePart("text", text), ANY)


def _required(regex: Regex) -> str:
    """The longest text that every match contains, without the character that in Spark may also
    stand for bytes that are not UTF-8."""
    return max(regex.required.split(_BROKEN), key=len)


@lookup.register
def _match(leaf: Match, columns: Columns) -> LuceneLookup | None:
    stored = columns.get(leaf.column.name)
    if stored is None or TEXT_PREFIX + leaf.words.analyzer not in stored.fields:
        return None
    return LuceneLookup(stored.name, words_of(leaf))


def words_of(leaf: Match) -> Words:
    """The search of a full-text leaf."""
    analyzer = leaf.words.analyzer
    field = text_field(leaf.column.name, analyzer)
    return Words(field, analyzer, leaf.mode, leaf.text, leaf.edits)


@lookup.register
def _rlike(leaf: RLike, columns: Columns) -> LuceneLookup | None:
    stored = columns.get(leaf.column.name)
    if stored is None or not is_string(stored.type):
        return None
    # In Spark, that character may also stand for bytes that are not UTF-8.
    prefix = leaf.regex.prefix.split(_BROKEN)[0].encode()[:MAX_RANGE_BYTES]
    required = _required(leaf.regex)
    if KEYWORD not in stored.fields:
        return _by_words(stored, _containing(required))
    field = keyword_field(stored.name)
    if prefix:
        return LuceneLookup(stored.name, Prefix(field, prefix), Answer.SUPERSET)
    if len(required) < _SHORTEST_RUN or stored.truncated:
        return None
    return LuceneLookup(stored.name, Pattern(field, _containing(required)), Answer.SUPERSET)


@lookup.register
def _and(conjuncts: And, columns: Columns) -> LuceneLookup | None:
    """The look-up for conjuncts on one column, if one search answers them all."""
    found = [lookup(leaf, columns) for leaf in conjuncts.operands]
    whole: LuceneLookup | None = None
    for each in found:
        if each is None or each.complement or is_array(columns[each.column].type):
            return None  # different elements may satisfy different conjuncts
        if whole is None:
            whole = each
            continue
        search = intersection(whole.search, each.search)
        if search is None:
            return None
        exact = whole.answer is each.answer is Answer.EXACT
        answer = Answer.EXACT if exact else Answer.SUPERSET
        whole = LuceneLookup(whole.column, search, answer)
    return whole


@lookup.register
def _together(conjuncts: Conjunction, columns: Columns) -> LuceneLookup | None:
    """The look-up for conjuncts that Lucene can each check for a row without reading many terms."""
    found = [lookup(leaf, columns) for leaf in conjuncts.operands]
    known = [each for each in found if each is not None and _is_known_by_row(each)]
    if len(known) < max(2, len(found)):
        return None
    exact = all(each.answer is Answer.EXACT for each in known)
    search = AllOf(tuple(each.search for each in known))
    return LuceneLookup(known[0].column, search, Answer.EXACT if exact else Answer.SUPERSET)


def _is_known_by_row(found: LuceneLookup) -> bool:
    if found.complement:
        return False
    return isinstance(found.search, Terms | Points | PointRange | Words)


@lookup.register
def _not(leaf: Not, columns: Columns) -> LuceneLookup | None:
    operand = leaf.operand
    if isinstance(operand, In) and operand.has_null:
        if operand.column.name not in columns:
            return None
        # NOT IN a list with NULL is never TRUE.
        return LuceneLookup(operand.column.name, Terms(null_field(operand.column.name), ()))
    null_safe = isinstance(operand, Compare) and operand.operator is Operator.EQ_NULL_SAFE
    without_null = not (isinstance(operand, IsNull) or null_safe)
    return _negated(lookup(operand, columns), without_null=without_null)


def _negated(found: LuceneLookup | None, *, without_null: bool) -> LuceneLookup | None:
    """The complement; None unless the answer is exact and not itself a complement."""
    if found is None or found.answer is not Answer.EXACT or found.complement:
        return None
    return replace(found, complement=True, without_null=without_null)


def _exactness(stored: StoredColumn, *literals: bytes) -> Answer:
    """EXACT, unless a stored value was truncated or a literal is longer than a term can be."""
    cut = stored.truncated or any(len(each) > MAX_TERM_BYTES for each in literals)
    return Answer.SUPERSET if cut else Answer.EXACT


def _bytes(value: pa.Scalar) -> bytes:
    return bytes(value.as_buffer())


known_lookup = KnownLookups(lookup)
"""`lookup`, called once for all entries with the same column layouts."""
