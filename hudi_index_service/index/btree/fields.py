"""Which columns a B+ tree holds, and how: by its keys, which are numbers of 64 bits or bytes."""

from collections.abc import Mapping

import pyarrow as pa

from hudi_index_service.errors import IndexDefinitionInvalid
from hudi_index_service.index.column_kinds import (
    element_type,
    is_number,
    is_wide_number,
    not_indexable,
)
from hudi_index_service.predicate.comparison import is_binary, is_string

KEY = "key"
"""The one field of every column."""


def required_fields(
    column: str, type: pa.DataType, options: Mapping[str, str], *, kind: str = "btree"
) -> tuple[str, ...]:
    """The fields that a column needs: one, for it has no options.

    Args:
        kind: Name of the index type, for messages.

    Raises:
        ColumnNotIndexable: the type cannot be held.
        IndexDefinitionInvalid: there is an option.
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
    """Whether the column's keys are numbers of 64 bits; else they are bytes."""
    return is_number(element_type(type))
