"""Writes a predicate for the row reader, which checks it where the values lie."""

from contextvars import ContextVar
from typing import NamedTuple

import pyarrow as pa
from hudi_index_parquet import Condition, Tree

from hudi_index_service.columns import column_path
from hudi_index_service.predicate.expression import (
    And,
    ArrayContains,
    BoundColumn,
    Compare,
    Constant,
    In,
    IsNull,
    Like,
    Match,
    Not,
    Operator,
    Or,
    Predicate,
    RLike,
)
from hudi_index_service.predicate.values import bound_of, utf8
from hudi_index_service.read.base_file.value_bounds import is_comparable, stored_type

_MOST_DIGITS = 18  # of a decimal in 64 bits

_BROKEN = "\ufffd"  # in a pattern, it also matches bytes that are not UTF-8

# The operator that the row reader knows, and whether it is negated: no comparison is TRUE of NULL.
_OPERATORS = {
    Operator.EQ: ("=", False),
    Operator.EQ_NULL_SAFE: ("=", False),
    Operator.NE: ("=", True),
    Operator.LT: ("<", False),
    Operator.GE: ("<", True),
    Operator.LE: ("<=", False),
    Operator.GT: ("<=", True),
}


class NativeCondition(NamedTuple):
    """What rows have to match if a predicate is TRUE of them.

    Attributes:
        is_whole: Whether the predicate is TRUE of all rows that match.
    """

    condition: Condition
    is_whole: bool


def native_condition(predicate: Predicate, stored: pa.Schema) -> NativeCondition | None:
    """What rows of a base file have to match if a predicate is TRUE of them, for the row reader;
    None if it can check nothing of it.

    Args:
        predicate: In negation normal form.
        stored: The columns of the file.
    """
    last = _last.get()
    if last is None or last[0] != predicate or not last[1].equals(stored):
        unwritten: list[Predicate] = []
        tree = _tree(predicate, stored, unwritten)
        native = None if tree is None else NativeCondition(Condition(tree), not unwritten)
        last = predicate, stored, native
        _last.set(last)
    return last[2]


_last: ContextVar[tuple[Predicate, pa.Schema, NativeCondition | None] | None] = ContextVar(
    "last_native_condition", default=None
)
"""The last one: most files of a table have the same columns."""


def _tree(predicate: Predicate, stored: pa.Schema, unwritten: list[Predicate]) -> "Tree | None":
    """Adds the leaves that the row reader cannot check to `unwritten`."""
    match predicate:
        case Constant(value):
            return ("and" if value else "or", [])
        case And(operands) | Or(operands):
            trees = [_tree(operand, stored, unwritten) for operand in operands]
            known = [tree for tree in trees if tree is not None]
            if isinstance(predicate, And):
                return ("and", known) if known else None
            return ("or", known) if len(known) == len(trees) else None
        case _:
            tree = _leaf(predicate, stored)
            if tree is None:
                unwritten.append(predicate)
            return tree


def _leaf(leaf: Predicate, stored: pa.Schema, *, negated: bool = False) -> "Tree | None":
    match leaf:
        case Not(Compare(column, _, value)):  # that is NULL-safe
            equal = _compared(column, Operator.NE, value, stored)
            return None if equal is None else ("or", [equal, (column.name, False, "null", None)])
        case Not(In() as listed) if listed.has_null:
            return ("or", [])
        case Not(operand):
            return _leaf(operand, stored, negated=True)
        case Compare(column, operator, value):
            return _compared(column, operator, value, stored)
        case In(column):
            if not _is_known(column, stored) or leaf.values.type != column.type:
                return None
            values = _values(leaf)
            return None if values is None else (column.name, negated, "in", values)
        case IsNull(column):
            return (column.name, negated, "null", None) if _is_known(column, stored) else None
        case Like(column):
            pattern = _pattern(leaf)
            if pattern is None or not _is_known(column, stored):
                return None
            name, texts = pattern
            return (column.name, negated, name, texts)
        case ArrayContains() | Match() | RLike():
            return None
    raise TypeError(f"not a leaf: {leaf!r}")


def _compared(
    column: BoundColumn, operator: Operator, value: pa.Scalar, stored: pa.Schema
) -> "Tree | None":
    known = _value(value)
    if known is None or value.type != column.type or not _is_known(column, stored):
        return None
    name, negated = _OPERATORS[operator]
    return (column.name, negated, name, known)


def _is_known(column: BoundColumn, stored: pa.Schema) -> bool:
    """Whether the row reader may know the order of the column's values in a file: no field of a
    struct, and stored so that no value changes when it is read."""
    path, kind, t = column_path(column.name), column.type, pa.types
    stored_kind = stored_type(stored, path)
    is_kind = (
        t.is_boolean(kind)
        or t.is_signed_integer(kind)
        or t.is_date32(kind)
        or t.is_timestamp(kind)
        or t.is_float32(kind)
        or t.is_float64(kind)
        or t.is_string(kind)
        or t.is_binary(kind)
        or (t.is_decimal128(kind) and kind.precision <= _MOST_DIGITS)
    )
    if len(path) > 1 or not is_kind or stored_kind is None or not is_comparable(stored_kind, kind):
        return False
    # Reading it as a narrower type is refused.
    return stored_kind == kind or bool(stored_kind.bit_width <= kind.bit_width)


def _values(leaf: In) -> "list[int | float | bytes] | None":
    """The listed values as the row reader compares them; None if it does not."""
    if pa.types.is_floating(leaf.values.type):
        return [float(each.as_py()) for each in leaf.values]
    return leaf.ascending  # made once, for all slices


def _value(value: pa.Scalar) -> int | float | bytes | None:
    """A literal as the row reader compares it; None if it does not."""
    if pa.types.is_float32(value.type) or pa.types.is_float64(value.type):
        return float(value.as_py())
    return bound_of(value)


def _pattern(like: Like) -> tuple[str, bytes | list[bytes]] | None:
    """The operator for a pattern, with the texts between its wildcards; None for patterns with
    wildcards for one character."""
    kinds = [part.kind for part in like.parts]
    texts = [utf8(part.text) for part in like.parts if part.kind == "text"]
    if "one" in kinds or None in texts or _BROKEN in like.pattern:
        return None
    if "any" not in kinds:
        return "=", texts[0] or b"" if texts else b""
    between = [b""]
    for part in like.parts:
        if part.kind == "any":
            between.append(b"")
        else:
            between[-1] = part.text.encode()
    return "like", between
