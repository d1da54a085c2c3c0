"""Columns in the types of a Spark plan.

Spark reads only the struct fields that a query needs, also within arrays and maps: its rule
SchemaPruning removes the others from the relation's types.
"""

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_type


def as_spark_sees(columns: pa.Schema, types: Sequence[str]) -> pa.Schema | None:
    """The columns in Spark's types, which may lack struct fields; None if a type differs otherwise.

    Args:
        types: Spark's types as JSON, one for each column.
    """
    kinds = [
        _narrowed(each.type, json.loads(type)) for each, type in zip(columns, types, strict=True)
    ]
    fields = [
        each if kind is None else each.with_type(kind)
        for each, kind in zip(columns, kinds, strict=True)
    ]
    return None if None in kinds else pa.schema(fields)


def _narrowed(kind: pa.DataType, wanted: Any) -> pa.DataType | None:
    """The type with only the struct fields that Spark needs; None if it is another type."""
    if isinstance(wanted, str):
        nested = pa.types.is_nested(kind)
        return (
            None
            if nested or from_arrow_type(kind, prefer_timestamp_ntz=True).jsonValue() != wanted
            else kind
        )
    match wanted["type"]:
        case "struct" if pa.types.is_struct(kind):
            return _narrowed_struct(kind, wanted["fields"])
        case "array" if pa.types.is_list(kind):
            values = _narrowed(kind.value_type, wanted["elementType"])
            return None if values is None else pa.list_(kind.value_field.with_type(values))
        case "map" if pa.types.is_map(kind):
            keys = _narrowed(kind.key_type, wanted["keyType"])
            items = _narrowed(kind.item_type, wanted["valueType"])
            if keys is None or items is None:
                return None
            return pa.map_(kind.key_field.with_type(keys), kind.item_field.with_type(items))
    return None


def _narrowed_struct(struct: pa.StructType, wanted: list[Any]) -> pa.DataType | None:
    fields = []
    for each in wanted:
        place = struct.get_field_index(each["name"])
        kind = None if place < 0 else _narrowed(struct.field(place).type, each["type"])
        if kind is None:
            return None
        fields.append(struct.field(place).with_type(kind))
    return pa.struct(fields)
