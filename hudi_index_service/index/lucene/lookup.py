"""From a predicate leaf to a look-up in the index, described without Lucene: what to search for,
and what the result is worth. `queries` turns a look-up into a Lucene query.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import singledispatch

import pyarrow as pa

from hudi_index_service.index.contract import Answer, StoredColumn
from hudi_index_service.index.lucene.encoding import encode_range
from hudi_index_service.index.lucene.fields import (
    KEYWORD,
    NUMBER,
    keyword_field,
    null_field,
    number_field,
)
from hudi_index_service.predicate.comparison import is_string
from hudi_index_service.predicate.expression import (
    Compare,
    In,
    IsNull,
    Like,
    Not,
    Operator,
    Predicate,
)

MAX_TERM_BYTES = 32_766
"""Lucene's limit; longer values are indexed by their first bytes (`truncated` in the manifest)."""

MAX_RANGE_BYTES = 512
"""Ranges and prefixes are automata in Lucene, which refuses those of more than 1,000 states: a
longer literal is searched by its first bytes."""

_LONGEST_WILDCARD = 200  # characters; up to four states each
_LONGEST_BEHIND_ANY = 128
_MOST_ONES = 6
_WILDCARDS = {"any": "*", "one": "?"}


@dataclass(frozen=True, slots=True)
class Terms:
    """Documents with any of these terms; none when empty."""

    field: str
    terms: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Prefix:
    """Documents with a term that starts with these bytes."""

    field: str
    prefix: bytes


@dataclass(frozen=True, slots=True)
class TermRange:
    """Documents with a term between two byte strings; None is no bound."""

    field: str
    low: bytes | None
    high: bytes | None
    inclusive: bool


@dataclass(frozen=True, slots=True)
class Wildcard:
    """Documents with a term that fits Lucene's wildcard pattern (``*``, ``?``, ``\\`` escapes)."""

    field: str
    pattern: str


@dataclass(frozen=True, slots=True)
class Points:
    """Documents with any of these numbers; none when empty."""

    field: str
    points: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PointRange:
    """Documents with a number from low to high, both included."""

    field: str
    low: int
    high: int


Search = Terms | Prefix | TermRange | Wildcard | Points | PointRange


@dataclass(frozen=True, slots=True)
class Lookup:
    """How to answer a leaf: search, then perhaps take the complement.

    Attributes:
        complement: The answer is all rows but the found ones…
        without_null: …and but those where `column` is NULL.
    """

    column: str
    search: Search
    answer: Answer = Answer.EXACT
    complement: bool = False
    without_null: bool = False


Columns = Mapping[str, StoredColumn]


def nulls_of(column: str) -> Terms:
    """Finds the rows where the column is NULL."""
    return Terms(null_field(column), (b"1",))


@singledispatch
def lookup(leaf: Predicate, columns: Columns) -> Lookup | None:
    """The look-up for a leaf of a predicate in negation normal form; None if Lucene has none."""
    return None


@lookup.register
def _is_null(leaf: IsNull, columns: Columns) -> Lookup | None:
    if leaf.column.name not in columns:
        return None
    return Lookup(leaf.column.name, nulls_of(leaf.column.name))


@lookup.register
def _compare(leaf: Compare, columns: Columns) -> Lookup | None:
    stored = columns.get(leaf.column.name)
    if stored is None:
        return None
    if leaf.operator is Operator.NE:
        return _negated(_compare(replace(leaf, operator=Operator.EQ), columns), without_null=True)
    if NUMBER in stored.fields:
        bounds = encode_range(leaf.operator, leaf.value, stored.type)
        if bounds is None:
            return None
        field = number_field(stored.name)
        if bounds.is_empty:
            return Lookup(stored.name, Points(field, ()))
        return Lookup(stored.name, PointRange(field, bounds.low, bounds.high))
    if KEYWORD in stored.fields and is_string(leaf.value.type):
        return _compare_keyword(leaf, stored)
    return None


def _compare_keyword(leaf: Compare, stored: StoredColumn) -> Lookup:
    field = keyword_field(stored.name)
    value = _utf8(leaf.value)
    answer = _exactness(stored, value)
    if leaf.operator in (Operator.EQ, Operator.EQ_NULL_SAFE):
        return Lookup(stored.name, Terms(field, (value[:MAX_TERM_BYTES],)), answer)
    # A truncated value is <= the value itself, so next to truncation both ends are included.
    inclusive = answer is Answer.SUPERSET or leaf.operator in (Operator.LE, Operator.GE)
    if leaf.operator in (Operator.GT, Operator.GE):
        if len(value) > MAX_RANGE_BYTES:  # what is above the value is above what it begins with
            low, answer, inclusive = value[:MAX_RANGE_BYTES], Answer.SUPERSET, True
        else:
            low = value
        return Lookup(stored.name, TermRange(field, low, None, inclusive), answer)
    if len(value) > MAX_RANGE_BYTES:
        high = _above(value[:MAX_RANGE_BYTES])
        return Lookup(stored.name, TermRange(field, None, high, False), Answer.SUPERSET)
    return Lookup(stored.name, TermRange(field, None, value, inclusive), answer)


@lookup.register
def _in(leaf: In, columns: Columns) -> Lookup | None:
    stored = columns.get(leaf.column.name)
    if stored is None:
        return None
    if NUMBER in stored.fields:
        ranges = [encode_range(Operator.EQ, value, stored.type) for value in leaf.values]
        if any(each is None for each in ranges):
            return None
        points = tuple(sorted({each.low for each in ranges if each and not each.is_empty}))
        return Lookup(stored.name, Points(number_field(stored.name), points))
    if KEYWORD in stored.fields and all(is_string(value.type) for value in leaf.values):
        values = [_utf8(value) for value in leaf.values]
        terms = tuple(sorted({value[:MAX_TERM_BYTES] for value in values}))
        search = Terms(keyword_field(stored.name), terms)
        return Lookup(stored.name, search, _exactness(stored, *values))
    return None


@lookup.register
def _like(leaf: Like, columns: Columns) -> Lookup | None:
    stored = columns.get(leaf.column.name)
    if stored is None or KEYWORD not in stored.fields:
        return None
    field = keyword_field(stored.name)
    prefix = leaf.prefix.encode()
    if all(part.kind == "text" for part in leaf.parts):
        search = Terms(field, (prefix[:MAX_TERM_BYTES],))
        return Lookup(stored.name, search, _exactness(stored, prefix))
    if leaf.is_prefix_only and len(prefix) <= MAX_RANGE_BYTES:
        return Lookup(stored.name, Prefix(field, prefix))
    if stored.statistics.truncated or not _is_cheap_wildcard(leaf):
        return Lookup(stored.name, Prefix(field, prefix[:MAX_RANGE_BYTES]), Answer.SUPERSET)
    pattern = "".join(_WILDCARDS.get(part.kind) or _escaped(part.text) for part in leaf.parts)
    return Lookup(stored.name, Wildcard(field, pattern))


@lookup.register
def _not(leaf: Not, columns: Columns) -> Lookup | None:
    operand = leaf.operand
    if isinstance(operand, In) and operand.has_null:
        if operand.column.name not in columns:
            return None
        # NOT IN a list with NULL is never TRUE.
        return Lookup(operand.column.name, Terms(null_field(operand.column.name), ()))
    null_safe = isinstance(operand, Compare) and operand.operator is Operator.EQ_NULL_SAFE
    without_null = not (isinstance(operand, IsNull) or null_safe)
    return _negated(lookup(operand, columns), without_null=without_null)


def _negated(found: Lookup | None, *, without_null: bool) -> Lookup | None:
    """The complement; only an exact answer that is none itself has one."""
    if found is None or found.answer is not Answer.EXACT or found.complement:
        return None
    return replace(found, complement=True, without_null=without_null)


def _exactness(stored: StoredColumn, *literals: bytes) -> Answer:
    """Exact, unless a stored value or a literal is longer than a term can be."""
    cut = stored.statistics.truncated or any(len(each) > MAX_TERM_BYTES for each in literals)
    return Answer.SUPERSET if cut else Answer.EXACT


def _above(start: bytes) -> bytes | None:
    """The least byte string above all that begin with `start`; None if there is none."""
    kept = start.rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else None


def _is_cheap_wildcard(leaf: Like) -> bool:
    """Whether Lucene can surely make a deterministic automaton of the pattern.

    Behind a ``%`` each ``_`` can double the automaton, and text that repeats itself makes it grow
    with the square of its length. Without a ``%`` it is as long as the pattern.
    """
    kinds = [part.kind for part in leaf.parts]
    behind = kinds.index("any") if "any" in kinds else len(kinds)
    length = sum(len(part.text) or 1 for part in leaf.parts)
    length_behind = sum(len(part.text) for part in leaf.parts[behind:])
    return length <= _LONGEST_WILDCARD and (
        length_behind <= _LONGEST_BEHIND_ANY and kinds[behind:].count("one") <= _MOST_ONES
    )


def _escaped(text: str) -> str:
    return "".join("\\" + character if character in "*?\\" else character for character in text)


def _utf8(value: pa.Scalar) -> bytes:
    return bytes(value.as_buffer())
