"""Columns in the types of a Spark plan.

Spark reads only the struct fields that a query needs, also within arrays and maps: its rule
SchemaPruning removes the others from the relation's types.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_type


def as_spark_sees(columns: Iterable[pa.Field], types: Sequence[Any]) -> pa.Schema | None:
    """The columns in Spark's types, which may lack struct fields; None if a type differs otherwise.

    Args:
        types: Spark's types, one for each column: `DataType.jsonValue` of each.
    """
    fields = []
    for each, spark_type in zip(columns, types, strict=True):
        kind = _prune(each.type, spark_type)
        if kind is None:
            return None
        fields.append(each if isinstance(spark_type, str) else each.with_type(kind))
    return pa.schema(fields)


def _prune(kind: pa.DataType, spark_type: Any) -> pa.DataType | None:
    """The type with only the struct fields that Spark needs; None if it is another type."""
    if isinstance(spark_type, str):
        return kind if _plain_type(kind) == spark_type else None
    match spark_type["type"]:
        case "struct" if pa.types.is_struct(kind):
            return _prune_struct(kind, spark_type["fields"])
        case "array" if pa.types.is_list(kind):
            values = _prune(kind.value_type, spark_type["elementType"])
            return None if values is None else pa.list_(kind.value_field.with_type(values))
        case "map" if pa.types.is_map(kind):
            keys = _prune(kind.key_type, spark_type["keyType"])
            items = _prune(kind.item_type, spark_type["valueType"])
            if keys is None or items is None:
                return None
            return pa.map_(kind.key_field.with_type(keys), kind.item_field.with_type(items))
    return None


@lru_cache(maxsize=256)
def _plain_type(kind: pa.DataType) -> str | None:
    """Spark's type, as JSON has it; None for nested types."""
    if pa.types.is_nested(kind):
        return None
    return str(from_arrow_type(kind, prefer_timestamp_ntz=True).jsonValue())


def _prune_struct(struct: pa.StructType, spark_fields: list[Any]) -> pa.DataType | None:
    fields = []
    for each in spark_fields:
        place = struct.get_field_index(each["name"])
        kind = None if place < 0 else _prune(struct.field(place).type, each["type"])
        if kind is None:
            return None
        fields.append(struct.field(place).with_type(kind))
    return pa.struct(fields)
