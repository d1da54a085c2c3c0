"""The fields of a Lucene index, and the Arrow arrays from which the Java helper fills them."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_index_service.arrow import as_numbers, as_truths, integer_scalar, numbers_array
from hudi_index_service.index.column_kinds import element_type, is_array
from hudi_index_service.index.contract import ColumnSpec
from hudi_index_service.index.lucene.fields import (
    KEYWORD,
    NUMBER,
    RANKED_PREFIX,
    TEXT_PREFIX,
    WIDE_NUMBER,
    keyword_field,
    null_element_field,
    null_field,
    number_field,
    text_field,
    wide_number_field,
)
from hudi_index_service.index.number_encoding import encode_array, encode_wide
from hudi_index_service.predicate.comparison import is_string
from hudi_index_service.predicate.evaluate import element_rows


@dataclass(frozen=True, slots=True)
class IndexField:
    """A Lucene field and the column it comes from.

    Attributes:
        kind: The kind of content in the Java helper: ``KEYWORD``, ``TEXT``, ``RANKED_TEXT``,
            ``LONG``, ``BYTES16``, ``NULLS`` (see ArrowIndexer).
        of_elements: Whether the field marks NULL elements, not NULL arrays.
        analyzer: The short name of a text field's analyzer.
    """

    name: str
    column: str
    kind: str
    of_elements: bool = False
    analyzer: str = ""


def fields_of(spec: ColumnSpec) -> Iterator[IndexField]:
    """The Lucene fields of a column."""
    for field in spec.fields:
        if field == KEYWORD:
            yield IndexField(keyword_field(spec.name), spec.name, "KEYWORD")
        elif field == NUMBER:
            yield IndexField(number_field(spec.name), spec.name, "LONG")
        elif field == WIDE_NUMBER:
            yield IndexField(wide_number_field(spec.name), spec.name, "BYTES16")
        elif field.startswith(TEXT_PREFIX):
            analyzer = field.removeprefix(TEXT_PREFIX)
            name = text_field(spec.name, analyzer)
            kind = "RANKED_TEXT" if RANKED_PREFIX + analyzer in spec.fields else "TEXT"
            yield IndexField(name, spec.name, kind, analyzer=analyzer)
    yield IndexField(null_field(spec.name), spec.name, "NULLS")
    if is_array(spec.type):
        yield IndexField(null_element_field(spec.name), spec.name, "NULLS", of_elements=True)


@dataclass(frozen=True, slots=True)
class FieldValues:
    """The values of a field in one batch.

    Attributes:
        values: One value per row; for an array column, the elements of all rows in sequence.
        offsets: For an array column, 64-bit integers: the start of each row's elements, followed by
            the number of all elements; else None.
    """

    values: pa.Array
    offsets: np.ndarray | None = None

    @property
    def has_large_offsets(self) -> bool:
        """Whether the values' own offsets have 64 bits."""
        type = self.values.type
        return bool(pa.types.is_large_string(type) or pa.types.is_large_binary(type))


def field_values(field: IndexField, column: pa.Array) -> FieldValues:
    """The values of a field for a batch's column."""
    if field.of_elements:
        return FieldValues(_null_where_an_element_is(column))
    if field.kind == "NULLS" or not is_array(column.type):
        return FieldValues(_encode(field, column))
    lengths = pc.list_value_length(column)
    lengths = pc.fill_null(lengths, integer_scalar(0, lengths.type))
    offsets = np.zeros(len(column) + 1, dtype=np.int64)
    np.cumsum(as_numbers(lengths), out=offsets[1:])
    return FieldValues(_encode(field, pc.list_flatten(column)), offsets)


def _encode(field: IndexField, values: pa.Array) -> pa.Array:
    if field.kind == "LONG":
        return encode_array(values)
    return encode_wide(values) if field.kind == "BYTES16" else values


def _null_where_an_element_is(column: pa.Array) -> pa.Array:
    """An array that is NULL in exactly the rows whose array has a NULL element."""
    null = np.zeros(len(column), dtype=bool)
    rows = element_rows(column)
    null[rows[as_truths(pc.list_flatten(column).is_null())]] = True
    return numbers_array(np.zeros(len(column), dtype=np.int8), null)


def count_broken_text(column: pa.Array) -> int:
    """The number of strings (or elements) that are not UTF-8; Spark can write them."""
    if not is_string(element_type(column.type)):
        return 0
    values = pc.list_flatten(column) if is_array(column.type) else column
    try:
        values.validate(full=True)
    except pa.ArrowInvalid:
        return sum(_is_broken(value) for value in values.cast(pa.large_binary()))
    return 0


def _is_broken(value: pa.Scalar) -> bool:
    try:
        (value.as_py() or b"").decode()
    except UnicodeDecodeError:
        return True
    return False
