"""Types of values in the fleet file: durations, backfills, sizes, references."""

import re
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema

from hudi_index_service.build.strategy import NO_BACKFILL, WHOLE_BACKFILL
from hudi_index_service.fleet.policies.references import FromEnvironment, FromFile

_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400, "w": 604_800}
_BYTES = {"": 1, "b": 1} | {
    f"{letter}{ending}": base**power
    for power, letter in enumerate("kmgtp", 1)
    for ending, base in (("b", 1000), ("ib", 1024), ("", 1024))
}
_DURATION_PATTERN = r"\d+(\.\d+)? ?(ms|s|m|min|h|d|w)"
_SIZE_PATTERN = r"\d+(\.\d+)? ?([kKmMgGtTpP]?[iI]?[bB]?)"
_NUMBER_AND_UNIT = re.compile(r"(?P<number>\d+(?:\.\d+)?) ?(?P<unit>[A-Za-z]*)")
_SECRET = re.compile(
    r"secret|password|token|credential|sas_|(^|_)(access|account|private|api|master|encryption)_key$"
    r"|service_account_key|session"
)


def _duration(value: Any) -> Any:
    if isinstance(value, timedelta):
        return value
    match = _NUMBER_AND_UNIT.fullmatch(value) if isinstance(value, str) else None
    if match is None or match["unit"] not in _SECONDS:
        raise ValueError("a duration is a number and a unit, such as 30s, 5m, 2h or 7d")
    seconds = float(match["number"]) * _SECONDS[match["unit"]]
    if not 0 < seconds < timedelta.max.total_seconds():
        raise ValueError("a duration is greater than 0")
    return timedelta(seconds=seconds)


def _size(value: Any) -> Any:
    match = _NUMBER_AND_UNIT.fullmatch(value) if isinstance(value, str) else None
    if match is not None and match["unit"].lower() in _BYTES:
        value = round(float(match["number"]) * _BYTES[match["unit"].lower()])
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError("a size is a number of bytes, or one with a unit such as 500MB or 10GiB")
    return value


def _backfill(value: Any) -> Any:
    words = value.split() if isinstance(value, str) else []
    match words:
        case ["none"]:
            return NO_BACKFILL
        case ["all"]:
            return WHOLE_BACKFILL
        case ["newest", number, "day" | "days"] if number.isdecimal() and 0 < int(number) < 10**6:
            return timedelta(days=int(number))
    raise ValueError("write none, all, or newest N days")


def _reference(value: Any) -> Any:
    """The value must not be in the message: it may be a secret."""
    if isinstance(value, FromFile | FromEnvironment):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    if isinstance(value, dict) and len(value) == 1:
        ((kind, where),) = value.items()
        if isinstance(where, str) and where and kind == "file":
            return FromFile(Path(where))
        if isinstance(where, str) and where and kind == "env":
            return FromEnvironment(where)
    raise ValueError("a value is a text, {file: PATH} or {env: NAME}")


def is_secret(option: str, value: object) -> bool:
    """Whether an option of a store has a secret as its value, in place of a reference."""
    return not isinstance(value, dict) and _SECRET.search(option.lower()) is not None


Duration = Annotated[
    timedelta,
    BeforeValidator(_duration),
    WithJsonSchema({"type": "string", "pattern": f"^{_DURATION_PATTERN}$"}),
]
Size = Annotated[
    int,
    BeforeValidator(_size),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 0},
                {"type": "string", "pattern": f"^{_SIZE_PATTERN}$"},
            ]
        }
    ),
]
Backfill = Annotated[
    timedelta,
    BeforeValidator(_backfill),
    WithJsonSchema({"type": "string", "pattern": r"^(none|all|newest \d+ days?)$"}),
]
StorageReference = Annotated[
    Any,  # Reference; pydantic has nothing to check after the validator
    BeforeValidator(_reference),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": ["string", "number", "boolean"]},
                *(
                    {
                        "type": "object",
                        "properties": {kind: {"type": "string"}},
                        "required": [kind],
                        "additionalProperties": False,
                    }
                    for kind in ("file", "env")
                ),
            ]
        }
    ),
]


def duration_text(value: timedelta) -> str:
    """A duration as the file has it: ``90m``."""
    seconds = value.total_seconds()
    for unit in ("w", "d", "h", "m"):
        if seconds and not seconds % _SECONDS[unit]:
            return f"{int(seconds / _SECONDS[unit])}{unit}"
    return f"{seconds:g}s"


def size_text(value: int) -> str:
    """A size as the file has it: ``10GiB``."""
    for power, letter in reversed(list(enumerate("KMGTP", 1))):
        if value and not value % 1024**power:
            return f"{value // 1024**power}{letter}iB"
    return str(value)
