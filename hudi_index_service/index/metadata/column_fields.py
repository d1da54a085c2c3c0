"""The fields that an entry holds of a column, by the column's options.

Two options are not the index type's own, but understood for every type:

- ``stored``: with ``true``, the column's values are stored beside the index, so that queries on
  such columns alone read no base file; with ``only`` (INCLUDE in SQL), they are stored and the
  column is not indexed.
- ``key``: with ``composite``, the columns that have it are indexed by one key of all of them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import pyarrow as pa

from hudi_index_service.columns import column_path
from hudi_index_service.errors import ColumnNotIndexable, IndexDefinitionInvalid
from hudi_index_service.index.arrow_types import is_known_type
from hudi_index_service.index.contract import ColumnSpec, IndexType, StoredColumn
from hudi_index_service.index.metadata.definitions import Column, IndexDefinition

STORED = "stored"
"""The field of a column whose values are stored, and the option that asks for it."""

KEY = "key"
"""The option of columns that make one key."""

_CHOICES = {STORED: ("false", "true", "only"), KEY: ("single", "composite")}

_Column = TypeVar("_Column", ColumnSpec, StoredColumn)


def key_of(columns: Iterable[Column], index_type: str) -> tuple[str, ...]:
    """The names of the columns that make the composite key of an index type, in order; empty
    without such a key. One column alone has its own key."""
    names = tuple(each.name for each in columns if is_in_key(each.options_of(index_type)))
    return names if len(names) > 1 else ()


def column_fields(
    column: Column, type: pa.DataType, kind: IndexType, key: Sequence[str]
) -> tuple[str, ...]:
    """The fields that an entry needs for a column of a definition.

    Args:
        type: The column's type in the table's schema.
        key: The definition's composite key, see `key_of`.

    Raises:
        ColumnNotIndexable: the index type cannot hold the column.
        IndexDefinitionInvalid: an option is unknown or has a wrong value.
    """
    options = column.options_of(kind.name)
    stored, _ = (_choice(column, options, name) for name in _CHOICES)
    own_options = {name: value for name, value in options.items() if name not in _CHOICES}
    if stored != "false" and len(column_path(column.name)) > 1:
        raise IndexDefinitionInvalid(
            f"Column {column.name}: the values of a struct's field cannot be stored by themselves.",
            remedy=f"Store the whole column {column_path(column.name)[0]}.",
        )
    if stored != "false" and not is_known_type(type):
        raise ColumnNotIndexable(
            f"Column {column.name}: values of type {type} cannot be stored beside an index.",
            remedy="Leave it out of INCLUDE, or set stored = 'false'.",
        )
    if stored == "only":
        surplus = min((name for name in options if name != STORED), default=None)
        if surplus is not None:
            raise IndexDefinitionInvalid(
                f"Column {column.name} is stored and not indexed: it has no option {surplus!r}.",
                remedy=f"Leave {surplus} out, or index the column with stored = 'true'.",
            )
        return (STORED,)
    if column.name in key:
        if own_options:
            raise IndexDefinitionInvalid(
                f"Column {column.name}: a column of a composite key has no option "
                f"{min(own_options)!r}.",
                remedy="Leave it out.",
            )
        fields: tuple[str, ...] = (kind.key_field(column.name, type, key),)
    else:
        fields = kind.fields(column.name, type, own_options)
    return (*fields, STORED) if stored == "true" else fields


def including(columns: Iterable[Column], include: Iterable[Column]) -> tuple[Column, ...]:
    """The columns of a definition that also stores the values of others: INCLUDE in SQL. Those of
    indexed columns are stored too, so that queries may mention them, unless an option forbids it or
    they are fields of structs."""
    included = tuple(_with(each, {STORED: "only"}) for each in include)
    if not included:
        return tuple(columns)
    indexed = (
        _with(each, {STORED: "true"}) if len(column_path(each.name)) == 1 else each
        for each in columns
    )
    return (*indexed, *included)


def is_indexed(column: Column, index_type: str) -> bool:
    """Whether an index type indexes a column of a definition, and not only stores its values."""
    return column.options_of(index_type).get(STORED) != "only"


def names_by_use(definition: IndexDefinition) -> tuple[list[str], list[str]]:
    """The names of a definition's columns: of those that any of its index types indexes, and of
    those whose values are only stored."""
    of_indexed: list[str] = []
    of_stored: list[str] = []
    for column in definition.columns:
        is_any = any(is_indexed(column, each) for each in definition.index_types)
        (of_indexed if is_any else of_stored).append(column.name)
    return of_indexed, of_stored


def indexed(columns: Iterable[_Column]) -> tuple[_Column, ...]:
    """The columns as an index type knows them: without stored values, and without the columns of
    which nothing else is held."""
    return tuple(
        _with_fields(each, [name for name in each.fields if name != STORED])
        if STORED in each.fields
        else each
        for each in columns
        if each.fields != (STORED,)
    )


def stored_names(columns: Iterable[ColumnSpec | StoredColumn]) -> tuple[str, ...]:
    """The names of the columns whose values are stored."""
    return tuple(each.name for each in columns if STORED in each.fields)


def _with_fields(column: _Column, fields: Sequence[str]) -> _Column:
    if isinstance(column, StoredColumn):
        return column.model_copy(update={"fields": tuple(fields)})
    return replace(column, fields=tuple(fields))


def _with(column: Column, options: Mapping[str, str]) -> Column:
    return Column(name=column.name, options={**options, **column.options})


def is_in_key(options: Mapping[str, str]) -> bool:
    """Whether a column with these options (see `Column.options_of`) is to be in a composite key."""
    return options.get(KEY) == "composite" and options.get(STORED) != "only"


def _choice(column: Column, options: Mapping[str, str], name: str) -> str:
    choices = _CHOICES[name]
    value = options.get(name, choices[0])
    if value not in choices:
        raise IndexDefinitionInvalid(
            f"Column {column.name}: the option {name} cannot be {value!r}.",
            remedy=f"Use one of: {', '.join(choices)}.",
        )
    return value
