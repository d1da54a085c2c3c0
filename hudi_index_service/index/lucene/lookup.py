"""Turns a predicate leaf into a look-up: what to search for, and how well the result answers the
leaf. Look-ups are independent of Lucene; `queries` turns them into Lucene queries.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_index_service.arrow import as_numbers
from hudi_index_service.index.contract import Answer, Conjunction, StoredColumn
from hudi_index_service.index.leaf_lookup import (
    UNDECODED,
    Columns,
    LeafLookup,
    LeafLookups,
    exact_if,
)
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
    intersection,
)
from hudi_index_service.index.lucene.words import phrase_by_words, search_by_words
from hudi_index_service.index.number_encoding import encode_array, encode_range
from hudi_index_service.index.stored_column import element_type, is_array
from hudi_index_service.predicate.bounds import above_prefix
from hudi_index_service.predicate.comparison import is_binary, is_string
from hudi_index_service.predicate.expression import (
    In,
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
    return Terms(null_element_field(column), (b"1",))


class LuceneLookups(LeafLookups[Search]):
    """See `LeafLookups`."""

    def nulls(self, column: str) -> Terms:
        """The search for the rows where the column is NULL."""
        return Terms(null_field(column), (b"1",))

    def nothing(self, column: str) -> Terms:
        """The search for no row."""
        return Terms(null_field(column), ())

    def compared(
        self, column: StoredColumn, operator: Operator, value: pa.Scalar
    ) -> LuceneLookup | None:
        """By a range of numbers or terms."""
        if is_array(column.type):
            return _any_of(column, (value,))
        points = _points_field(column)
        if points is not None:
            field, wide = points
            bounds = encode_range(operator, value, column.type)
            if bounds is None:
                return None
            if bounds.is_empty:
                return LeafLookup(column.name, Points(field, (), wide))
            return LeafLookup(column.name, PointRange(field, bounds.low, bounds.high, wide))
        if KEYWORD in column.fields and _are_terms(column, value):
            return _compared_keyword(column, operator, _bytes(value))
        return None

    def listed(self, column: StoredColumn, leaf: In) -> LuceneLookup | None:
        """By points or terms."""
        return _any_of_many(column, leaf) or _any_of(column, leaf.values)

    def like(self, column: StoredColumn, leaf: Like) -> LuceneLookup | None:
        """By terms that begin alike or match, or by words."""
        if KEYWORD not in column.fields:
            return _by_words(column, leaf.parts)
        field = keyword_field(column.name)
        if column.truncated and UNDECODED in leaf.pattern:
            prefix = leaf.prefix.split(UNDECODED)[0].encode()[:MAX_RANGE_BYTES]
            return LeafLookup(column.name, Prefix(field, prefix), Answer.SUPERSET)
        prefix = leaf.prefix.encode()
        if all(part.kind == "text" for part in leaf.parts):
            search = Terms(field, (prefix[:MAX_TERM_BYTES],))
            return LeafLookup(column.name, search, _exactness(column, prefix))
        if leaf.is_prefix_only and len(prefix) <= MAX_RANGE_BYTES:
            return LeafLookup(column.name, Prefix(field, prefix))
        if column.truncated or len(leaf.pattern) > _LONGEST_PATTERN:
            start = prefix[:MAX_RANGE_BYTES]
            return LeafLookup(column.name, Prefix(field, start), Answer.SUPERSET)
        return LeafLookup(column.name, Pattern(field, leaf.parts))

    def rlike(self, column: StoredColumn, leaf: RLike) -> LuceneLookup | None:
        """By terms that begin as, or contain, what every match does."""
        prefix = leaf.regex.prefix.split(UNDECODED)[0].encode()[:MAX_RANGE_BYTES]
        required_text = _required_text(leaf.regex)
        if KEYWORD not in column.fields:
            return _by_words(column, _containing(required_text))
        field = keyword_field(column.name)
        if prefix:
            return LeafLookup(column.name, Prefix(field, prefix), Answer.SUPERSET)
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
        return number_field(column.name), False
    if WIDE_NUMBER in column.fields:
        return wide_number_field(column.name), True
    return None


def _are_terms(column: StoredColumn, *literals: pa.Scalar) -> bool:
    """Whether the literals have the kind of the column's terms: all text, or all binary."""
    check = is_binary if is_binary(element_type(column.type)) else is_string
    return all(check(literal.type) for literal in literals)


def _compared_keyword(column: StoredColumn, operator: Operator, value: bytes) -> LuceneLookup:
    field, answer = keyword_field(column.name), _exactness(column, value)
    if operator in _EQUALITIES:
        return LeafLookup(column.name, Terms(field, (value[:MAX_TERM_BYTES],)), answer)
    # A truncated value is <= the value itself, so both ends are included if values were truncated.
    inclusive = answer is Answer.SUPERSET or operator in (Operator.LE, Operator.GE)
    if operator in (Operator.GT, Operator.GE):
        if len(value) > MAX_RANGE_BYTES:  # values above the literal are also above its prefix
            value, answer, inclusive = value[:MAX_RANGE_BYTES], Answer.SUPERSET, True
        return LeafLookup(column.name, TermRange(field, value, None, inclusive, False), answer)
    if len(value) > MAX_RANGE_BYTES:
        high, answer, inclusive = above_prefix(value[:MAX_RANGE_BYTES]), Answer.SUPERSET, False
        return LeafLookup(column.name, TermRange(field, None, high, False, inclusive), answer)
    return LeafLookup(column.name, TermRange(field, None, value, False, inclusive), answer)


def _any_of_many(column: StoredColumn, leaf: In) -> LuceneLookup | None:
    """The look-up of `_any_of` for integers or texts, whose sorted values are what is indexed; None
    for other types."""
    points, values = _points_field(column), leaf.ascending
    if values is None:
        return None
    if points is not None and pa.types.is_signed_integer(column.type):
        if leaf.values.type != column.type:
            return None
        field, wide = points
        return LeafLookup(column.name, Points(field, tuple(values), wide))
    if KEYWORD in column.fields and is_string(column.type) and is_string(leaf.values.type):
        if len(max(values, key=len)) > MAX_TERM_BYTES:
            return None
        search = Terms(keyword_field(column.name), tuple(values))
        return LeafLookup(column.name, search, _exactness(column))
    return None


@dataclass(frozen=True, slots=True)
class ListedValues:
    """The terms or numbers of a list of values, in order.

    Attributes:
        places: The place of each value of the list in that order.
        terms, ends: The terms, one after the other, and the end of each.
        numbers: The numbers; None for terms.
    """

    field: str
    places: npt.NDArray[np.int32]
    terms: bytes = b""
    ends: Sequence[int] = ()
    numbers: npt.NDArray[np.int64] | None = None


def listed_values(leaf: In, columns: Columns) -> ListedValues | None:
    """What is looked for where a list of values is looked up value by value; None if that cannot be
    done."""
    column = columns.get(leaf.column.name)
    if column is None or is_array(column.type) or leaf.values.null_count:
        return None
    if NUMBER in column.fields and leaf.values.type == column.type:
        encoded = as_numbers(encode_array(leaf.values))
        numbers = np.unique(encoded)
        places = np.searchsorted(numbers, encoded).astype(np.int32)
        return ListedValues(number_field(column.name), places, numbers=numbers)
    kinds = column.type, leaf.values.type
    if KEYWORD not in column.fields or not (
        all(map(is_string, kinds)) or all(map(is_binary, kinds))
    ):
        return None
    values = leaf.values.cast(pa.large_binary())
    if pc.max(pc.binary_length(values)).as_py() > MAX_TERM_BYTES:
        return None
    order = pc.array_sort_indices(values)
    places = np.empty(len(order), dtype=np.int32)
    places[as_numbers(order)] = np.arange(len(order), dtype=np.int32)
    terms = values.take(order).to_pylist()
    return ListedValues(
        keyword_field(column.name), places, b"".join(terms), list(accumulate(map(len, terms)))
    )


def _any_of(column: StoredColumn, values: Sequence[pa.Scalar]) -> LuceneLookup | None:
    """The look-up for the rows with any of these values."""
    points = _points_field(column)
    if points is not None:
        type = element_type(column.type)
        ranges = [encode_range(Operator.EQ, value, type) for value in values]
        if any(each is None for each in ranges):
            return None
        numbers = tuple(sorted({each.low for each in ranges if each and not each.is_empty}))
        field, wide = points
        return LeafLookup(column.name, Points(field, numbers, wide))
    if KEYWORD in column.fields and _are_terms(column, *values):
        literals = [_bytes(value) for value in values]
        terms = tuple(sorted({literal[:MAX_TERM_BYTES] for literal in literals}))
        search = Terms(keyword_field(column.name), terms)
        return LeafLookup(column.name, search, _exactness(column, *literals))
    return None


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
    field = text_field(leaf.column.name, analyzer)
    return Words(field, analyzer, leaf.mode, leaf.text, leaf.edits)


def _checks_single_rows(leaf_lookup: LuceneLookup) -> bool:
    if leaf_lookup.complement:
        return False
    return isinstance(leaf_lookup.search, Terms | Points | PointRange | Words)


def _exactness(column: StoredColumn, *literals: bytes) -> Answer:
    """EXACT, unless a stored value was truncated or a literal is longer than a term can be."""
    cut = column.truncated or any(len(each) > MAX_TERM_BYTES for each in literals)
    return exact_if(not cut)


def _bytes(value: pa.Scalar) -> bytes:
    return bytes(value.as_buffer())
