"""Which look-up answers a leaf of a predicate, or conjuncts, and what the rows that it finds say:
one walk, and one base of readers, for all index types. A type says what it searches for, how well
that answers, and how it searches; here, three-valued logic makes complements of it, conjuncts on
one column are looked up at once, and many open entries are asked by one call."""

from abc import ABC, abstractmethod
from array import array
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from hudi_index_service.arrow import as_numbers
from hudi_index_service.index.contract import (
    Answer,
    Conjunction,
    IndexReader,
    ManyReaders,
    Positions,
    StoredColumn,
    Truths,
)
from hudi_index_service.index.number_encoding import encode_array, encode_wide
from hudi_index_service.index.routed import Numbers, Routed
from hudi_index_service.index.stored_column import is_array, is_number, is_wide_number
from hudi_index_service.predicate.comparison import is_binary, is_string
from hudi_index_service.predicate.expression import (
    And,
    ArrayContains,
    Compare,
    In,
    IsNull,
    Leaf,
    Like,
    Match,
    Not,
    Operator,
    Predicate,
    RLike,
)

Search = TypeVar("Search")

Columns: TypeAlias = Mapping[str, StoredColumn]
"""An entry's columns by name."""

UNDECODED = "\ufffd"
"""In Spark's patterns, this character also stands for bytes that are not UTF-8."""

MOST_KNOWN = 64
"""The number of leaves, or conjuncts looked up together, whose look-ups an index type keeps. Most
queries have fewer; the limit exists because a list of 10,000 values takes some megabytes."""


@dataclass(frozen=True, slots=True)
class ListedValues:
    """The values of a list as indexes hold them, in order.

    Attributes:
        places: The place of each value of the list in that order.
        values: Numbers as `encode_array` encodes them, or wide numbers and texts as bytes.
        is_cut: Whether these are only the first bytes of a longer text.
    """

    places: Numbers
    values: npt.NDArray[np.int64] | list[bytes]
    is_cut: bool = False


@dataclass(frozen=True, slots=True)
class LeafLookup(Generic[Search]):
    """A look-up that answers a leaf, or conjuncts: a search, optionally followed by taking the
    complement.

    Attributes:
        column: The column; for conjuncts on several, one of them, or what holds all of them.
        complement: Whether the answer is all rows except those found.
        without_null: Whether the complement also excludes rows where the column, or an element of
            it, is NULL.
        listed: The values of a list that can be looked up one by one.
    """

    column: str
    search: Search
    answer: Answer = Answer.EXACT
    complement: bool = False
    without_null: bool = False
    listed: ListedValues | None = field(default=None, compare=False)  # follows from `search`


class LeafLookups(ABC, Generic[Search]):
    """Makes the look-ups of an index type. Calling it keeps them for other entries with the same
    column layouts, on which alone they depend: that for a long list of values takes longer to make
    than to run, and is the same for all base files of a table. Safe to use from several threads.

    Attributes:
        longest_text: The most bytes that an index holds of a text.
    """

    longest_text: int

    def __init__(self) -> None:
        self._known: dict[
            Predicate, tuple[frozenset[str], dict[tuple[Hashable, ...], LeafLookup[Search] | None]]
        ] = {}

    def __call__(self, predicate: Predicate, columns: Columns) -> LeafLookup[Search] | None:
        """The look-up for a leaf of a predicate in negation normal form, for an AND of leaves on
        one column, or for a `Conjunction`; None if the index type cannot answer it."""
        known = self._known.get(predicate)
        if known is None:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            known = self._known[predicate] = predicate.columns(), {}
        names, lookups = known
        layouts = tuple([columns[name].layout for name in names if name in columns])
        if layouts not in lookups:
            lookups[layouts] = self.made(predicate, columns)
        return lookups[layouts]

    def __len__(self) -> int:
        return len(self._known)

    def made(self, predicate: Predicate, columns: Columns) -> LeafLookup[Search] | None:
        """The same, made anew."""
        return self._of(predicate, columns)

    def _of(self, predicate: Predicate, columns: Columns) -> LeafLookup[Search] | None:
        match predicate:
            case Conjunction():
                return self.together(predicate, columns)
            case And():
                return self._of_one_column(predicate, columns)
            case Not(operand):
                return self._negated(operand, columns)
            case Leaf(column) if column.name in columns:
                return self._of_leaf(predicate, columns[column.name])
        return None

    def _of_leaf(self, leaf: Predicate, column: StoredColumn) -> LeafLookup[Search] | None:
        match leaf:
            case IsNull():
                return LeafLookup(column.name, self.nulls(column.name))
            case Compare(operator=Operator.NE):
                equal = self._of_leaf(replace(leaf, operator=Operator.EQ), column)
                return _complement(equal, without_null=True)
            case ArrayContains(value=value) if is_array(column.type):
                return self.compared(column, Operator.EQ, value)
            case Match():
                return self.words(column, leaf)
        if is_array(column.type):
            return None  # Spark orders arrays, and compares them whole
        match leaf:
            case Compare(operator=operator, value=value):
                return self.compared(column, operator, value)
            case In():
                return self._listed(column, leaf.values)
            case Like() if is_string(column.type):
                return self.like(column, leaf)
            case RLike() if is_string(column.type):
                return self.rlike(column, leaf)
        return None

    def _of_one_column(self, conjuncts: And, columns: Columns) -> LeafLookup[Search] | None:
        """The look-up for conjuncts on one column, if one search answers them all."""
        combined: LeafLookup[Search] | None = None
        for leaf in conjuncts.operands:
            each = self._of(leaf, columns)
            if each is None or each.complement or is_array(columns[each.column].type):
                return None  # different elements may satisfy different conjuncts
            if combined is None:
                combined = each
                continue
            if combined.column != each.column:
                return None
            search = self.both(combined.search, each.search)
            if search is None:
                return None
            answer = exact_if(combined.answer is each.answer is Answer.EXACT)
            combined = LeafLookup(combined.column, search, answer)
        return combined

    def _listed(self, column: StoredColumn, values: pa.Array) -> LeafLookup[Search] | None:
        listed = _listed_values(column.type, values, self.longest_text)
        if listed is None:
            return None
        found = self.of_values(column, listed)
        # Wide numbers are not looked up one by one: indexes hold them in different ways.
        return (
            found if found is None or is_wide_number(column.type) else replace(found, listed=listed)
        )

    def _negated(self, operand: Predicate, columns: Columns) -> LeafLookup[Search] | None:
        if isinstance(operand, In) and operand.has_null:
            # NOT IN a list with NULL is never TRUE.
            name = operand.column.name
            return LeafLookup(name, self.nothing(name)) if name in columns else None
        null_safe = isinstance(operand, Compare) and operand.operator is Operator.EQ_NULL_SAFE
        without_null = not (isinstance(operand, IsNull) or null_safe)
        return _complement(self._of(operand, columns), without_null=without_null)

    @abstractmethod
    def nulls(self, column: str) -> Search:
        """The search for the rows where the column is NULL."""

    @abstractmethod
    def nothing(self, column: str) -> Search:
        """The search for no row."""

    @abstractmethod
    def compared(
        self, column: StoredColumn, operator: Operator, value: pa.Scalar
    ) -> LeafLookup[Search] | None:
        """The look-up for values of the column for which a comparison other than ``<>`` is TRUE;
        for the elements of an array that equal one."""

    @abstractmethod
    def of_values(self, column: StoredColumn, listed: ListedValues) -> LeafLookup[Search] | None:
        """The look-up for some values; None if the column's fields do not hold them."""

    @abstractmethod
    def like(self, column: StoredColumn, leaf: Like) -> LeafLookup[Search] | None:
        """The look-up for texts that match a pattern."""

    @abstractmethod
    def rlike(self, column: StoredColumn, leaf: RLike) -> LeafLookup[Search] | None:
        """The look-up for texts that match a regular expression."""

    def words(self, column: StoredColumn, leaf: Match) -> LeafLookup[Search] | None:
        """The look-up for a full-text search."""
        return None

    @abstractmethod
    def both(self, one: Search, other: Search) -> Search | None:
        """The search for the rows that two searches in one column find, if no row has two values
        in it. None if one search cannot express it."""

    def together(self, conjuncts: Conjunction, columns: Columns) -> LeafLookup[Search] | None:
        """The look-up for conjuncts on several columns."""
        return None


def _listed_values(type: pa.DataType, values: pa.Array, longest: int) -> ListedValues | None:
    """The values of a list in a column of a type, texts cut to the `longest` bytes; None if they
    are of another type."""
    if is_number(type) and values.type == type:
        encoded = as_numbers(encode_array(values))
        numbers = np.unique(encoded)
        return ListedValues(np.searchsorted(numbers, encoded).astype(np.int32), numbers)
    is_cut = False
    if is_wide_number(type) and values.type == type:
        texts = encode_wide(values).cast(pa.large_binary())
    elif any(kind(type) and kind(values.type) for kind in (is_string, is_binary)):
        texts = values.cast(pa.large_binary())
        is_cut = pc.max(pc.binary_length(texts)).as_py() > longest
        texts = pc.binary_slice(texts, 0, longest) if is_cut else texts
    else:
        return None
    ordered = texts.unique().sort()
    places = as_numbers(pc.index_in(texts, value_set=ordered))
    return ListedValues(places, ordered.to_pylist(), is_cut)


def exact_if(is_exact: bool) -> Answer:
    """EXACT or SUPERSET."""
    return Answer.EXACT if is_exact else Answer.SUPERSET


def _complement(
    positive: LeafLookup[Search] | None, *, without_null: bool
) -> LeafLookup[Search] | None:
    """The complement; None unless the answer is exact and not itself a complement."""
    if positive is None or positive.answer is not Answer.EXACT or positive.complement:
        return None
    return replace(positive, complement=True, without_null=without_null)


class LookupReader(IndexReader, Generic[Search]):
    """An open entry.

    Attributes:
        lookups: Those of the index type.
        rows: The number of rows.
        columns: The columns by name.
        is_local: Whether all bytes are in the local file.
    """

    def __init__(
        self,
        lookups: LeafLookups[Search],
        rows: int,
        columns: Sequence[StoredColumn],
        *,
        is_local: bool,
    ) -> None:
        self.rows = rows
        self.columns = {column.name: column for column in columns}
        self.is_local = is_local
        self.lookups = lookups
        self._nulls: dict[str, BitMap] = {}

    def estimate(self, leaf: Predicate) -> int:
        """The rows that are found, or left if those found are excluded."""
        lookup = self._lookup(leaf)
        found = self._estimate_found(lookup)
        return self.rows - found if lookup.complement else found

    def row_bounds(self, leaf: Predicate) -> tuple[int, int]:
        """Bounds of the rows for which the leaf is TRUE, from those of the rows that are found."""
        lookup = self._lookup(leaf)
        least, most = self._found_bounds(lookup)
        if lookup.complement:
            column, nulls = self.columns[lookup.column], 0
            if lookup.without_null:
                of_array = is_array(column.type)
                nulls = len(self._null_rows(column.name)) if of_array else column.null_count
            # An array may hold a matching element and a NULL.
            excluded = max(least, nulls) if is_array(column.type) else least + nulls
            least, most = self.rows - nulls - most, self.rows - excluded
        least = max(least, 0) if lookup.answer is Answer.EXACT else 0
        return least, min(max(most, 0), self.rows)

    @abstractmethod
    def _estimate_found(self, lookup: LeafLookup[Search]) -> int:
        """An estimate of the rows that a look-up finds, before any complement."""

    @abstractmethod
    def _found_bounds(self, lookup: LeafLookup[Search]) -> tuple[int, int]:
        """Lower and upper bounds of the rows that a look-up finds, before any complement."""

    @abstractmethod
    def _find_nulls(self, column: StoredColumn) -> BitMap:
        """The rows where a column is NULL, or is an array with a NULL element."""

    def _lookup(self, leaf: Predicate) -> LeafLookup[Search]:
        lookup = self.lookups(leaf, self.columns)
        if lookup is None:
            raise ValueError(f"This index does not answer {leaf}: check IndexType.answer first.")
        return lookup

    def _others(self, lookup: LeafLookup[Search], rows: BitMap, found: BitMap) -> BitMap:
        """The given rows that are in the look-up's complement."""
        remaining = rows - found
        return remaining - self._null_rows(lookup.column) if lookup.without_null else remaining

    def _null_rows(self, column: str) -> BitMap:
        rows = self._nulls.get(column)
        if rows is None:
            rows = self._nulls[column] = self._find_nulls(self.columns[column])
        return rows


Reader = TypeVar("Reader", bound=LookupReader[Any])


class LookupReaders(ManyReaders, Generic[Reader]):
    """Many open entries, of which those with all bytes in the local file are asked by one call.

    Args:
        kind: The class of the readers, of which there is at least one.
    """

    def __init__(self, kind: type[Reader], readers: Sequence[IndexReader]) -> None:
        self._readers = [each for each in readers if isinstance(each, kind)]
        self._is_local = np.array([each.is_local for each in self._readers], dtype=bool)
        self._numbers = np.cumsum(self._is_local, dtype=np.int32) - np.int32(1)

    def _lookup(self, leaf: Predicate) -> LeafLookup[Any] | None:
        first = self._readers[0]
        return first.lookups(leaf, first.columns)

    def _asked(self, among: Positions) -> tuple[Truths, Positions]:
        """Which of some entries are asked, and their numbers among all that can be."""
        is_local = self._is_local[among]
        return is_local, self._numbers[among[is_local]]

    def _listed(
        self, leaf: In, among: Positions, values: Routed
    ) -> tuple[LeafLookup[Any], ListedValues, Numbers, Numbers] | None:
        """The look-up of a list, its values, and those to look up in the entries that are asked, as
        `Routed.sorted_by` returns them; None if values are not looked up one by one."""
        lookup = self._lookup(leaf)
        if lookup is None or lookup.listed is None:
            return None
        asked = values.of_files(np.flatnonzero(self._is_local[among]))
        return lookup, lookup.listed, *asked.sorted_by(lookup.listed.places)


def row_sets(is_asked: Iterable[bool], counts: Iterable[int], rows: bytes) -> list[BitMap | None]:
    """The rows of each entry; None for one that was not asked, and for a negative count.

    Args:
        is_asked: For each entry, whether the call asked it.
        counts: The number of rows of each entry that was asked.
        rows: The row ids of all these, one after the other, as unsigned 32-bit integers.
    """
    sets: list[BitMap | None] = []
    left, end = iter(counts), 0
    for each in is_asked:
        count = next(left) if each else -1
        if count < 0:
            sets.append(None)
            continue
        start, end = end, end + 4 * count
        # The fastest way into a bitmap.
        sets.append(BitMap(array("I", rows[start:end])) if count else BitMap())
    return sets
