"""A column of an index: which types it can have, and what it is as it is to be built and as an
entry's manifest states it. Arrow types are written as `str()` prints them, and parsed here."""

import re
from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Annotated, Any, Self

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field

from hudi_index_service.arrow import text_scalar
from hudi_index_service.columns import hudi_type, with_millis
from hudi_index_service.errors import ColumnNotIndexable, EntryInvalid
from hudi_index_service.predicate.bounds import ValueBounds
from hudi_index_service.predicate.values import bound_of

_SIMPLE = {
    str(type): type
    for type in (
        pa.bool_(),
        pa.int8(),
        pa.int16(),
        pa.int32(),
        pa.int64(),
        pa.float32(),
        pa.float64(),
        pa.string(),
        pa.large_string(),
        pa.binary(),
        pa.large_binary(),
        pa.date32(),
        *(pa.timestamp(unit) for unit in ("s", "ms", "us", "ns")),
    )
}
_TIMESTAMP = re.compile(r"timestamp\[(?P<unit>s|ms|us|ns), tz=(?P<zone>[^\]]+)\]")
_LIST = re.compile(r"list<(?P<name>\w+): (?P<element>.+?)(?P<required> not null)?>")
_DECIMAL = re.compile(r"decimal128\((?P<precision>\d+), (?P<scale>-?\d+)\)")
_NARROW_DIGITS = 18  # digits of a decimal that fit into 64 bits
_IN_MILLIS = " in ms"
"""Ends the type of times that the table's schema counts in milliseconds. Entries built when it
counted microseconds do not serve then: the values in some base files would be others."""


def arrow_type_name(type: pa.DataType, *, in_millis: bool) -> str:
    """The type's name in manifests and segments."""
    return f"{type}{_IN_MILLIS if in_millis else ''}"


def is_in_millis(name: str) -> bool:
    """Whether the type of that name is one of times in milliseconds."""
    return name.endswith(_IN_MILLIS)


def parse_arrow_type(text: str) -> pa.DataType:
    """The Arrow type of that name. Raises EntryInvalid if it is not indexable."""
    text = text.removesuffix(_IN_MILLIS)
    if text in _SIMPLE:
        return _SIMPLE[text]
    if match := _TIMESTAMP.fullmatch(text):
        return pa.timestamp(match["unit"], match["zone"])
    if match := _DECIMAL.fullmatch(text):
        return pa.decimal128(int(match["precision"]), int(match["scale"]))
    if match := _LIST.fullmatch(text):
        element = parse_arrow_type(match["element"])
        return pa.list_(pa.field(match["name"], element, nullable=match["required"] is None))
    raise EntryInvalid(f"The manifest has a type that is unknown here: {text}.")


def is_known_type(type: pa.DataType) -> bool:
    """Whether a manifest can state the type."""
    try:
        return bool(parse_arrow_type(str(type)) == type)
    except EntryInvalid:
        return False


@dataclass(frozen=True, slots=True)
class ColumnSpec:
    """A column to be indexed.

    Attributes:
        name: The name as the table's schema spells it.
        type: The Arrow type of the column in the table's schema.
        fields: The fields physically indexed for the column, in the index type's own words, such as
            ``("keyword", "text:standard")``. An entry serves a definition's column if it holds at
            least the fields that the definition requires.
        in_millis: Whether the table's schema counts the column's times in milliseconds.
    """

    name: str
    type: pa.DataType
    fields: tuple[str, ...]
    in_millis: bool = False

    @property
    def type_name(self) -> str:
        """The name of the type in manifests and segments."""
        return arrow_type_name(self.type, in_millis=self.in_millis)

    @property
    def field(self) -> pa.Field:
        """The column in the table's schema."""
        field = pa.field(self.name, self.type)
        return with_millis(field) if self.in_millis else field


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """Statistics of one column, collected by the builder.

    Attributes:
        null_count: The number of rows where the column is NULL.
        distinct: An estimate of the number of distinct values; None if unknown.
        truncated: The number of values that the index does not hold unchanged, because they are too
            long (it holds their first bytes) or not UTF-8. Look-ups in the column are then
            supersets.
    """

    null_count: int
    distinct: int | None = None
    truncated: int = 0


class StoredColumn(BaseModel):
    """A column of an entry with its statistics, as the entry's manifest stores it.

    Attributes:
        type_name: The name of `type` in the manifest.
        null_count, distinct, truncated: See `ColumnStatistics`.
        minimum, maximum: The least and greatest value as text; None if they are not known.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    name: str
    type_name: str = Field(alias="type")
    fields: tuple[str, ...]
    null_count: Annotated[int, Field(ge=0)]
    distinct: Annotated[int, Field(ge=0)] | None = None
    truncated: Annotated[int, Field(ge=0)] = 0
    minimum: str | None = None
    maximum: str | None = None

    @classmethod
    def of(
        cls,
        spec: ColumnSpec,
        statistics: ColumnStatistics,
        *,
        minimum: str | None = None,
        maximum: str | None = None,
    ) -> Self:
        """The column that was built as specified."""
        return cls(
            name=spec.name,
            type=spec.type_name,
            fields=spec.fields,
            null_count=statistics.null_count,
            distinct=statistics.distinct,
            truncated=statistics.truncated,
            minimum=minimum,
            maximum=maximum,
        )

    @cached_property
    def type(self) -> pa.DataType:
        """The Arrow type. Raises EntryInvalid for a type that is unknown here."""
        return parse_arrow_type(self.type_name)

    @property
    def spec(self) -> ColumnSpec:
        """What the column was built from. Raises EntryInvalid for a type that is unknown here."""
        return ColumnSpec(self.name, self.type, self.fields, is_in_millis(self.type_name))

    @cached_property
    def layout(self) -> Hashable:
        """What an index type's answers and look-ups depend on: name, type, fields, and whether
        values were truncated. Other statistics are left out: they differ from entry to entry.
        Raises EntryInvalid for a type that is unknown here."""
        return self.name, self.type, self.fields, bool(self.truncated)

    def holds(self, spec: ColumnSpec) -> bool:
        """Whether the column has the specified type and at least the specified fields."""
        return self.type_name == spec.type_name and set(spec.fields) <= set(self.fields)

    def bounds(self, rows: int) -> ValueBounds:
        """The bounds of the column's values, from its statistics and the base file's row count."""
        least, greatest = _bound(self.minimum, self.type_name), _bound(self.maximum, self.type_name)
        return ValueBounds(
            may_be_null=self.null_count > 0,
            may_be_value=self.null_count < rows,
            least=least,
            greatest=greatest,
            may_be_nan=least is None or greatest is None,  # a column with a NaN has neither
        )


@lru_cache(maxsize=65_536)
def _bound(text: str | None, type_name: str) -> Any:
    """The bound that a stored minimum or maximum stands for; None if that is uncertain. No answer
    depends on it."""
    if text is None:
        return None
    try:
        value = text_scalar(text).cast(parse_arrow_type(type_name))
        return bound_of(value) if str(value.cast(pa.string()).as_py()) == text else None
    except (pa.ArrowException, UnicodeDecodeError, EntryInvalid):
        return None


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
