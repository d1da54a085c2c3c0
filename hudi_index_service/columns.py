"""Column names: their syntax, and which column of a table a name means, as in Spark.

A column is named by its dotted path: ``a``, or ``a.b`` for the field ``b`` of the struct column
``a``. A part that itself holds a dot or a back-quote is back-quoted (with back-quotes doubled), so
that a name has one meaning: `` `a.b` `` is a column of the table, even if it has a struct ``a``.
"""

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from hudi_index_service.errors import ColumnAmbiguous, ColumnNotFound, ConfigInvalid
from hudi_index_service.wording import counted, shortened

_LONGEST_NAME = 255  # characters; a longer name is not matched to near names

_NAMES_LISTED = 10
"""Names that the remedy for a missing column lists."""

_PART = re.compile(r"`(?P<quoted>(?:[^`]|``)+)`|(?P<plain>[^.`]+)")


def column_name(parts: Sequence[str]) -> str:
    """The name of the column with this path."""
    return ".".join(
        "`" + part.replace("`", "``") + "`" if "." in part or "`" in part else part
        for part in parts
    )


def column_path(name: str) -> tuple[str, ...]:
    """The parts of a name written by `column_name` or by a user.

    Raises:
        ColumnNotFound: not a valid name: not text, an empty part, or an unclosed back-quote.
    """
    require_name(name)
    return _column_path(name)


def require_name(name: object) -> None:
    """Raises ColumnNotFound if the name is not text."""
    if not isinstance(name, str):
        raise ColumnNotFound(
            f"{name!r} is not a column name, but of type {type(name).__name__}.",
            remedy="Give names as text.",
        )


def require_list(names: object, what: str) -> None:
    """Refuses as a list of names a single text, which would be iterated letter by letter, a
    dictionary, whose values would be dropped, and what is no sequence.

    Args:
        what: The argument's name, for the message.

    Raises:
        ConfigInvalid: not a list of names.
    """
    if isinstance(names, str | Mapping) or not isinstance(names, Iterable):
        options = (
            ' A column of an index takes options as Column(name="a", options={"analyzer": '
            '"standard"}), from hudi_index_service.'
            if isinstance(names, Mapping)
            else ""
        )
        raise ConfigInvalid(
            f"{what} takes a list of names, not {names!r}.",
            remedy=f'Write {what}=["a", "b"].{options}',
        )


@lru_cache(maxsize=4096)
def _column_path(name: str) -> tuple[str, ...]:
    parts = []
    end = -1
    while end < len(name):
        match = _PART.match(name, end + 1)
        if match is None or name[match.end() : match.end() + 1] not in ("", "."):
            raise ColumnNotFound(
                f"{name!r} is not a column name.",
                remedy="Write a.b for a field of a struct; back-quote a part that holds a dot.",
            )
        quoted = match["quoted"]
        parts.append(match["plain"] if quoted is None else quoted.replace("``", "`"))
        end = match.end()
    return tuple(parts)


def root_column(name: str) -> str:
    """The top-level column that the name denotes, or whose field it denotes."""
    return column_path(name)[0]


def find_column(schema: pa.Schema, parts: Sequence[str]) -> tuple[str, pa.DataType]:
    """The column that the parts denote, and its type. Case does not matter at any level.

    Returns:
        The name, spelled as in the schema, and the Arrow type.

    Raises:
        ColumnNotFound: no such column; the remedy lists near names.
        ColumnAmbiguous: several differ from it only in case, and none matches exactly.
    """
    field = _found_field(schema, parts)
    return field.name, field.type


def column_field(schema: pa.Schema, name: str) -> pa.Field | None:
    """The column with exactly that name, as a field of that name; None if the schema has none."""
    try:
        field = _found_field(schema, column_path(name))
    except (ColumnNotFound, ColumnAmbiguous):
        return None
    return field if field.name == name else None


def column_type(schema: pa.Schema, name: str) -> pa.DataType | None:
    """The type of the column with exactly that name; None if the schema has none."""
    field = column_field(schema, name)
    return None if field is None else field.type


def _found_field(schema: pa.Schema, parts: Sequence[str]) -> pa.Field:
    """The column that `find_column` finds, as a field with the column's name."""
    field = _field(schema, parts[0], [])
    path = [field.name]
    for part in parts[1:]:
        if not pa.types.is_struct(field.type):
            raise ColumnNotFound(
                f"{column_name(path)}.{part}: column {column_name(path)} has type {field.type}.",
                remedy="Name the column itself: only a struct has fields that can be named.",
            )
        field = _field(field.type, part, path)
        path.append(field.name)
    return field.with_name(column_name(path))


VARIANT = "VARIANT"
"""What `hudi_type` returns for a variant."""

_HUDI_TYPE = b"hudi_type"  # as in the metadata of Spark's fields


def with_hudi_type(field: pa.Field, type: str | None) -> pa.Field:
    """The field with its type in Hudi, as `hudi_type` returns it; None for an ordinary type."""
    return field if type is None else field.with_metadata({_HUDI_TYPE: type.encode()})


def hudi_type(schema: pa.Schema, name: str) -> str | None:
    """The type in Hudi of a column, or of the struct column whose field it is, where that says
    more than its Arrow type: ``VECTOR(3)``, ``BLOB`` or ``VARIANT``; None elsewhere.

    Raises:
        ColumnNotFound, ColumnAmbiguous: see `find_column`.
    """
    parent: pa.Schema | pa.DataType = schema
    path: list[str] = []
    for part in column_path(name):
        if path and not pa.types.is_struct(parent):
            return None
        field = _field(parent, part, path)
        found = (field.metadata or {}).get(_HUDI_TYPE)
        if found is not None:
            return str(found.decode())
        parent = field.type
        path.append(field.name)
    return None


def hudi_types(field: pa.Field) -> set[str]:
    """Such types of a field and of all fields in it."""
    own = (field.metadata or {}).get(_HUDI_TYPE)
    types = set() if own is None else {own.decode()}
    return types.union(*map(hudi_types, _inner_fields(field.type)))


_UNIT = b"hudi_unit"
_MILLIS = b"ms"


def with_millis(field: pa.Field) -> pa.Field:
    """The field, marked: the table's schema counts its times, or those in its array, in
    milliseconds. Its Arrow type is that of microseconds, which is what Spark returns."""
    if pa.types.is_list(field.type):
        return field.with_type(pa.list_(with_millis(field.type.value_field)))
    return field.with_metadata({_UNIT: _MILLIS})


def in_millis(field: pa.Field) -> bool:
    """Whether the field itself is marked by `with_millis`."""
    return bool((field.metadata or {}).get(_UNIT) == _MILLIS)


def has_millis(field: pa.Field) -> bool:
    """Whether the field, or one in it, is marked by `with_millis`."""
    return in_millis(field) or any(map(has_millis, _inner_fields(field.type)))


def without_millis(field: pa.Field) -> pa.Field:
    """The field without such marks, for values that have been read already."""
    if not has_millis(field):
        return field
    return pa.field(field.name, with_inner(field.type, without_millis), field.nullable)


def common_times(stored: pa.Field, target: pa.Field) -> Iterator[tuple[pa.Field, pa.Field]]:
    """Each timestamp of a stored column with the one in the table's schema that it is read as."""
    own, kind = stored.type, target.type
    if pa.types.is_timestamp(own) and pa.types.is_timestamp(kind):
        yield stored, target
    elif pa.types.is_struct(own) and pa.types.is_struct(kind):
        for field in kind:
            place = own.get_field_index(field.name)
            if place >= 0:
                yield from common_times(own.field(place), field)
    else:
        for pair in zip(_inner_fields(own), _inner_fields(kind), strict=False):
            yield from common_times(*pair)


def with_inner(type: pa.DataType, change: Callable[[pa.Field], pa.Field]) -> pa.DataType:
    """The type with the fields in a struct, map or list changed; any other type as it is."""
    inner = [change(each) for each in _inner_fields(type)]
    if pa.types.is_struct(type):
        return pa.struct(inner)
    if pa.types.is_map(type):
        key, item = inner
        return pa.map_(key.with_nullable(False), item)
    if pa.types.is_list(type):
        return pa.list_(*inner)
    return pa.large_list(*inner) if pa.types.is_large_list(type) else type


def _inner_fields(type: pa.DataType) -> list[pa.Field]:
    """The fields of a struct, an array's element, or a map's key and value."""
    if pa.types.is_map(type):
        return [type.key_field, type.item_field]
    return [type.field(number) for number in range(type.num_fields)]


def column_values(data: pa.RecordBatch | pa.Table, name: str) -> pa.Array | pa.ChunkedArray:
    """The values of a column of the data; a field of a NULL struct is NULL. Data without the struct
    may hold the field as a separate column of that name.

    Raises:
        KeyError: the data has no such column.
    """
    first, *rest = column_path(name)
    if rest and first not in data.schema.names:
        return data.column(name)
    values = data.column(first)
    for part in rest:
        index = values.type.get_field_index(part)
        if index < 0:
            raise KeyError(part)
        values = pc.struct_field(values, index)
    return values


def _field(parent: pa.Schema | pa.StructType, part: str, parent_path: list[str]) -> pa.Field:
    try:
        exact = parent.get_field_index(part)
    except UnicodeEncodeError:  # a lone surrogate, which no schema holds
        exact = -1
    if exact >= 0:  # tried first, which is fast; other names that differ in case do not matter
        return parent.field(exact)
    fields = list(parent)
    matches = [field for field in fields if field.name.lower() == part.lower()]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise ColumnAmbiguous(
            f"The column {column_name([*parent_path, part])} is ambiguous: several columns differ "
            "from it only in case."
        )
    where = f"Column {column_name(parent_path)}" if parent_path else "The table"
    kind = "field" if parent_path else "column"
    own_first = sorted(fields, key=lambda field: field.name.startswith("_hoodie_"))
    by_lower_case = {field.name.lower(): field.name for field in own_first}
    search_text = part.lower() if len(part) <= _LONGEST_NAME else ""
    near = difflib.get_close_matches(search_text, by_lower_case, n=_NAMES_LISTED)
    names = [by_lower_case[match] for match in near] or list(by_lower_case.values())
    choices = ", ".join(column_name([*parent_path, name]) for name in names[:_NAMES_LISTED])
    others = len(by_lower_case) - min(len(names), _NAMES_LISTED)
    more = f", and {counted(others, 'other')}" if others else ""
    raise ColumnNotFound(
        f"{where} has no {kind} {shortened(part)!r}.",
        remedy=f"Use one of its {kind}s: {choices}{more}." if names else f"It has no {kind}s yet.",
    )
