"""The columns that a B+ tree can hold, and the kind of their keys: 64-bit numbers or bytes."""

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
