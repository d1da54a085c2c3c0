"""The predicate tree: a parsed ``where``, bound to a table's columns and types.

Every node is immutable and hashable. Literals have the column's own type: where Spark would cast
the column to compare (``id > 1.5``), the comparison is rewritten to one on the column itself with
the same answer for every value (``id > 1``).
Truth is three-valued as in SQL: a predicate over a row is TRUE, FALSE or NULL, and a row is kept
only if it is TRUE.

In negation normal form, in which only TRUE is tracked, NOT stands directly above leaves only.

``str()`` of a predicate is Spark SQL with the same meaning. Full-text search, which Spark lacks, is
written in this service's own syntax.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Any, ClassVar, Self, TypeAlias, cast

import pyarrow as pa

from hudi_index_service.columns import column_path
from hudi_index_service.predicate.regex import Regex
from hudi_index_service.predicate.values import bound_of, identifier_sql, literal_sql, string_sql


class Operator(Enum):
    """Comparisons of a column with a literal; the value is the Spark SQL spelling."""

    EQ = "="
    NE = "<>"
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="
    EQ_NULL_SAFE = "<=>"

    @property
    def negated(self) -> "Operator":
        """The operator that is TRUE where this one is FALSE, and NULL where this one is NULL.

        Raises KeyError for ``<=>``, which has no such operator.
        """
        return _NEGATED[self]


_NEGATED = {
    Operator.EQ: Operator.NE,
    Operator.NE: Operator.EQ,
    Operator.LT: Operator.GE,
    Operator.GE: Operator.LT,
    Operator.GT: Operator.LE,
    Operator.LE: Operator.GT,
}


@dataclass(frozen=True, slots=True)
class BoundColumn:
    """A column of the table, or a field of one: its name (see `hudi_index_service.columns`) as
    spelled in the schema, and its Arrow type."""

    name: str
    type: pa.DataType

    def __hash__(self) -> int:
        return hash(self.name)

    def __str__(self) -> str:
        return ".".join(identifier_sql(part) for part in column_path(self.name))


class _Node:
    """Base of the tree's nodes."""

    __slots__ = ()

    @property
    def children(self) -> "tuple[Predicate, ...]":
        """The predicates directly below this one; empty for a leaf."""
        return ()

    def leaves(self) -> "Iterator[Predicate]":
        """All nodes without children, left to right."""
        if not self.children:
            yield cast("Predicate", self)
        for child in self.children:
            yield from child.leaves()

    def columns(self) -> frozenset[str]:
        """The names of the columns that the predicate needs."""
        return frozenset([leaf.column.name for leaf in self.leaves() if isinstance(leaf, Leaf)])


@dataclass(frozen=True, slots=True)
class Leaf(_Node):
    """A condition on one column; base of all in `AnyLeaf`."""

    column: BoundColumn


@dataclass(frozen=True, slots=True)
class Constant(_Node):
    """TRUE, FALSE or (None) NULL for every row."""

    value: bool | None

    def __str__(self) -> str:
        return {True: "TRUE", False: "FALSE", None: "CAST(NULL AS BOOLEAN)"}[self.value]


@dataclass(frozen=True, slots=True)
class Compare(Leaf):
    """``column <operator> value``. The value is never NULL; its type is the column's type, or the
    type of a dictionary column's values.

    Floating point: NaN equals NaN and is above all other values, -0.0 equals 0.0. Strings and
    binary compare by unsigned bytes (of UTF-8).
    """

    operator: Operator
    value: pa.Scalar

    def __str__(self) -> str:
        return f"{self.column} {self.operator.value} {literal_sql(self.value)}"


@dataclass(frozen=True)
class In(Leaf):
    """``column IN (values…)``: TRUE where the column equals a value, else NULL if the column or
    (``has_null``) a listed value is NULL, else FALSE. There is at least one value; values are
    distinct, not NULL, of the column's type as in `Compare`.
    """

    values: pa.Array
    has_null: bool = False

    @classmethod
    def of(cls, column: BoundColumn, values: Sequence[pa.Scalar], has_null: bool = False) -> Self:
        """With values of one type, given one by one."""
        # Not through Python's values, whose dates end with the year 9999.
        return cls(column, pa.concat_arrays([pa.repeat(each, 1) for each in values]), has_null)

    def __hash__(self) -> int:
        return hash((self.column, len(self.values), self.values[0], self.has_null))

    @cached_property
    def ascending(self) -> list[Any] | None:
        """The values in the form of `bound_of`, sorted; None if a value has no such form."""
        kind = self.values.type
        if pa.types.is_string(kind):  # faster than one by one
            bounds = self.values.cast(pa.binary()).to_pylist()
        elif pa.types.is_signed_integer(kind):
            bounds = self.values.to_pylist()
        else:
            bounds = [bound_of(value) for value in self.values]
        return None if None in bounds else sorted(bounds)

    def __str__(self) -> str:
        items = [literal_sql(value) for value in self.values]
        return f"{self.column} IN ({', '.join(items + ['NULL'] * self.has_null)})"


@dataclass(frozen=True, slots=True)
class IsNull(Leaf):
    """``column IS NULL``; never NULL itself."""

    def __str__(self) -> str:
        return f"{self.column} IS NULL"


@dataclass(frozen=True, slots=True)
class LikePart:
    """One piece of a LIKE pattern: literal text, ``%`` (any number of characters) or ``_`` (one
    character, that is one Unicode code point)."""

    kind: str  # "text" | "any" | "one"
    text: str = ""


@dataclass(frozen=True, slots=True)
class Like(Leaf):
    """``column LIKE pattern ESCAPE escape`` on a string column, case-sensitive.

    `parts` is the parsed pattern: adjacent texts merged, adjacent ``%`` merged. Pattern and escape
    determine it, so it is left out of comparisons, which keeps them fast for long patterns.
    """

    pattern: str
    escape: str
    parts: tuple[LikePart, ...] = field(compare=False, repr=False)

    @property
    def prefix(self) -> str:
        """The literal text that every match starts with; may be empty."""
        return self.parts[0].text if self.parts and self.parts[0].kind == "text" else ""

    @property
    def is_prefix_only(self) -> bool:
        """Whether the pattern is exactly ``text%``, so that a prefix look-up answers it fully."""
        return len(self.parts) == 2 and self.parts[0].kind == "text" and self.parts[1].kind == "any"

    def __str__(self) -> str:
        return f"{self.column} LIKE {string_sql(self.pattern)} ESCAPE {string_sql(self.escape)}"


@dataclass(frozen=True, slots=True)
class RLike(Leaf):
    """``column RLIKE pattern`` on a string column: whether Java's regular expression matches
    somewhere in the text. `regex` is the equivalent for RE2."""

    pattern: str
    regex: Regex

    def __str__(self) -> str:
        return f"{self.column} RLIKE {string_sql(self.pattern)}"


class MatchMode(Enum):
    """The kind of a full-text search; the value is the function's name in a where text."""

    ALL = "match"  #: all words of the text, in any order
    ANY = "match_any"  #: any of the words
    PHRASE = "match_phrase"  #: the words in sequence
    PREFIX = "match_prefix"  #: a word with this prefix
    FUZZY = "match_fuzzy"  #: for each word of the text, one a few edits away


@dataclass(frozen=True, slots=True)
class AnalyzedText:
    """The analysis of a column's texts.

    Attributes:
        analyzer: The analyzer's name.
        matches: Decides a full-text search on texts that were read, with the same result as an
            index with the same analyzer: whether each matches; null where the text is NULL.
    """

    analyzer: str
    matches: "Callable[[Match, pa.Array], pa.BooleanArray]"


@dataclass(frozen=True, slots=True)
class Match(Leaf):
    """A full-text search in a string column. NULL where the column is NULL; FALSE for every text if
    the analyzer finds no word in the searched text.

    Attributes:
        text: The text to search for.
        edits: For FUZZY, the maximum edit distance of a word.
    """

    mode: MatchMode
    text: str
    words: AnalyzedText
    edits: int = 0

    def __str__(self) -> str:
        edits = f", {self.edits}" if self.mode is MatchMode.FUZZY else ""
        return f"{self.mode.value}({self.column}, {string_sql(self.text)}{edits})"


@dataclass(frozen=True, slots=True)
class ArrayContains(Leaf):
    """``array_contains(column, value)`` on an array column: TRUE where an element equals the value,
    else NULL if the array or an element is NULL, else FALSE.

    The value is never NULL, of the elements' type, and equal to an element as in `Compare`.
    """

    value: pa.Scalar

    def __str__(self) -> str:
        return f"array_contains({self.column}, {literal_sql(self.value)})"


@dataclass(frozen=True, slots=True)
class Not(_Node):
    """TRUE and FALSE swapped, NULL kept."""

    operand: "Predicate"

    @property
    def children(self) -> "tuple[Predicate, ...]":
        return (self.operand,)

    def __str__(self) -> str:
        if isinstance(self.operand, IsNull):
            return f"{self.operand.column} IS NOT NULL"
        return f"NOT ({self.operand})"


@dataclass(frozen=True, slots=True)
class _Connective(_Node):
    """Two or more predicates, joined by a word."""

    operands: "tuple[Predicate, ...]"
    _word: ClassVar[str]

    @property
    def children(self) -> "tuple[Predicate, ...]":
        return self.operands

    def __str__(self) -> str:
        return f" {self._word} ".join(f"({operand})" for operand in self.operands)


@dataclass(frozen=True, slots=True)
class And(_Connective):
    """Three-valued conjunction of two or more predicates."""

    _word = "AND"


class Together(And):
    """Conjuncts that an index answers by one look-up, as it does a leaf: on one column, such as
    both ends of a range, or a `Conjunction`."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Or(_Connective):
    """Three-valued disjunction of two or more predicates."""

    _word = "OR"


AnyLeaf: TypeAlias = ArrayContains | Compare | In | IsNull | Like | Match | RLike
"""All conditions on a column. `predicate.fold` has the functions that walk through a tree."""

Predicate: TypeAlias = And | Or | Not | Constant | AnyLeaf


def conjunction(predicates: Iterable[Predicate]) -> Predicate:
    """AND of any number of predicates, nested ANDs flattened; TRUE of none."""
    return _joined(And, predicates, of_none=Constant(True))


def disjunction(predicates: Iterable[Predicate]) -> Predicate:
    """OR of any number of predicates, nested ORs flattened; FALSE of none."""
    return _joined(Or, predicates, of_none=Constant(False))


def _joined(
    kind: type[And | Or], predicates: Iterable[Predicate], *, of_none: Constant
) -> Predicate:
    flat: list[Predicate] = []
    for predicate in predicates:
        flat.extend(predicate.operands if type(predicate) is kind else (predicate,))
    if not flat:
        return of_none
    return flat[0] if len(flat) == 1 else kind(tuple(flat))
