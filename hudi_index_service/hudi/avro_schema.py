"""Converts the table's Avro schema from commit metadata to Arrow, with Spark's types.

hudi-rs is not used for this: it cannot express every type that Hudi writes (and then panics).
"""

import json
from typing import Any, NamedTuple

import pyarrow as pa

from hudi_index_service.columns import with_hudi_type, with_millis

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
_MILLIS = ("timestamp-millis", "local-timestamp-millis")
# Spark has vectors as arrays.
_VECTOR_ELEMENTS = {"FLOAT": pa.float32(), "DOUBLE": pa.float64(), "INT8": pa.int8()}


class _Type(NamedTuple):
    """An Avro schema's type in Arrow, and in Hudi, where that says more: see `hudi_type`, and
    `with_millis`."""

    arrow: pa.DataType
    hudi: str | None = None
    millis: bool = False


class UnknownAvroType(ValueError):
    """The schema has a type whose Spark counterpart is not known here."""


def arrow_schema(avro: str) -> pa.Schema:
    """The Arrow schema of a record in Avro's JSON. Every field is nullable, since a file may be
    older than its column.

    Raises:
        UnknownAvroType: an unknown type.
    """
    return pa.schema(list(_type(json.loads(avro), {}).arrow))


def unreadable_column(avro: str) -> str | None:
    """The first column that hudi-rs 0.5 cannot read, with the reason; None if it can read all.

    It cannot read timestamps without time zone, and named types referred to by name; and of log
    files not BLOBs, whose enum it does not take for that of a base file.
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
    if avro.get("logicalType") == "blob":
        return "a BLOB"
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


def _field(name: str, avro: Any, named_types: dict[str, _Type]) -> pa.Field:
    type = _type(avro, named_types)
    field = with_hudi_type(pa.field(name, type.arrow), type.hudi)
    return with_millis(field) if type.millis else field


def _type(avro: Any, named_types: dict[str, _Type]) -> _Type:
    """The type of an Avro schema; `named_types` collects its record, fixed and enum types."""
    if isinstance(avro, list):
        parts = [part for part in avro if part != "null"]
        if len(parts) != 1:
            raise UnknownAvroType(f"a union of {len(parts)} types")
        return _type(parts[0], named_types)
    if isinstance(avro, str):
        if avro in _PRIMITIVE:
            return _Type(_PRIMITIVE[avro])
        if avro not in named_types:
            raise UnknownAvroType(avro)
        return named_types[avro]
    type = _logical_type(avro, named_types)
    if "name" in avro:
        name = avro["name"]
        named_types[name] = named_types[f"{avro.get('namespace', '')}.{name}".lstrip(".")] = type
    return type


def _logical_type(avro: dict[str, Any], named_types: dict[str, _Type]) -> _Type:
    match avro.get("logicalType"):
        case "decimal":
            return _Type(pa.decimal128(avro["precision"], avro.get("scale", 0)))
        case "vector":
            return _vector(avro)
        case "blob" | "variant" as logical:
            return _Type(_nested_type(avro, named_types).arrow, logical.upper())
        case logical if logical in _LOGICAL:
            return _Type(_LOGICAL[logical], millis=logical in _MILLIS)
    return _nested_type(avro, named_types)


def _vector(avro: dict[str, Any]) -> _Type:
    element = avro.get("elementType", "FLOAT").upper()
    if (
        element not in _VECTOR_ELEMENTS
        or avro.get("storageBacking", "FIXED_BYTES") != "FIXED_BYTES"
    ):
        raise UnknownAvroType(f"a vector of {element}")
    shown = f"{avro['dimension']}" if element == "FLOAT" else f"{avro['dimension']}, {element}"
    return _Type(pa.list_(pa.field("element", _VECTOR_ELEMENTS[element])), f"VECTOR({shown})")


def _nested_type(avro: dict[str, Any], named_types: dict[str, _Type]) -> _Type:
    match avro["type"]:
        case "record":
            fields = [_field(each["name"], each["type"], named_types) for each in avro["fields"]]
            return _Type(pa.struct(fields))
        case "array":
            return _Type(pa.list_(_field("element", avro["items"], named_types)))
        case "map":
            return _Type(pa.map_(pa.string(), _field("value", avro["values"], named_types)))
        case "fixed":
            return _Type(pa.binary(avro["size"]))
        case "enum":
            return _Type(pa.string())
        case other:
            return _type(other, named_types)
