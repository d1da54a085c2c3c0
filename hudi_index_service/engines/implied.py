"""What an engine's condition implies, in predicates of this service, which mean what they mean in
Spark. The index narrows by that; whether more has to be filtered depends on whether it is exact.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from hudi_index_service.arrow import TRUE, float_scalar
from hudi_index_service.columns import column_field, column_name
from hudi_index_service.predicate.expression import (
    BoundColumn,
    Compare,
    Constant,
    In,
    IsNull,
    Not,
    Operator,
    Predicate,
    conjunction,
    disjunction,
)


@dataclass(frozen=True, slots=True)
class Implied:
    """What a condition of an engine implies.

    Attributes:
        predicate: TRUE at least for the rows for which the engine's condition is; None if nothing
            is known.
        exact: Whether it is TRUE, FALSE and NULL for the same rows as the engine's condition.
    """

    predicate: Predicate | None = None
    exact: bool = False


UNKNOWN = Implied()
"""A condition that only the engine can evaluate."""

FLIPPED = {
    Operator.LT: Operator.GT,
    Operator.LE: Operator.GE,
    Operator.GT: Operator.LT,
    Operator.GE: Operator.LE,
}
"""A comparison → the one with its sides swapped, if that is another."""


def all_of(conditions: Iterable[Implied]) -> Implied:
    """AND: the conjuncts that are known."""
    parts = list(conditions)
    known = [each.predicate for each in parts if each.predicate is not None]
    if not known:
        return UNKNOWN
    return Implied(conjunction(known), all(each.exact for each in parts))


def any_of(conditions: Iterable[Implied]) -> Implied:
    """OR: nothing is known unless something is of each operand."""
    parts = list(conditions)
    known = [each.predicate for each in parts if each.predicate is not None]
    if len(known) < len(parts):
        return UNKNOWN
    return Implied(disjunction(known), all(each.exact for each in parts))


def negated(condition: Implied) -> Implied:
    """NOT: a condition that is TRUE for too many rows would be FALSE for too few."""
    if condition.predicate is None or not condition.exact:
        return UNKNOWN
    return Implied(Not(condition.predicate), exact=True)


def exactly(predicate: Predicate) -> Implied:
    """A condition that means the same in the engine."""
    return Implied(predicate, exact=True)


def constant(value: bool | None) -> Implied:
    """TRUE, FALSE or NULL."""
    return exactly(Constant(value))


def column_at(schema: pa.Schema, path: Sequence[str]) -> BoundColumn | None:
    """The column, or the field of a struct, with exactly this path; None if there is none."""
    name = column_name(path)
    field = column_field(schema, name)
    return None if field is None else BoundColumn(name, field.type)


def is_true(column: BoundColumn | None) -> Implied:
    """A column as a condition of its own."""
    if column is None or not pa.types.is_boolean(column.type):
        return UNKNOWN
    return exactly(Compare(column, Operator.EQ, TRUE))


def is_null(column: BoundColumn | None) -> Implied:
    """``column IS NULL``."""
    return UNKNOWN if column is None else exactly(IsNull(column))


def is_nan(column: BoundColumn | None) -> Implied:
    """Whether a floating-point column is NaN; NULL for NULL."""
    if column is None or not pa.types.is_floating(column.type):
        return UNKNOWN
    return exactly(Compare(column, Operator.EQ, float_scalar(float("nan"), column.type)))


def compared(column: BoundColumn | None, operator: Operator, value: pa.Scalar | None) -> Implied:
    """A comparison with a value of the column's own type; None for any other."""
    if column is None or value is None or value.type != column.type or not value.is_valid:
        return UNKNOWN
    return exactly(Compare(column, operator, value))


def among(column: BoundColumn | None, values: pa.Array) -> Implied:
    """``column IN (values…)``, without NULLs, NULL for NULL."""
    if column is None or not len(values) or values.type != column.type or values.null_count:
        return UNKNOWN
    if pa.types.is_floating(values.type):
        values = pc.add(values, float_scalar(0.0, values.type))  # turns -0.0 into 0.0
    return exactly(In(column, values.unique()))
