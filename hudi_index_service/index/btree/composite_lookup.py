"""Turns conjuncts on the first columns of a composite key into a look-up in its tree."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence

from hudi_index_service.index.btree.composite import (
    ANY_VALUE,
    NULL_KEY,
    composites,
    cut,
    value_of_point,
    values_between,
)
from hudi_index_service.index.btree.fields import KEY
from hudi_index_service.index.btree.intervals import Interval, Intervals, Points, prefixed
from hudi_index_service.index.btree.keys import CUT_BYTES
from hudi_index_service.index.btree.tree_lookup import TreeLookup
from hudi_index_service.index.contract import Answer, StoredColumn
from hudi_index_service.predicate.expression import And, IsNull, Not, Predicate

_MOST_INTERVALS = 20_000
"""Combinations of values of several columns; more are looked up column by column."""

SingleLookup = Callable[[Predicate, Mapping[str, StoredColumn]], TreeLookup | None]


def composite_lookup(
    predicate: Predicate, columns: Mapping[str, StoredColumn], single: SingleLookup
) -> TreeLookup | None:
    """The look-up for a leaf, or for conjuncts, in one composite key of these columns: equality on
    its first columns, and any interval of the next. None if no key answers all of them.

    Args:
        single: The look-up for conjuncts on one column with keys of its own.
    """
    leaves = list(_conjuncts(predicate))
    names = {name for leaf in leaves for name in leaf.columns()}
    if not names.issubset(columns):
        return None
    for field, key in composites(columns[name] for name in names).items():
        in_key = [columns[name] for name in key[: len(names)] if name in names]
        if len(in_key) < len(names) or not all(field in each.fields for each in in_key):
            continue
        found = _in_key(leaves, in_key, field, single, is_whole=len(names) == len(key))
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
    single: SingleLookup,
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
        found = _values(by_column[column.name], column, single)
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
    leaves: Sequence[Predicate], column: StoredColumn, single: SingleLookup
) -> tuple[list[bytes], list[Interval], bool] | None:
    """Single values of a column, and intervals of values, for which all leaves are TRUE, as bytes
    of a composite key; and whether they are TRUE for no others. None if they are not known."""
    if len(leaves) == 1 and isinstance(leaves[0], IsNull):
        return [NULL_KEY], [], True
    if len(leaves) == 1 and isinstance(leaves[0], Not) and isinstance(leaves[0].operand, IsNull):
        return [], [ANY_VALUE], True
    own = {column.name: column.model_copy(update={"fields": (KEY,)})}
    found = single(leaves[0] if len(leaves) == 1 else And(tuple(leaves)), own)
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
