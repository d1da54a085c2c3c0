"""Turns a predicate leaf, or conjuncts, into a look-up in a tree, a column's own or that of a
composite key: the keys to look for, and how well the result answers. Reads no index bytes."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TypeAlias

import pyarrow as pa

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
    Intervals,
    Points,
    bytes_of_numbers,
    intersection,
    key_of_number,
)
from hudi_index_service.index.contract import Answer, StoredColumn
from hudi_index_service.index.intervals import Interval, after, prefixed
from hudi_index_service.index.leaf_lookup import (
    UNDECODED,
    Columns,
    LeafLookup,
    LeafLookups,
    ListedValues,
    exact_if,
)
from hudi_index_service.index.number_encoding import encode_range, unsigned, wide_bytes
from hudi_index_service.index.stored_column import element_type, is_wide_number
from hudi_index_service.predicate.comparison import is_binary, is_string
from hudi_index_service.predicate.expression import (
    And,
    IsNull,
    Like,
    Not,
    Operator,
    Predicate,
    RLike,
)

_MOST_INTERVALS = 20_000
"""Combinations of values of several columns; more are looked up column by column."""

TreeLookup: TypeAlias = LeafLookup[Intervals | None]
"""A look-up in the tree of `column`: a column, or the field of a composite key, of which there are
no complements. It searches for keys, which are `Points` if they are single ones; None for the rows
where the column is NULL."""


class TreeLookups(LeafLookups[Intervals | None]):
    """See `LeafLookups`. A `Conjunction` is looked up on the first columns of a composite key."""

    longest_text = CUT_BYTES

    def made(self, predicate: Predicate, columns: Columns) -> TreeLookup | None:
        """In the tree of one column, or else of a composite key."""
        own_keys = {name: each for name, each in columns.items() if KEY in each.fields}
        return self._of(predicate, own_keys) or _composite(predicate, columns)

    def nulls(self, column: str) -> None:
        """None, see `TreeLookup`."""

    def nothing(self, column: str) -> Intervals:
        """No keys."""
        return ()

    def compared(
        self, column: StoredColumn, operator: Operator, value: pa.Scalar
    ) -> TreeLookup | None:
        """By an interval of keys."""
        type = element_type(column.type)
        if has_number_keys(type) or is_wide_number(type):
            bounds = encode_range(operator, value, type)
            if bounds is None:
                return None
            if bounds.is_empty:
                return LeafLookup(column.name, ())
            key = key_of_number if has_number_keys(type) else wide_bytes
            return LeafLookup(
                column.name, _keys(Interval(key(bounds.low), after(key(bounds.high))))
            )
        comparable = is_binary if is_binary(type) else is_string
        if not comparable(value.type):
            return None
        return _byte_keys_where(column, operator, bytes(value.as_buffer()))

    def of_values(self, column: StoredColumn, listed: ListedValues) -> TreeLookup:
        """By single keys."""
        if not isinstance(listed.values, list):
            return LeafLookup(column.name, Points(bytes_of_numbers(unsigned(listed.values))))
        may_be_cut = column.truncated and max(map(len, listed.values)) == CUT_BYTES
        return LeafLookup(column.name, Points(listed.values), exact_if(not may_be_cut))

    def like(self, column: StoredColumn, leaf: Like) -> TreeLookup | None:
        """By the texts' beginning, if the pattern has one."""
        kinds = [part.kind for part in leaf.parts]
        if kinds == ["any"]:
            return LeafLookup(column.name, (EVERY_KEY,))
        if UNDECODED not in leaf.pattern and kinds in ([], ["text"]):
            return _byte_keys_where(column, Operator.EQ, leaf.prefix.encode())
        return _with_prefix(column, leaf.prefix, exact=leaf.is_prefix_only)

    def rlike(self, column: StoredColumn, leaf: RLike) -> TreeLookup | None:
        """The same."""
        return _with_prefix(column, leaf.regex.prefix, exact=False)

    def both(self, one: Intervals | None, other: Intervals | None) -> Intervals | None:
        """The keys that both look for."""
        if one is None or other is None:
            return None
        return _keys(*intersection(one, other))


known_lookup = TreeLookups()


def _keys(*intervals: Interval) -> Intervals:
    if intervals and all(each.is_point for each in intervals):
        return Points([each.low for each in intervals])
    return tuple(each for each in intervals if not each.is_empty)


def _byte_keys_where(column: StoredColumn, operator: Operator, value: bytes) -> TreeLookup:
    # A literal shorter than a cut key compares with the key as with the value itself. A longer one
    # compares by its prefix; values that share the prefix, if there are any, may be on either side.
    key, is_long = value[:CUT_BYTES], len(value) >= CUT_BYTES
    answer = exact_if(not (is_long and column.truncated))
    match operator:
        case Operator.EQ | Operator.EQ_NULL_SAFE:
            return LeafLookup(column.name, Points((key,)), answer)
        case Operator.LT if not is_long:
            interval = Interval(b"", key)
        case Operator.LT | Operator.LE:
            interval = Interval(b"", after(key))
        case Operator.GT if not is_long:
            interval = Interval(after(key), None)
        case _:
            interval = Interval(key, None)
    return LeafLookup(column.name, _keys(interval), answer)


def _with_prefix(column: StoredColumn, text: str, *, exact: bool) -> TreeLookup | None:
    """The look-up for texts with this prefix; None if it excludes no text."""
    prefix = text.split(UNDECODED)[0]
    start = prefix.encode()
    if not start:
        return None
    exact = exact and prefix == text and len(start) <= CUT_BYTES
    return LeafLookup(column.name, (prefixed(start[:CUT_BYTES]),), exact_if(exact))


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
    return LeafLookup(field, stored, exact_if(exact and not is_cut))


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
    found = known_lookup.made(leaves[0] if len(leaves) == 1 else And(tuple(leaves)), own)
    if found is None or found.search is None or found.complement:
        return None
    exact = found.answer is Answer.EXACT
    if column.truncated and not exact:
        return None  # the value looked for may be cut in another place than by itself
    if isinstance(found.search, Points):
        return [value_of_point(each, column.type) for each in found.search.keys], [], exact
    return (
        [value_of_point(each.low, column.type) for each in found.search if each.is_point],
        [values_between(each, column.type) for each in found.search if not each.is_point],
        exact,
    )
