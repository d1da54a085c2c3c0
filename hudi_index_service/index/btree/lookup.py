"""Turns a predicate leaf, or conjuncts, into a look-up in a tree, a column's own or that of a
composite key: the keys to look for, and how well the result answers. Reads no index bytes."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, singledispatch

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_index_service.arrow import as_numbers
from hudi_index_service.index.btree.fields import (
    ANY_VALUE,
    KEY,
    NULL_KEY,
    composites,
    cut,
    has_number_keys,
    value_of_point,
    values_between,
)
from hudi_index_service.index.btree.keys import (
    CUT_BYTES,
    EVERY_KEY,
    Interval,
    Intervals,
    Points,
    after,
    byte_keys,
    bytes_of_numbers,
    intersection,
    key_of_number,
    number_keys,
    prefixed,
)
from hudi_index_service.index.contract import Answer, Conjunction, StoredColumn
from hudi_index_service.index.known_lookups import KnownLookups
from hudi_index_service.index.number_encoding import encode_range, wide_bytes
from hudi_index_service.index.stored_column import element_type, is_array, is_wide_number
from hudi_index_service.predicate.comparison import is_binary, is_string
from hudi_index_service.predicate.expression import (
    And,
    ArrayContains,
    Compare,
    In,
    IsNull,
    Like,
    Not,
    Operator,
    Predicate,
    RLike,
)

_BROKEN = "\ufffd"  # in Spark's patterns, it also stands for bytes that are not UTF-8
_MOST_INTERVALS = 20_000
"""Combinations of values of several columns; more are looked up column by column."""

Columns = Mapping[str, StoredColumn]


@dataclass(frozen=True)
class TreeLookup:
    """A look-up that answers a leaf, or conjuncts: finding rows, optionally followed by taking the
    complement.

    Attributes:
        tree: The column, or the field of a composite key, whose tree is searched.
        keys: The keys whose rows to find; None to find the rows where the column is NULL.
        complement: Whether the answer is all rows except those found; never of a composite key.
        without_null: Whether the complement also excludes rows where the column, or an element of
            it, is NULL.
    """

    tree: str
    keys: Intervals | None
    answer: Answer = Answer.EXACT
    complement: bool = False
    without_null: bool = False

    @cached_property
    def points(self) -> Points | None:
        """The keys, if they are single ones; else None."""
        keys = self.keys or ()
        if isinstance(keys, Points):
            return keys
        if keys and all(each.is_point for each in keys):
            return Points([each.low for each in keys])
        return None


def lookup(predicate: Predicate, columns: Columns) -> TreeLookup | None:
    """The look-up for a leaf of a predicate in negation normal form, for an AND of leaves on one
    column, or for a `Conjunction` on the first columns of a composite key; None if no tree answers
    it."""
    own_keys = {name: each for name, each in columns.items() if KEY in each.fields}
    found = _lookup(predicate, own_keys)
    return _composite(predicate, columns) if found is None else found


@singledispatch
def _lookup(leaf: Predicate, columns: Columns) -> TreeLookup | None:
    """The look-up in a column's own tree."""
    return None


@_lookup.register
def _is_null(leaf: IsNull, columns: Columns) -> TreeLookup | None:
    return TreeLookup(leaf.column.name, None) if leaf.column.name in columns else None


@_lookup.register
def _compare(leaf: Compare, columns: Columns) -> TreeLookup | None:
    column = columns.get(leaf.column.name)
    if column is None or is_array(column.type):  # Spark orders arrays, and compares them whole
        return None
    if leaf.operator is Operator.NE:
        return _negate(_compare(replace(leaf, operator=Operator.EQ), columns), without_null=True)
    return _keys_where(column, leaf.operator, leaf.value)


def _keys_where(column: StoredColumn, operator: Operator, value: pa.Scalar) -> TreeLookup | None:
    """The look-up for values of the column, or elements, for which the comparison is TRUE."""
    type = element_type(column.type)
    if has_number_keys(type) or is_wide_number(type):
        bounds = encode_range(operator, value, type)
        if bounds is None:
            return None
        if bounds.is_empty:
            return TreeLookup(column.name, ())
        key = key_of_number if has_number_keys(type) else wide_bytes
        return TreeLookup(column.name, (Interval(key(bounds.low), after(key(bounds.high))),))
    comparable = is_binary if is_binary(type) else is_string
    if not comparable(value.type):
        return None
    return _byte_keys_where(column, operator, bytes(value.as_buffer()))


def _byte_keys_where(column: StoredColumn, operator: Operator, value: bytes) -> TreeLookup:
    # A literal shorter than a cut key compares with the key as with the value itself. A longer one
    # compares by its prefix; values that share the prefix, if there are any, may be on either side.
    key, is_long = value[:CUT_BYTES], len(value) >= CUT_BYTES
    answer = Answer.SUPERSET if is_long and column.truncated else Answer.EXACT
    if is_long and not column.truncated:
        keys = {
            Operator.LT: (Interval(b"", key),),
            Operator.LE: (Interval(b"", key),),
            Operator.GT: (Interval(key, None),),
            Operator.GE: (Interval(key, None),),
        }.get(operator, ())
        return TreeLookup(column.name, _not_empty(keys), answer)
    match operator:
        case Operator.EQ | Operator.EQ_NULL_SAFE:
            return TreeLookup(column.name, Points((key,)), answer)
        case Operator.LT:
            interval = Interval(b"", after(key) if is_long else key)
        case Operator.LE:
            interval = Interval(b"", after(key))
        case Operator.GT:
            interval = Interval(key if is_long else after(key), None)
        case _:
            interval = Interval(key, None)
    return TreeLookup(column.name, _not_empty((interval,)), answer)


def _not_empty(keys: Sequence[Interval]) -> Intervals:
    return tuple(each for each in keys if not each.is_empty)


@_lookup.register
def _in(leaf: In, columns: Columns) -> TreeLookup | None:
    column = columns.get(leaf.column.name)
    if column is None or is_array(column.type):
        return None
    if has_number_keys(column.type) and leaf.values.type == column.type:
        numbers = np.unique(number_keys(leaf.values))
        return TreeLookup(column.name, Points(bytes_of_numbers(numbers)))
    texts = _short_texts(leaf.values, column.type)
    if texts is not None:
        return TreeLookup(column.name, Points(texts))
    lookups = [_keys_where(column, Operator.EQ, value) for value in leaf.values]
    key_lookups = [each for each in lookups if each is not None and each.keys is not None]
    if len(key_lookups) < len(lookups):
        return None
    exact = all(each.answer is Answer.EXACT for each in key_lookups)
    ends = {key.low: key for each in key_lookups for key in each.keys or ()}
    return TreeLookup(
        column.name,
        tuple(ends[low] for low in sorted(ends)),
        Answer.EXACT if exact else Answer.SUPERSET,
    )


def _short_texts(values: pa.Array, type: pa.DataType) -> list[bytes] | None:
    """The keys of texts or bytes, in order; None for values of another kind than the column's, and
    if one is so long that keys are cut."""
    are_alike = any(kind(type) and kind(values.type) for kind in (is_string, is_binary))
    if not are_alike or values.null_count:
        return None
    keys, cut = byte_keys(values)
    return None if cut else keys.unique().sort().to_pylist()


def key_places(leaf: In, points: Points, column: StoredColumn) -> npt.NDArray[np.int32] | None:
    """Where the key of each value of a list is among the keys that are looked for; None if these
    are not known one by one."""
    if has_number_keys(column.type) and leaf.values.type == column.type:
        keys = number_keys(leaf.values)
        return np.searchsorted(np.unique(keys), keys).astype(np.int32)
    if _short_texts(leaf.values, column.type) is None or len(points) != len(leaf.values):
        return None
    order = as_numbers(pc.array_sort_indices(byte_keys(leaf.values)[0]))
    places = np.empty(len(order), dtype=np.int32)
    places[order] = np.arange(len(order), dtype=np.int32)
    return places


@_lookup.register
def _array_contains(leaf: ArrayContains, columns: Columns) -> TreeLookup | None:
    column = columns.get(leaf.column.name)
    if column is None or not is_array(column.type):
        return None
    return _keys_where(column, Operator.EQ, leaf.value)


@_lookup.register
def _like(leaf: Like, columns: Columns) -> TreeLookup | None:
    column = columns.get(leaf.column.name)
    if column is None or not is_string(column.type):
        return None
    kinds = [part.kind for part in leaf.parts]
    if kinds == ["any"]:
        return TreeLookup(column.name, (EVERY_KEY,))
    if _BROKEN not in leaf.pattern and kinds in ([], ["text"]):
        return _byte_keys_where(column, Operator.EQ, leaf.prefix.encode())
    return _with_prefix(column, leaf.prefix, exact=leaf.is_prefix_only)


@_lookup.register
def _rlike(leaf: RLike, columns: Columns) -> TreeLookup | None:
    column = columns.get(leaf.column.name)
    if column is None or not is_string(column.type):
        return None
    return _with_prefix(column, leaf.regex.prefix, exact=False)


def _with_prefix(column: StoredColumn, text: str, *, exact: bool) -> TreeLookup | None:
    """The look-up for texts with this prefix; None if it excludes no text."""
    prefix = text.split(_BROKEN)[0]
    start = prefix.encode()
    if not start:
        return None
    exact = exact and prefix == text and len(start) <= CUT_BYTES
    answer = Answer.EXACT if exact else Answer.SUPERSET
    return TreeLookup(column.name, (prefixed(start[:CUT_BYTES]),), answer)


@_lookup.register
def _and(conjuncts: And, columns: Columns) -> TreeLookup | None:
    """The look-up for conjuncts on one column: the keys that all of them look for."""
    combined: TreeLookup | None = None
    for leaf in conjuncts.operands:
        leaf_lookup = _lookup(leaf, columns)
        if leaf_lookup is None or leaf_lookup.keys is None or leaf_lookup.complement:
            return None
        if is_array(columns[leaf_lookup.tree].type):
            return None  # different elements may satisfy different conjuncts
        if combined is None:
            combined = leaf_lookup
            continue
        if combined.tree != leaf_lookup.tree or combined.keys is None:
            return None
        exact = combined.answer is leaf_lookup.answer is Answer.EXACT
        combined = replace(
            combined,
            keys=intersection(combined.keys, leaf_lookup.keys),
            answer=Answer.EXACT if exact else Answer.SUPERSET,
        )
    return combined


@_lookup.register
def _together(conjuncts: Conjunction, columns: Columns) -> TreeLookup | None:
    """None: each column has a tree of its own."""
    return None


@_lookup.register
def _not(leaf: Not, columns: Columns) -> TreeLookup | None:
    operand = leaf.operand
    if isinstance(operand, In) and operand.has_null:
        # NOT IN a list with NULL is never TRUE.
        return TreeLookup(operand.column.name, ()) if operand.column.name in columns else None
    null_safe = isinstance(operand, Compare) and operand.operator is Operator.EQ_NULL_SAFE
    without_null = not (isinstance(operand, IsNull) or null_safe)
    return _negate(_lookup(operand, columns), without_null=without_null)


def _negate(positive: TreeLookup | None, *, without_null: bool) -> TreeLookup | None:
    """The complement; None unless the answer is exact and not itself a complement."""
    if positive is None or positive.answer is not Answer.EXACT or positive.complement:
        return None
    return replace(positive, complement=True, without_null=without_null)


def _composite(predicate: Predicate, columns: Columns) -> TreeLookup | None:
    """The look-up for a leaf, or for conjuncts, in one composite key of these columns: equality on
    its first columns, and any interval of the next. None if no key answers all of them."""
    leaves = list(_conjuncts(predicate))
    names = {name for leaf in leaves for name in leaf.columns()}
    if not names.issubset(columns):
        return None
    for field, key in composites(columns[name] for name in names).items():
        in_key = [columns[name] for name in key[: len(names)] if name in names]
        if len(in_key) < len(names) or not all(field in each.fields for each in in_key):
            continue
        found = _in_key(leaves, in_key, field, is_whole=len(names) == len(key))
        if found is not None:
            return found
    return None


def _conjuncts(predicate: Predicate) -> Iterator[Predicate]:
    if isinstance(predicate, And):
        for operand in predicate.operands:
            yield from _conjuncts(operand)
    else:
        yield predicate


def _in_key(
    leaves: Sequence[Predicate],
    columns: Sequence[StoredColumn],
    field: str,
    *,
    is_whole: bool,
) -> TreeLookup | None:
    by_column: defaultdict[str, list[Predicate]] = defaultdict(list)
    for leaf in leaves:
        if len(leaf.columns()) != 1:
            return None
        by_column[min(leaf.columns())].append(leaf)
    starts, exact = [b""], True
    keys: list[Interval] | None = None
    for column in columns:
        if keys is not None:
            return None  # an interval of the column before: the next one is not in order
        found = _values(by_column[column.name], column)
        if found is None:
            return None
        points, intervals, is_exact = found
        if len(starts) * (len(points) + len(intervals)) > _MOST_INTERVALS:
            return None
        exact = exact and is_exact
        if intervals:
            values = [*map(prefixed, points), *intervals]
            keys = [_after(start, each) for start in starts for each in values]
        else:
            starts = [start + each for start in starts for each in points]
    is_cut = any(column.truncated for column in columns)
    if keys is None and is_whole:
        stored: Intervals = Points(sorted({start[:CUT_BYTES] for start in starts}))
    else:
        parts = map(cut, map(prefixed, starts) if keys is None else keys)
        stored = tuple(each for each in sorted(parts) if not each.is_empty)
    answer = Answer.EXACT if exact and not is_cut else Answer.SUPERSET
    return TreeLookup(field, stored, answer)


def _after(start: bytes, values: Interval) -> Interval:
    """The keys that begin with `start`, followed by these values."""
    assert values.high is not None, "below the byte that is above all values"
    return Interval(start + values.low, start + values.high)


def _values(
    leaves: Sequence[Predicate], column: StoredColumn
) -> tuple[list[bytes], list[Interval], bool] | None:
    """Single values of a column, and intervals of values, for which all leaves are TRUE, as bytes
    of a composite key; and whether they are TRUE for no others. None if they are not known."""
    if len(leaves) == 1 and isinstance(leaves[0], IsNull):
        return [NULL_KEY], [], True
    if len(leaves) == 1 and isinstance(leaves[0], Not) and isinstance(leaves[0].operand, IsNull):
        return [], [ANY_VALUE], True
    own = {column.name: column.model_copy(update={"fields": (KEY,)})}
    found = _lookup(leaves[0] if len(leaves) == 1 else And(tuple(leaves)), own)
    if found is None or found.keys is None or found.complement:
        return None
    exact = found.answer is Answer.EXACT
    if column.truncated and not exact:
        return None  # the value looked for may be cut in another place than by itself
    if found.points is not None:
        return [value_of_point(each, column.type) for each in found.points.keys], [], exact
    return (
        [value_of_point(each.low, column.type) for each in found.keys if each.is_point],
        [values_between(each, column.type) for each in found.keys if not each.is_point],
        exact,
    )


known_lookup = KnownLookups(lookup)
"""`lookup`, called once for all entries with the same column layouts."""
