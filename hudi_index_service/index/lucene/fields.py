"""What Lucene fields a column needs, by its Arrow type and options.

Field names inside the index: ``k.<column>`` keyword, ``t.<analyzer>.<column>`` analysed text,
``n.<column>`` number, ``z.<column>`` the term "1" where the column is NULL.
"""

from collections.abc import Mapping

import pyarrow as pa

from hudi_index_service.errors import ColumnNotIndexable, IndexDefinitionInvalid
from hudi_index_service.predicate.comparison import is_string

KEYWORD = "keyword"
NUMBER = "number"
TEXT_PREFIX = "text:"

ANALYZERS = ("standard", "whitespace", "simple")

_MAX_DECIMAL_DIGITS = 18  # what fits into 64 bits


def required_fields(column: str, type: pa.DataType, options: Mapping[str, str]) -> tuple[str, ...]:
    """The fields that a column needs, such as ``("keyword", "text:standard")``.

    Options, of string columns only: ``analyzer`` (standard, whitespace, simple) adds an analysed
    field.

    Raises:
        ColumnNotIndexable: the type cannot be held.
        IndexDefinitionInvalid: unknown option or value.
    """
    unknown = sorted(set(options) - {"analyzer"})
    if unknown:
        raise IndexDefinitionInvalid(
            f"Column {column}: a Lucene index has no column option {unknown[0]!r}.",
            remedy="The column options are: analyzer.",
        )
    analyzer = options.get("analyzer")
    if is_string(type):
        if analyzer is None:
            return (KEYWORD,)
        if analyzer not in ANALYZERS:
            raise IndexDefinitionInvalid(
                f"Column {column}: there is no analyzer {analyzer!r}.",
                remedy=f"Use one of: {', '.join(ANALYZERS)}.",
            )
        return (KEYWORD, TEXT_PREFIX + analyzer)
    if analyzer is not None:
        raise IndexDefinitionInvalid(
            f"Column {column} has type {type}: only string columns can be analysed.",
            remedy="Remove the option analyzer.",
        )
    if not is_number(type):
        raise ColumnNotIndexable(f"Column {column}: a Lucene index cannot hold type {type}.")
    return (NUMBER,)


def is_number(type: pa.DataType) -> bool:
    """Whether values of the type map to 64-bit integers in their order (see `encoding`)."""
    return bool(
        pa.types.is_signed_integer(type)
        or pa.types.is_float32(type)
        or pa.types.is_float64(type)
        or pa.types.is_boolean(type)
        or pa.types.is_date32(type)
        or pa.types.is_timestamp(type)
        or (pa.types.is_decimal128(type) and type.precision <= _MAX_DECIMAL_DIGITS)
    )


def keyword_field(column: str) -> str:
    """Lucene's field name of the column's keyword."""
    return f"k.{column}"


def number_field(column: str) -> str:
    """Lucene's field name of the column's number."""
    return f"n.{column}"


def null_field(column: str) -> str:
    """Lucene's field name that marks the column's NULLs."""
    return f"z.{column}"


def text_field(column: str, analyzer: str) -> str:
    """Lucene's field name of the column's analysed text."""
    return f"t.{analyzer}.{column}"
