"""Turns a predicate leaf into a look-up: what to search for, and how well the result answers the
leaf. Look-ups are independent of Lucene; `queries` turns them into Lucene queries.
"""

from collections.abc import Sequence
from typing import TypeAlias

import pyarrow as pa

from hudi_index_service.index.contract import Answer, Conjunction, StoredColumn
from hudi_index_service.index.intervals import Interval, after, prefixed
from hudi_index_service.index.leaf_lookup import (
    UNDECODED,
    Columns,
    LeafLookup,
    LeafLookups,
    ListedValues,
    exact_if,
)
from hudi_index_service.index.lucene.fields import (
    KEYWORD,
    NULL_ELEMENTS,
    NULLS,
    NUMBER,
    TEXT_PREFIX,
    WIDE_NUMBER,
    lucene_field,
)
from hudi_index_service.index.lucene.search import (
    AllOf,
    Pattern,
    PointRange,
    Points,
    Search,
    TermRange,
    Terms,
    Words,
    intersection,
)
from hudi_index_service.index.lucene.words import phrase_by_words, search_by_words
from hudi_index_service.index.number_encoding import WIDE_MIN, encode_range
from hudi_index_service.index.stored_column import element_type, is_array
from hudi_index_service.predicate.bounds import above_prefix
from hudi_index_service.predicate.comparison import is_binary, is_string
from hudi_index_service.predicate.expression import (
    Like,
    LikePart,
    Match,
    MatchMode,
    Operator,
    Predicate,
    RLike,
)
from hudi_index_service.predicate.like import ANY
from hudi_index_service.predicate.regex import Regex

MAX_TERM_BYTES = 32_766
"""Lucene's limit; longer values are indexed by their first bytes (`truncated` in the manifest)."""

MAX_RANGE_BYTES = 512
"""Ranges and prefixes are automata in Lucene, which rejects automata of more than 1,000 states. A
longer literal is searched by its first bytes."""

_LONGEST_PATTERN = 10_000
_SHORTEST_RUN = 3  # shorter texts occur in too many words

_EQUALITIES = (Operator.EQ, Operator.EQ_NULL_SAFE)

LuceneLookup: TypeAlias = LeafLookup[Search]


def null_elements_of(column: str) -> Terms:
    """The search for the rows where the array column has a NULL element."""
    return Terms(lucene_field(NULL_ELEMENTS, column), (b"1",))


class LuceneLookups(LeafLookups[Search]):
    """See `LeafLookups`."""

    longest_text = MAX_TERM_BYTES

    def nulls(self, column: str) -> Terms:
        """The search for the rows where the column is NULL."""
        return Terms(lucene_field(NULLS, column), (b"1",))

    def nothing(self, column: str) -> Terms:
        """The search for no row."""
        return Terms(lucene_field(NULLS, column), ())

    def compared(
        self, column: StoredColumn, operator: Operator, value: pa.Scalar
    ) -> LuceneLookup | None:
        """By a range of numbers or terms."""
        points = _points_field(column)
        if points is not None:
            field, wide = points
            bounds = encode_range(operator, value, element_type(column.type))
            if bounds is None:
                return None
            if bounds.is_empty or is_array(column.type):
                numbers = () if bounds.is_empty else (bounds.low,)
                return LeafLookup(column.name, Points(field, numbers, wide))
            return LeafLookup(column.name, PointRange(field, bounds.low, bounds.high, wide))
        of_kind = is_binary if is_binary(element_type(column.type)) else is_string
        if KEYWORD in column.fields and of_kind(value.type):
            return _compared_keyword(column, operator, bytes(value.as_buffer()))
        return None

    def of_values(self, column: StoredColumn, listed: ListedValues) -> LuceneLookup | None:
        """By points or terms."""
        if not isinstance(listed.values, list):
            field = lucene_field(NUMBER, column.name)
            return LeafLookup(column.name, Points(field, tuple(listed.values.tolist())))
        if WIDE_NUMBER in column.fields:
            field = lucene_field(WIDE_NUMBER, column.name)
            numbers = tuple(int.from_bytes(each, "big") + WIDE_MIN for each in listed.values)
            return LeafLookup(column.name, Points(field, numbers, wide=True))
        if KEYWORD not in column.fields:
            return None
        search = Terms(lucene_field(KEYWORD, column.name), tuple(listed.values))
        return LeafLookup(column.name, search, exact_if(not (column.truncated or listed.is_cut)))

    def like(self, column: StoredColumn, leaf: Like) -> LuceneLookup | None:
        """By terms that begin alike or match, or by words."""
        if KEYWORD not in column.fields:
            return _by_words(column, leaf.parts)
        field = lucene_field(KEYWORD, column.name)
        if column.truncated and UNDECODED in leaf.pattern:
            prefix = leaf.prefix.split(UNDECODED)[0].encode()[:MAX_RANGE_BYTES]
            return LeafLookup(column.name, TermRange(field, prefixed(prefix)), Answer.SUPERSET)
        prefix = leaf.prefix.encode()
        if all(part.kind == "text" for part in leaf.parts):
            search = Terms(field, (prefix[:MAX_TERM_BYTES],))
            return LeafLookup(column.name, search, _exactness(column, prefix))
        if leaf.is_prefix_only and len(prefix) <= MAX_RANGE_BYTES:
            return LeafLookup(column.name, TermRange(field, prefixed(prefix)))
        if column.truncated or len(leaf.pattern) > _LONGEST_PATTERN:
            start = prefix[:MAX_RANGE_BYTES]
            return LeafLookup(column.name, TermRange(field, prefixed(start)), Answer.SUPERSET)
        return LeafLookup(column.name, Pattern(field, leaf.parts))

    def rlike(self, column: StoredColumn, leaf: RLike) -> LuceneLookup | None:
        """By terms that begin as, or contain, what every match does."""
        prefix = leaf.regex.prefix.split(UNDECODED)[0].encode()[:MAX_RANGE_BYTES]
        required_text = _required_text(leaf.regex)
        if KEYWORD not in column.fields:
            return _by_words(column, _containing(required_text))
        field = lucene_field(KEYWORD, column.name)
        if prefix:
            return LeafLookup(column.name, TermRange(field, prefixed(prefix)), Answer.SUPERSET)
        if len(required_text) < _SHORTEST_RUN or column.truncated:
            return None
        search = Pattern(field, _containing(required_text))
        return LeafLookup(column.name, search, Answer.SUPERSET)

    def words(self, column: StoredColumn, leaf: Match) -> LuceneLookup | None:
        """By the words of the column's analyzed text."""
        if TEXT_PREFIX + leaf.words.analyzer not in column.fields:
            return None
        return LeafLookup(column.name, words_of(leaf))

    def both(self, one: Search, other: Search) -> Search | None:
        """See `intersection`."""
        return intersection(one, other)

    def together(self, conjuncts: Conjunction, columns: Columns) -> LuceneLookup | None:
        """By all searches at once, if Lucene can check each for a row without reading many
        terms."""
        lookups = [self.made(leaf, columns) for leaf in conjuncts.operands]
        by_row = [each for each in lookups if each is not None and _checks_single_rows(each)]
        if len(by_row) < max(2, len(lookups)):
            return None
        answer = exact_if(all(each.answer is Answer.EXACT for each in by_row))
        search = AllOf(tuple(each.search for each in by_row))
        return LeafLookup(by_row[0].column, search, answer)


known_lookup = LuceneLookups()


def _points_field(column: StoredColumn) -> tuple[str, bool] | None:
    """The column's number field, and whether its numbers are wide; None if there is no field."""
    if NUMBER in column.fields:
        return lucene_field(NUMBER, column.name), False
    if WIDE_NUMBER in column.fields:
        return lucene_field(WIDE_NUMBER, column.name), True
    return None


def _compared_keyword(column: StoredColumn, operator: Operator, value: bytes) -> LuceneLookup:
    field, answer = lucene_field(KEYWORD, column.name), _exactness(column, value)
    if operator in _EQUALITIES:
        return LeafLookup(column.name, Terms(field, (value[:MAX_TERM_BYTES],)), answer)
    # A truncated value is <= the value itself, so both ends are included if values were truncated.
    inclusive = answer is Answer.SUPERSET or operator in (Operator.LE, Operator.GE)
    is_long, start = len(value) > MAX_RANGE_BYTES, value[:MAX_RANGE_BYTES]
    if operator in (Operator.GT, Operator.GE):  # values above the literal are above its prefix, too
        interval = Interval(start if inclusive or is_long else after(value), None)
    else:
        end = after(value) if inclusive else value
        interval = Interval(b"", above_prefix(start) if is_long else end)
    answer = Answer.SUPERSET if is_long else answer
    return LeafLookup(column.name, TermRange(field, interval), answer)


def _by_words(column: StoredColumn, parts: Sequence[LikePart]) -> LuceneLookup | None:
    search = search_by_words(column, parts)
    return None if search is None else LeafLookup(column.name, search, Answer.SUPERSET)


def lookup_by_words(leaf: Predicate, columns: Columns) -> LuceneLookup | None:
    """Another look-up, for candidates only, for a leaf that `lookup` answers by reading many
    keywords; None if there is none."""
    match leaf:
        case Like(column, parts=parts):
            return _by_words(columns[column.name], parts)
        case RLike(column, regex=regex):
            return _by_words(columns[column.name], _containing(_required_text(regex)))
    return None


def lookup_of_a_row(leaf: Predicate, columns: Columns) -> LuceneLookup | None:
    """A look-up against which a single row is quickly checked, possibly a superset (see its
    `answer`); None if there is none."""
    match leaf:
        case Like(column, parts=parts) if any(part.kind != "text" for part in parts):
            phrase = phrase_by_words(columns[column.name], parts)
            return None if phrase is None else LeafLookup(column.name, phrase, Answer.SUPERSET)
    leaf_lookup = known_lookup.made(leaf, columns)
    if leaf_lookup is None:
        return None
    match leaf_lookup.search:
        case Terms(terms=terms) if len(terms) == 1:
            return leaf_lookup
        case Words(mode=MatchMode.ALL | MatchMode.PHRASE):
            return leaf_lookup
    return None


def _containing(text: str) -> tuple[LikePart, ...]:
    return (ANY, LikePart("text", text), ANY)


def _required_text(regex: Regex) -> str:
    """The longest text that every match contains, without the character that in Spark may also
    stand for bytes that are not UTF-8."""
    return max(regex.required.split(UNDECODED), key=len)


def words_of(leaf: Match) -> Words:
    """The search of a full-text leaf."""
    analyzer = leaf.words.analyzer
    field = lucene_field(TEXT_PREFIX + analyzer, leaf.column.name)
    return Words(field, analyzer, leaf.mode, leaf.text, leaf.edits)


def _checks_single_rows(leaf_lookup: LuceneLookup) -> bool:
    if leaf_lookup.complement:
        return False
    return isinstance(leaf_lookup.search, Terms | Points | PointRange | Words)


def _exactness(column: StoredColumn, *literals: bytes) -> Answer:
    """EXACT, unless a stored value was truncated or a literal is longer than a term can be."""
    cut = column.truncated or any(len(each) > MAX_TERM_BYTES for each in literals)
    return exact_if(not cut)
