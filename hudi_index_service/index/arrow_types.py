"""Parses the Arrow types in manifests, which are written as `str()` prints an Arrow type."""

import re

import pyarrow as pa

from hudi_index_service.errors import EntryInvalid

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
