"""Expresses Spark's comparison of a column with literals in the column's own type.

Spark casts both sides of a comparison to one type and compares there. That cast never swaps two
values of the column; it can only make neighbors equal. So the values of the column that are below,
at and above the literal *after* the cast form three adjacent ranges. Every comparison is then one
of the column with the ends of the middle range: `low`, the smallest value of the column that is not
below the literal, and `high`, the largest that is not above it. ``id > 1.5`` becomes ``id > 1``;
``id = 1.5`` is FALSE for every value (low 2 > high 1) and NULL for NULL.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta, timezone, tzinfo

import pyarrow as pa

from hudi_index_service.arrow import integers_array, text_scalar, texts_array
from hudi_index_service.errors import PredicateInvalid, PredicateUnsupported
from hudi_index_service.predicate.cast import TIMESTAMP, TIMESTAMP_NTZ, cast, fits
from hudi_index_service.predicate.comparison import (
    End,
    Literal,
    comparison_type,
    ends,
    is_binary,
    is_number,
    is_string,
    sort_key,
    value_type,
)
from hudi_index_service.predicate.expression import (
    And,
    ArrayContains,
    BoundColumn,
    Compare,
    Constant,
    In,
    IsNull,
    Not,
    Operator,
    Or,
    Predicate,
)
from hudi_index_service.predicate.values import format_date, format_timestamp
from hudi_index_service.wording import shortened


def compare(column: BoundColumn, operator: Operator, literal: Literal, zone: tzinfo) -> Predicate:
    """``column <operator> literal`` in the session time zone `zone`.

    Raises:
        PredicateInvalid: Spark cannot compare the two types.
        PredicateUnsupported: Spark can, but not by the column's own order.
    """
    if literal.is_null:
        if operator is Operator.EQ_NULL_SAFE:
            _refuse_null_of_other_type(column, literal)
        return _compare_null(column, operator)
    kind = value_type(column)
    shortcut = _beyond_long(kind, operator, literal)
    if shortcut is not None:
        return shortcut
    if is_string(literal.value.type):
        literal = _from_string(kind, literal, zone)
        if literal.is_null:
            return _compare_null(column, operator)
    low, high = ends(column, literal, comparison_type(column, (literal,), operator), zone)
    return _with_ends(column, operator, low, high)


def in_list(column: BoundColumn, literals: Sequence[Literal], zone: tzinfo) -> Predicate:
    """``column IN (literals…)``: Spark casts the column and the whole list to one type.

    Raises: as `compare`.
    """
    nulls = [literal for literal in literals if literal.is_null]
    has_null = bool(nulls)
    for null in nulls:
        # The column is also cast to the type of a NULL, and may then equal other values.
        if null.value.type not in (pa.null(), value_type(column)):
            raise _null_of_other_type(column, null)
    non_null = [literal for literal in literals if not literal.is_null]
    kind = value_type(column)
    strings = [is_string(kind), *(is_string(literal.value.type) for literal in non_null)]
    if any(strings) and not all(strings):
        non_null = _as_strings(column, non_null, zone)
    comparison = comparison_type(column, non_null, None)
    values: dict[object, pa.Scalar] = {}
    for literal in non_null:
        low, high = ends(column, literal, comparison, zone)
        if low is None or high is None:
            continue  # No value of the column equals it.
        key = sort_key(low)
        beyond = key if high is low else sort_key(high)
        if key > beyond:
            continue
        if key != beyond:
            raise PredicateUnsupported(
                f"More than one value of {column} equals {literal.text}, compared as {comparison}.",
                remedy=f"Write a literal of the column's own type, {kind}.",
            )
        values.setdefault(key, low)
    if values:
        return In.of(column, list(values.values()), has_null)
    return Constant(None) if has_null else _never(column)


def in_plain_list(column: BoundColumn, literals: Sequence[str]) -> Predicate | None:
    """``column IN (literals…)`` if column and literals are all strings or all integers, which need
    no cast one by one; else None.

    Args:
        literals: Quoted strings without escapes, and whole numbers, as they are written.
    """
    kind = value_type(column)
    quoted = [literal[0] for literal in literals].count("'")
    if is_string(kind) and quoted == len(literals):
        texts = list(dict.fromkeys([literal[1:-1] for literal in literals]))
        return In(column, texts_array(texts, kind))
    if pa.types.is_signed_integer(kind) and not quoted and max(map(len, literals)) < _LONG_DIGITS:
        numbers = list(dict.fromkeys(map(int, literals)))
        if not (fits(min(numbers), kind) and fits(max(numbers), kind)):
            numbers = [number for number in numbers if fits(number, kind)]
        return In(column, integers_array(numbers, kind)) if numbers else _never(column)
    return None


def array_contains(column: BoundColumn, literal: Literal, zone: tzinfo) -> Predicate:
    """``array_contains(column, literal)``: Spark casts both to the wider type, but never to a
    string.

    Raises: as `compare`.
    """
    if not pa.types.is_list(column.type):
        raise PredicateInvalid(
            f"array_contains takes an array, and {column} is of type {column.type}.",
            remedy="Name an array column.",
        )
    element = BoundColumn(column.name, column.type.value_type)
    kind = literal.value.type
    if pa.types.is_null(kind):
        raise PredicateInvalid(
            f"Spark refuses array_contains({column}, NULL).",
            remedy="Search arrays for values; `IS NULL` finds arrays that are NULL.",
        )
    if is_string(element.type) != is_string(kind) or is_binary(element.type) != is_binary(kind):
        raise PredicateInvalid(
            f"Spark cannot look for {literal.text} in {column} ({column.type}).",
            remedy=f"Write a literal of the elements' own type, {element.type}.",
        )
    if literal.is_null:
        return Constant(None)
    low, high = ends(element, literal, comparison_type(element, (literal,), None), zone)
    if low is None or high is None or sort_key(low) != sort_key(high):
        raise PredicateUnsupported(
            f"No value or several values of type {element.type} equal {literal.text}.",
            remedy=f"Write a literal of the elements' own type, {element.type}.",
        )
    return ArrayContains(column, low)


# --- comparisons with known ends of the literal -----------------------------------------------


def _with_ends(column: BoundColumn, operator: Operator, low: End, high: End) -> Predicate:
    """The comparison with a literal whose ends are `low` and `high` (see the module's docstring).
    `low` is None if all values are below the literal, `high` if all are above it."""
    if low is not None and high is not None and sort_key(low) == sort_key(high):
        return Compare(column, operator, low)
    if operator in (Operator.LT, Operator.GE, Operator.LE, Operator.GT):
        end = low if operator in (Operator.LT, Operator.GE) else high
        if end is not None:
            return Compare(column, operator, end)
        return _always(column) if operator in (Operator.LT, Operator.GT) else _never(column)
    # Equality with none or with several of the column's values.
    none = low is None or high is None or sort_key(low) > sort_key(high)
    at_least, at_most = Compare(column, Operator.GE, low), Compare(column, Operator.LE, high)
    match operator:
        case Operator.EQ:
            return _never(column) if none else And((at_least, at_most))
        case Operator.NE if none:
            return _always(column)
        case Operator.NE:
            return Or((Compare(column, Operator.LT, low), Compare(column, Operator.GT, high)))
        case _:
            return Constant(False) if none else And((at_least, at_most, Not(IsNull(column))))


def _compare_null(column: BoundColumn, operator: Operator) -> Predicate:
    return IsNull(column) if operator is Operator.EQ_NULL_SAFE else Constant(None)


def _refuse_null_of_other_type(column: BoundColumn, literal: Literal) -> None:
    """Refuses a NULL of a type to which Spark casts the column if that cast can make values NULL:
    ``name <=> CAST(NULL AS INT)`` holds for every name that is not a number."""
    kind, literal_type = value_type(column), literal.value.type
    if pa.types.is_null(literal_type) or is_string(literal_type) or literal_type == kind:
        return
    if is_number(kind) and is_number(literal_type):
        comparison_type(column, (literal,), Operator.EQ_NULL_SAFE)
    elif not (pa.types.is_temporal(kind) and pa.types.is_temporal(literal_type)):
        raise _null_of_other_type(column, literal)


def _null_of_other_type(column: BoundColumn, literal: Literal) -> PredicateUnsupported:
    return PredicateUnsupported(
        f"Spark casts {column} ({value_type(column)}) to the type of {literal.text}, which is "
        "NULL.",
        remedy="Write NULL.",
    )


def _never(column: BoundColumn) -> Predicate:
    """FALSE for every value, NULL for NULL."""
    return And((IsNull(column), Constant(None)))


def _always(column: BoundColumn) -> Predicate:
    """TRUE for every value, NULL for NULL."""
    return Or((Not(IsNull(column)), Constant(None)))


def _beyond_long(kind: pa.DataType, operator: Operator, literal: Literal) -> Predicate | None:
    """Spark's own shortcut for an integer column and a decimal literal outside of 64 bits: a
    constant, even for NULL (DecimalPrecision.integralAndDecimalLiteral)."""
    decimal_literal = literal.plain and pa.types.is_decimal(literal.value.type)
    if not (pa.types.is_integer(kind) and decimal_literal):
        return None
    value = literal.value.as_py()
    above, below = value > 2**63 - 1, value < -(2**63)
    if not (above or below):
        return None
    match operator:
        case Operator.LT | Operator.LE:
            return Constant(above)
        case Operator.GT | Operator.GE:
            return Constant(below)
        case _:
            return None


def _from_string(kind: pa.DataType, literal: Literal, zone: tzinfo) -> Literal:
    """A string literal as Spark casts it to compare with a column of type `kind`."""
    if is_string(kind) or pa.types.is_nested(kind):
        return literal
    target = kind
    if pa.types.is_decimal(kind):
        target = pa.float64()
    elif pa.types.is_timestamp(kind):
        target = TIMESTAMP_NTZ if kind.tz is None else TIMESTAMP
    elif pa.types.is_large_binary(kind):
        target = pa.binary()
    return Literal(cast(literal.value, target, zone), literal.text, plain=False)


_LONG_DIGITS = 19  # a number with fewer fits 64 bits


def _as_strings(column: BoundColumn, literals: list[Literal], zone: tzinfo) -> list[Literal]:
    """The literals of a list of strings and other types, in the column's type. Spark casts the
    column and the whole list to string, so only values that print as one of these strings count:
    ``day IN ('2024-1-1')`` holds for no day, since days print as ``2024-01-01``.
    """
    kind = value_type(column)
    result = []
    for literal in literals:
        literal_type = literal.value.type
        if is_string(kind) and (is_string(literal_type) or pa.types.is_integer(literal_type)):
            result.append(Literal(cast(literal.value, pa.string(), zone), literal.text))
        elif is_string(literal_type):
            value = _printed_as(column, literal.value.as_py(), zone)
            if value is not None:
                result.append(Literal(value, literal.text))
        elif _same_family(kind, literal_type, zone):
            result.append(literal)
        else:
            raise _mixed_list(column, literal)
    return result


def _same_family(kind: pa.DataType, literal_type: pa.DataType, zone: tzinfo) -> bool:
    """Whether equal values of both types print alike, and others differently. Timestamps do not if
    clocks are set back."""
    if pa.types.is_timestamp(kind) and pa.types.is_timestamp(literal_type):
        same = (kind.tz is None) == (literal_type.tz is None)
        return same and (kind.tz is None or isinstance(zone, timezone))
    integers = pa.types.is_integer(kind) and pa.types.is_integer(literal_type)
    return bool(integers or (pa.types.is_date32(kind) and pa.types.is_date32(literal_type)))


def _printed_as(column: BoundColumn, text: str, zone: tzinfo) -> pa.Scalar | None:
    """The value of the column's type that Spark casts to the string `text`; None if none."""
    kind, string = value_type(column), text_scalar(text)
    has_zone = pa.types.is_timestamp(kind) and kind.tz is not None
    if not (pa.types.is_integer(kind) or pa.types.is_date32(kind) or pa.types.is_timestamp(kind)):
        raise _mixed_list(column, Literal(string, repr(shortened(text))))
    try:
        value = cast(string, TIMESTAMP_NTZ if pa.types.is_timestamp(kind) else kind, zone)
    except PredicateUnsupported:  # no value is printed in such a form
        return None
    if not value.is_valid or _printed(value) != text:
        return None
    if has_zone and not isinstance(zone, timezone) and _clock_changes(value.value, zone):
        raise PredicateUnsupported(
            f"In time zone {zone}, {text} is ambiguous or does not exist.",
            remedy="Write TIMESTAMP'yyyy-MM-dd HH:mm:ssZ', in UTC.",
        )
    return cast(string, TIMESTAMP, zone) if has_zone else value


def _printed(value: pa.Scalar) -> str:
    """A number, date or timestamp without zone as Spark casts it to a string."""
    if pa.types.is_integer(value.type):
        return str(value.as_py())
    return (format_date if pa.types.is_date32(value.type) else format_timestamp)(value.value)


def _clock_changes(wall_micros: int, zone: tzinfo) -> bool:
    wall = (datetime(1970, 1, 1) + timedelta(microseconds=wall_micros)).replace(tzinfo=zone)
    return wall.utcoffset() != wall.replace(fold=1).utcoffset()


def _mixed_list(column: BoundColumn, literal: Literal) -> PredicateUnsupported:
    return PredicateUnsupported(
        f"In an IN list, Spark compares {column} ({value_type(column)}) and {literal.text} as "
        "strings.",
        remedy=f"Write all literals of the list in the column's own type, {value_type(column)}.",
    )
