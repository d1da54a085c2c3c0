"""Converts the table's Avro schema from commit metadata to Arrow, with Spark's types.

hudi-rs is not used for this: it cannot express every type that Hudi writes (and then panics).
"""

import json
from typing import Any

import pyarrow as pa

_UTC_MICROS = pa.timestamp("us", tz="UTC")
_PRIMITIVE = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
    "enum": pa.string(),
}
# Spark's timestamps are always in microseconds.
_LOGICAL = {
    "date": pa.date32(),
    "timestamp-millis": _UTC_MICROS,
    "timestamp-micros": _UTC_MICROS,
    "local-timestamp-millis": pa.timestamp("us"),
    "local-timestamp-micros": pa.timestamp("us"),
}
_LOCAL_TIMESTAMP = "local-timestamp"


class UnknownAvroType(ValueError):
    """The schema has a type whose Spark counterpart is not known here."""


def arrow_schema(avro: str) -> pa.Schema:
    """The Arrow schema of a record in Avro's JSON. Every field is nullable, since a file may be
    older than its column.

    Raises:
        UnknownAvroType: an unknown type.
    """
    return pa.schema(list(_arrow_type(json.loads(avro), {})))


def unreadable_column(avro: str) -> str | None:
    """The first column that hudi-rs 0.5 cannot read, with the reason; None if it can read all.

    It cannot read timestamps without time zone, and named types referred to by name.
    """
    for column in json.loads(avro)["fields"]:
        if reason := _unreadable(column["type"]):
            return f"column {column['name']} holds {reason}"
    return None


def _unreadable(avro: Any) -> str | None:
    if isinstance(avro, str):
        return None if avro in _PRIMITIVE else f"a type by reference ({avro})"
    if isinstance(avro, list):
        return next((reason for part in avro if (reason := _unreadable(part))), None)
    if str(avro.get("logicalType", "")).startswith(_LOCAL_TIMESTAMP):
        return "a timestamp without time zone"
    match avro["type"]:
        case "record":
            inner = [each["type"] for each in avro["fields"]]
        case "array":
            inner = [avro["items"]]
        case "map":
            inner = [avro["values"]]
        case "fixed" | "enum":
            return None
        case other:
            inner = [other]
    return _unreadable(inner)


def _arrow_type(avro: Any, named_types: dict[str, pa.DataType]) -> pa.DataType:
    """The type of an Avro schema; `named_types` collects its record, fixed and enum types."""
    if isinstance(avro, list):
        parts = [part for part in avro if part != "null"]
        if len(parts) != 1:
            raise UnknownAvroType(f"a union of {len(parts)} types")
        return _arrow_type(parts[0], named_types)
    if isinstance(avro, str):
        kind = _PRIMITIVE.get(avro) or named_types.get(avro)
        if kind is None:
            raise UnknownAvroType(avro)
        return kind
    logical = avro.get("logicalType")
    if logical == "decimal":
        kind = pa.decimal128(avro["precision"], avro.get("scale", 0))
    elif logical in _LOGICAL:
        kind = _LOGICAL[logical]
    else:
        kind = _nested_type(avro, named_types)
    if "name" in avro:
        name = avro["name"]
        named_types[name] = named_types[f"{avro.get('namespace', '')}.{name}".lstrip(".")] = kind
    return kind


def _nested_type(avro: dict[str, Any], named_types: dict[str, pa.DataType]) -> pa.DataType:
    match avro["type"]:
        case "record":
            return pa.struct(
                [
                    pa.field(each["name"], _arrow_type(each["type"], named_types))
                    for each in avro["fields"]
                ]
            )
        case "array":
            return pa.list_(pa.field("element", _arrow_type(avro["items"], named_types)))
        case "map":
            return pa.map_(pa.string(), _arrow_type(avro["values"], named_types))
        case "fixed":
            return pa.binary(avro["size"])
        case "enum":
            return pa.string()
        case other:
            return _arrow_type(other, named_types)
