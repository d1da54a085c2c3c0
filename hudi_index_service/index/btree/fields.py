"""The columns that a B+ tree can hold, the kind of their keys (64-bit numbers or bytes), and
composite keys: the values of several columns as one byte key, in the columns' order.

In a composite key, each value is a byte that says whether it is NULL, and, unless it is, its own
key (see `keys`): that of a number has a fixed length; that of a text or bytes is closed by `_END`,
with zero bytes inside escaped. So no value's bytes begin another's, keys sort by the first column,
then by the next, and the rows of some values of the first columns are one interval. NULL comes
before all values. The tree of a composite key has its field as its name: ``key ["a", "b"]``.
"""

import json
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_index_service.arrow import as_truths, binary_scalar, numbers_array
from hudi_index_service.errors import ColumnNotIndexable, IndexDefinitionInvalid
from hudi_index_service.index.btree.keys import CUT_BYTES, as_binary, number_keys
from hudi_index_service.index.contract import ColumnSpec, StoredColumn
from hudi_index_service.index.intervals import Interval, after
from hudi_index_service.index.number_encoding import encode_wide
from hudi_index_service.index.stored_column import (
    element_type,
    is_array,
    is_number,
    is_wide_number,
    not_indexable,
)
from hudi_index_service.predicate.bounds import above_prefix
from hudi_index_service.predicate.comparison import is_binary, is_string

KEY = "key"
"""The field of every column with keys of its own."""

MOST_COLUMNS = 8

_PREFIX = "key "
NULL_KEY = b"\x01"
"""The bytes of NULL."""

_VALUE, _ABOVE = b"\x02", b"\x03"
_END = b"\0\0"
_ZERO, _ESCAPED = b"\0", b"\0\xff"
_BYTES = pa.large_binary()

ANY_VALUE = Interval(_VALUE, _ABOVE)
"""The bytes of all values but NULL."""


def required_fields(
    column: str, type: pa.DataType, options: Mapping[str, str], *, kind: str = "btree"
) -> tuple[str, ...]:
    """The fields that a column needs: one, since columns have no options.

    Args:
        kind: The name of the index type, for messages.

    Raises:
        ColumnNotIndexable: the index cannot hold the type.
        IndexDefinitionInvalid: an option is given.
    """
    article = "an" if kind.startswith("h") else "a"
    if options:
        raise IndexDefinitionInvalid(
            f"Column {column}: {article} {kind} index has no column option {min(options)!r}.",
            remedy=f"Leave it out: {article} {kind} index has no column options.",
        )
    element = element_type(type)
    if has_number_keys(type) or is_wide_number(element) or is_string(element) or is_binary(element):
        return (KEY,)
    raise not_indexable(column, type, f"{article} {kind} index")


def has_number_keys(type: pa.DataType) -> bool:
    """Whether the column's keys are 64-bit numbers; else they are bytes."""
    return is_number(element_type(type))


def composite_field(column: str, type: pa.DataType, key: Sequence[str], *, kind: str) -> str:
    """The field of a column of a composite key.

    Args:
        key: The names of the key's columns, in order.
        kind: The name of the index type, for messages.

    Raises:
        ColumnNotIndexable: the column cannot be part of a key.
        IndexDefinitionInvalid: the key has too many columns.
    """
    if len(key) > MOST_COLUMNS:
        raise IndexDefinitionInvalid(
            f"A composite key has at most {MOST_COLUMNS} columns, not {len(key)}.",
            remedy="Begin with the columns that queries compare with =, and leave the last out.",
        )
    required_fields(column, type, {}, kind=kind)
    if is_array(type):
        raise ColumnNotIndexable(
            f"Column {column}: an array cannot be part of a composite key.",
            remedy=f"Index {column} in an index of its own.",
        )
    return _PREFIX + json.dumps(list(key))


def composite_columns(field: str) -> tuple[str, ...] | None:
    """The columns of a composite key's field, in order; None for another field."""
    return tuple(json.loads(field[len(_PREFIX) :])) if field.startswith(_PREFIX) else None


def composites(columns: Iterable[ColumnSpec | StoredColumn]) -> dict[str, tuple[str, ...]]:
    """The composite keys of some columns: field → the columns of the key, in order."""
    fields = sorted({field for column in columns for field in column.fields})
    return {field: key for field in fields if (key := composite_columns(field)) is not None}


def composite_keys(columns: Sequence[pa.Array]) -> pa.Array:
    """The keys of rows with these values, before long ones are cut; of type large_binary."""
    parts = [_with_nulls(each) for each in columns]
    return pc.binary_join_element_wise(*parts, binary_scalar(b"", _BYTES))


def _with_nulls(values: pa.Array) -> pa.Array:
    encoded = _encoded(values.drop_null() if values.null_count else values)
    if not values.null_count:
        return encoded
    valid = as_truths(values.is_valid())
    places = numbers_array(np.maximum(np.cumsum(valid) - 1, 0), ~valid)
    if not len(encoded):
        return pa.repeat(binary_scalar(NULL_KEY, _BYTES), len(values))
    return encoded.take(places).fill_null(binary_scalar(NULL_KEY, _BYTES))


def _encoded(values: pa.Array) -> pa.Array:
    """The bytes of values without NULL."""
    marker, end = binary_scalar(_VALUE, _BYTES), binary_scalar(_END, _BYTES)
    if has_number_keys(values.type):
        numbers = number_keys(values)
        raw = np.empty((len(numbers), 9), dtype=np.uint8)
        raw[:, 0] = _VALUE[0]
        raw[:, 1:] = numbers.astype(">u8").view(np.uint8).reshape(-1, 8)
        fixed = pa.binary(raw.shape[1])
        return pa.Array.from_buffers(fixed, len(raw), [None, pa.py_buffer(raw)]).cast(_BYTES)
    if is_wide_number(values.type):
        return pc.binary_join_element_wise(
            marker, encode_wide(values).cast(_BYTES), binary_scalar(b"", _BYTES)
        )
    texts = as_binary(values).cast(_BYTES)
    if pc.any(pc.match_substring(texts, _ZERO)).as_py():
        texts = pc.replace_substring(texts, pattern=_ZERO, replacement=_ESCAPED)
    return pc.binary_join_element_wise(marker, texts, end, binary_scalar(b"", _BYTES))


def value_of_point(key: bytes, type: pa.DataType) -> bytes:
    """The bytes of one value, by its own key."""
    if has_number_keys(type) or is_wide_number(type):
        return _VALUE + key
    return _VALUE + key.replace(_ZERO, _ESCAPED) + _END


def values_between(keys: Interval, type: pa.DataType) -> Interval:
    """The bytes of the values whose own keys lie in the interval, whatever follows them."""
    low, high = keys.low, keys.high
    if has_number_keys(type) or is_wide_number(type):
        if high is not None and high.endswith(_ZERO) and len(high) % 8 == 1:  # after(…) of a key
            return Interval(_VALUE + low, above_prefix(_VALUE + high[:-1]))
        return Interval(_VALUE + low, _ABOVE if high is None else _VALUE + high)
    low = low.replace(_ZERO, _ESCAPED)
    return Interval(
        _VALUE + low, _ABOVE if high is None else _VALUE + high.replace(_ZERO, _ESCAPED)
    )


def cut(keys: Interval) -> Interval:
    """The interval in which the stored keys lie, of which long ones are cut."""
    low, high = keys.low[:CUT_BYTES], keys.high
    if high is not None and len(high) > CUT_BYTES:
        high = after(high[:CUT_BYTES])
    return Interval(low, high)


def trees_of(columns: Sequence[StoredColumn]) -> list[StoredColumn]:
    """The trees of an index with these columns: those of the columns with keys of their own, and
    those of composite keys, which are never NULL."""
    single = [column for column in columns if KEY in column.fields]
    return single + [
        StoredColumn(name=field, type=str(_BYTES), fields=(KEY,), null_count=0)
        for field in composites(columns)
    ]
