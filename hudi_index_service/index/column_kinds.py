"""Kinds of columns that index types distinguish to store their values."""

import pyarrow as pa

from hudi_index_service.columns import hudi_type
from hudi_index_service.errors import ColumnNotIndexable

_NARROW_DIGITS = 18  # digits of a decimal that fit into 64 bits


def element_type(type: pa.DataType) -> pa.DataType:
    """The type of an array's elements; for any other type, the type itself."""
    return type.value_type if is_array(type) else type


def is_array(type: pa.DataType) -> bool:
    """Whether a row can have any number of values."""
    return bool(pa.types.is_list(type))


def is_number(type: pa.DataType) -> bool:
    """Whether the type's values map to 64-bit integers in order (see `number_encoding`)."""
    return bool(
        pa.types.is_signed_integer(type)
        or pa.types.is_float32(type)
        or pa.types.is_float64(type)
        or pa.types.is_boolean(type)
        or pa.types.is_date32(type)
        or pa.types.is_timestamp(type)
        or (pa.types.is_decimal128(type) and type.precision <= _NARROW_DIGITS)
    )


def is_wide_number(type: pa.DataType) -> bool:
    """Whether the type's values map to 16 bytes in order (see `number_encoding`)."""
    return bool(pa.types.is_decimal128(type) and type.precision > _NARROW_DIGITS)


def refuse_special(column: str, schema: pa.Schema) -> None:
    """Refuses a column of one of Hudi's own types, such as ``VECTOR(3)``, or a field of one.

    Raises:
        ColumnNotIndexable: it is one.
    """
    kind = hudi_type(schema, column)
    if kind is not None:
        raise ColumnNotIndexable(
            f"Column {column}: no index can hold type {kind}.",
            remedy="Index other columns: queries on them return this one's values, too.",
        )


def not_indexable(column: str, type: pa.DataType, index: str) -> ColumnNotIndexable:
    """The error for a column whose type an index cannot hold, with a remedy.

    Args:
        index: The kind of index, such as ``"a Lucene index"``.
    """
    return ColumnNotIndexable(
        f"Column {column}: {index} cannot hold type {type}.", remedy=_instead(column, type)
    )


def _instead(column: str, type: pa.DataType) -> str:
    if pa.types.is_struct(type):
        fields = ", ".join(f"{column}.{field.name}" for field in type)
        return f"Index its fields one by one: {fields}."
    if pa.types.is_map(type):
        return "Maps cannot be indexed; write the searched values into a separate column."
    return "Index another column; arrays must hold strings, numbers, dates or binary."
