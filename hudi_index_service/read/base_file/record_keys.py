"""A table's record keys: the columns they are read from, and predicates that find keys.

Hudi stores the key of a row in ``_hoodie_record_key``. Virtual keys
(``hoodie.populate.meta.fields=false``) are made from the key columns when needed. A key of several
columns is printed as ``a:1,b:2``, NULL as ``__null__``, empty text as ``__empty__``.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from hudi_index_service.arrow import integers_array, text_scalar, texts_array
from hudi_index_service.columns import column_path, column_values, find_column
from hudi_index_service.errors import Remedy, TableFeatureUnsupported
from hudi_index_service.hudi.files.log_file import RECORD_KEY
from hudi_index_service.optimizer.decide import most_keys_by_index
from hudi_index_service.optimizer.plan import SlicePlan
from hudi_index_service.optimizer.serving import narrows
from hudi_index_service.predicate.expression import BoundColumn, In, Predicate, conjunction

_NULL = "__null__"
_EMPTY = "__empty__"
_NO_TEXT = text_scalar("")
SEARCH = Remedy(
    "Search the column itself: scan(…).row_ids().",
    command="Search the column itself with `hudi-index query`.",
)
_SEARCH_COLUMNS = Remedy(
    "Search by other columns: scan(…).row_ids().",
    command="Search by other columns with `hudi-index query`.",
)
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}")


@dataclass(frozen=True, slots=True)
class RecordKeys:
    """The record keys of a table. Make it by `record_keys`.

    Attributes:
        columns: The columns that a row's key is read from.
        fields: The key columns, as spelled in the table's properties → name and type.
        stored: Whether rows store their key.
    """

    columns: pa.Schema
    fields: Mapping[str, pa.Field]
    stored: bool

    def of(self, rows: pa.RecordBatch) -> pa.StringArray:
        """The key of each row."""
        if self.stored:
            return rows.column(RECORD_KEY).cast(pa.string())
        values = [column_values(rows, each.name).cast(pa.string()) for each in self.fields.values()]
        if len(values) == 1:
            return values[0]
        parts: list[pa.Array | pa.Scalar] = []
        empty, null = text_scalar(_EMPTY), text_scalar(_NULL)
        for field, column in zip(self.fields, values, strict=True):
            text = pc.if_else(pc.equal(column, _NO_TEXT), empty, column).fill_null(null)
            parts += [text_scalar(f"{',' if parts else ''}{field}:"), text]
        return pc.binary_join_element_wise(*parts, _NO_TEXT)

    def conditions(self, keys: pa.StringArray) -> Iterator[Predicate]:
        """Conditions that are each TRUE for every row with one of these keys, and perhaps for
        others; the best first."""
        if self.stored:
            yield In(BoundColumn(RECORD_KEY, self.columns.field(RECORD_KEY).type), keys)
        field_values = self._field_values(keys.to_pylist())
        if field_values is not None:
            leaves = [
                In(BoundColumn(field.name, field.type), values)
                for name, field in self.fields.items()
                if (values := _values(field_values[name], field.type)) is not None
            ]
            if leaves:
                yield conjunction(leaves)

    def narrowing(self, plan: SlicePlan, keys: pa.StringArray) -> Predicate | None:
        """A condition on rows with these keys that the slice's entries narrow. None if they narrow
        none, or for so many keys that reading all of the file's keys is cheaper."""
        if not plan.entries or len(keys) > most_keys_by_index(plan.total):
            return None
        return next((each for each in self.conditions(keys) if narrows(each, plan.entries)), None)

    def _field_values(self, keys: Sequence[str]) -> dict[str, set[str] | None] | None:
        """Field → its possible values in these keys, as printed; None for any value. Returns None
        if a key cannot be split unambiguously."""
        if not self.fields:
            return None
        if len(self.fields) == 1:
            (name,) = self.fields
            # Some releases of ComplexKeyGenerator print the column's name for a single column.
            return {name: {*keys, *(key.removeprefix(f"{name}:") for key in keys)}}
        names = list(self.fields)
        pattern = re.compile(",".join(f"{re.escape(name)}:(.*)" for name in names), re.DOTALL)
        separators = [f",{name}:" for name in names[1:]]
        columns: dict[str, set[str] | None] = {name: set() for name in names}
        for key in keys:
            match = pattern.fullmatch(key)
            if match is None or any(key.count(separator) > 1 for separator in separators):
                return None
            for name, value in zip(names, match.groups(), strict=True):
                values = columns[name]
                if value == _NULL:
                    columns[name] = None
                elif values is not None:
                    values.update((value, "") if value == _EMPTY else (value,))
        return columns


def record_keys(
    schema: pa.Schema,
    key_columns: Sequence[str],
    properties: Callable[[], Mapping[str, str]],
) -> RecordKeys:
    """The record keys of a table with this schema.

    Args:
        key_columns: ``hoodie.table.recordkey.fields``.
        properties: Reads the table's properties; called only if needed.

    Raises:
        TableFeatureUnsupported: the table has virtual keys that cannot be made here.
    """
    if not schema.names:  # there are no rows before the first commit
        return RecordKeys(schema, {}, stored=True)
    stored = RECORD_KEY in schema.names
    fields = {}
    for key_column in key_columns:
        name, type = find_column(schema, column_path(key_column))
        fields[key_column] = pa.field(name, type)
    if stored:
        return RecordKeys(pa.schema([schema.field(RECORD_KEY)]), fields, stored)
    if not fields:
        raise TableFeatureUnsupported(
            "The table's rows hold no record key, and it cannot be made from columns.",
            remedy=_SEARCH_COLUMNS,
        )
    odd = next((each for each in fields.values() if not _is_printed_alike(each.type)), None)
    if odd is not None:
        raise TableFeatureUnsupported(
            f"The table has virtual keys with column {odd.name} of type {odd.type}, which key "
            "generators print in several ways.",
            remedy=Remedy("Only keys of text and of integers can be located.") + SEARCH,
        )
    if len(fields) == 1 and _is_complex(properties()):
        raise TableFeatureUnsupported(
            "The table has virtual keys of one column by ComplexKeyGenerator, which some releases "
            "print with the column's name before it and some without.",
            remedy=SEARCH,
        )
    return RecordKeys(pa.schema(list(fields.values())), fields, stored)


def _is_complex(properties: Mapping[str, str]) -> bool:
    generator = [
        properties.get(f"hoodie.table.keygenerator.{key}", "") for key in ("class", "type")
    ]
    return any("complex" in each.lower() for each in generator)


def _is_printed_alike(type: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(type) or pa.types.is_large_string(type) or pa.types.is_integer(type)
    )


def _values(values: set[str] | None, type: pa.DataType) -> pa.Array | None:
    """The values in the column's type, at least one; None if they are not known."""
    if values is None:
        return None
    if pa.types.is_integer(type):
        numbers = sorted(int(value) for value in values if _INTEGER.fullmatch(value))
        low, high = -(2 ** (type.bit_width - 1)), 2 ** (type.bit_width - 1) - 1
        fitting = [number for number in numbers if low <= number <= high]
        return integers_array(fitting, type) if fitting else None
    if pa.types.is_string(type) or pa.types.is_large_string(type):
        return texts_array(sorted(values), type) if values else None
    return None
