"""Casts of literals between types with the results of Spark 3.5 (``spark.sql.ansi.enabled=false``).

A cast either returns exactly Spark's result (often NULL, if the text is not a value of the type) or
is refused: no result is guessed.
"""

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from decimal import ROUND_HALF_UP, Context, Decimal
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa

from hudi_index_service.arrow import scalar, text_scalar
from hudi_index_service.errors import ConfigInvalid, PredicateUnsupported
from hudi_index_service.predicate.values import DAY_MICROS, days_since_epoch, literal_sql
from hudi_index_service.wording import shortened

TIMESTAMP = pa.timestamp("us", "UTC")
TIMESTAMP_NTZ = pa.timestamp("us")

# UTF8String.trimAll: Java's white space and ISO control characters, of ASCII.
_TRIMMED = "".join(map(chr, range(0x21))) + "\x7f"
# String.trim of Java, which Spark's casts to floating point and decimal numbers use.
_JAVA_TRIMMED = "".join(map(chr, range(0x21)))

_INTEGER = re.compile(r"([+-]?)([0-9]*)(?:\.[0-9]*)?", re.ASCII)
_NUMBER = re.compile(r"[+-]?(?:[0-9]++(?:\.[0-9]*)?|\.[0-9]+)(?:[eE]([+-]?[0-9]+))?", re.ASCII)
_EXPONENT_DIGITS = 4  # far more than any decimal needs; Java's own limit is that of an int
_MAX_DIGITS = 38
_LONG_DIGITS = 19  # of the largest number of 64 bits
_NOT_FINITE = re.compile(r"nan|[+-]?inf(?:inity)?", re.IGNORECASE | re.ASCII)
_BOOLEAN = dict.fromkeys(("t", "true", "y", "yes", "1"), True) | dict.fromkeys(
    ("f", "false", "n", "no", "0"), False
)
_DATE = re.compile(r"([+-]?[0-9]{4,7})(?:-([0-9]{1,2})(?:-([0-9]{1,2})(?:[ T].*)?)?)?", re.DOTALL)
# Spark reads these as times relative to the query's own time, or as the epoch.
_SPECIAL_MOMENT = re.compile(r"(?:epoch|now|today|yesterday|tomorrow)\b", re.IGNORECASE)
_TIMESTAMP = re.compile(
    r"([+-]?[0-9]{4,6})(?:-([0-9]{1,2})(?:-([0-9]{1,2})"
    r"(?:[ T]([0-9]{1,2})(?::([0-9]{1,2})(?::([0-9]{1,2})(?:\.([0-9]*))?[ ]?"
    r"(Z|UTC|[+-][0-9]{1,2}(?::[0-9]{2})?|[A-Za-z_]+(?:/[A-Za-z_+-]+)+)?)?)?)?)?)?"
)
_OFFSET = re.compile(r"([+-])([0-9]{1,2})(?::([0-9]{2}))?")
_MAX_OFFSET = timedelta(hours=18)
_FOLDERS_OF_ZONES = ("posix/", "right/")  # duplicates of all zones, unknown to Java
_YEAR_10000 = 253_402_300_800_000_000  # microseconds since the epoch


def session_zone(name: str) -> tzinfo:
    """The zone of a ``spark.sql.session.timeZone`` setting: a region, ``UTC``, ``Z`` or ``+08:00``.

    Raises:
        ConfigInvalid: there is no such zone.
    """
    zone = _zone(name)
    if zone is None:
        raise ConfigInvalid(
            f"There is no time zone {name!r}.", remedy="Use a region such as Europe/Paris, or UTC."
        )
    return zone


def cast(value: pa.Scalar, target: pa.DataType, zone: tzinfo) -> pa.Scalar:
    """`value` as Spark casts it to the type `target`; `zone` is the session's time zone.

    Raises:
        PredicateUnsupported: the cast is not certain to give Spark's result.
    """
    source = value.type
    if not value.is_valid:
        return scalar(None, target)
    if source == target:
        return value
    if pa.types.is_string(source):
        return scalar(_from_string(value.as_py(), target, zone), target)
    if pa.types.is_integer(source):
        return _from_integer(value.as_py(), source, target)
    if pa.types.is_decimal(source) and (pa.types.is_decimal(target) or pa.types.is_float64(target)):
        return _from_decimal(value.as_py(), target)
    if pa.types.is_float32(source) and pa.types.is_float64(target):
        return scalar(value.as_py(), target)
    if pa.types.is_date32(source) and pa.types.is_timestamp(target):
        return scalar(_instant(value.value * DAY_MICROS, _zone_of(target, zone)), target)
    if source == TIMESTAMP_NTZ and target == TIMESTAMP:
        return scalar(_instant(value.value, zone), target)
    raise _refusal(literal_sql(value), target)


def _from_string(text: str, target: pa.DataType, zone: tzinfo) -> object:
    trimmed = text.strip(_TRIMMED)
    if pa.types.is_integer(target):
        match = _INTEGER.fullmatch(trimmed)
        if match is None or trimmed in ("", "+", "-"):
            return None
        number = integer(match[1] + match[2])
        return number if number is not None and fits(number, target) else None
    if pa.types.is_floating(target):
        return _floating_from_string(text, text.strip(_JAVA_TRIMMED), target)
    if pa.types.is_decimal(target):
        return _decimal_from_string(text, text.strip(_JAVA_TRIMMED), target)
    if pa.types.is_boolean(target):
        return _BOOLEAN.get(trimmed.lower())
    if pa.types.is_binary(target):
        return text.encode()
    if pa.types.is_date32(target):
        return _date_from_string(text, trimmed, target)
    if pa.types.is_timestamp(target):
        return _timestamp_from_string(text, trimmed, target, zone)
    raise _refusal(text, target)


def _floating_from_string(text: str, trimmed: str, target: pa.DataType) -> object:
    if _NUMBER.fullmatch(trimmed):
        # Straight to the target type: rounding to double first may round twice.
        return text_scalar(trimmed.removeprefix("+")).cast(target).as_py()
    if _NOT_FINITE.fullmatch(trimmed):
        return float(trimmed)
    if re.search(r"[0-9]|nan|inf", trimmed, re.IGNORECASE):
        raise _refusal(text, target)  # Java reads 1.5f, 0x1p3 and +NaN too.
    return None


def _decimal_from_string(text: str, trimmed: str, target: pa.DataType) -> object:
    """``Decimal.fromString``: NULL for more than 38 digits before the point, including those of a
    zero with an exponent."""
    match = _NUMBER.fullmatch(trimmed)
    if match is None or len((match[1] or "").lstrip("+-0")) > _EXPONENT_DIGITS:
        raise _refusal(text, target)
    number = Decimal(trimmed)
    digits, exponent = number.as_tuple().digits, int(number.as_tuple().exponent)
    if len(digits) + exponent > _MAX_DIGITS:
        return None
    return _from_decimal(number, target).as_py()


def _date_from_string(text: str, trimmed: str, target: pa.DataType) -> int | None:
    match = _DATE.fullmatch(trimmed)
    if match is None:
        if _SPECIAL_MOMENT.match(trimmed):
            raise _refusal(text, target)
        return None
    year, month, day = (int(part) if part else 1 for part in match.groups())
    days = days_since_epoch(year, month, day)
    if days is not None and not fits(days, pa.int32()):
        raise _refusal(text, target)
    return days


def _timestamp_from_string(
    text: str, trimmed: str, target: pa.DataType, zone: tzinfo
) -> int | None:
    match = _TIMESTAMP.fullmatch(trimmed)
    if match is None:
        raise _refusal(text, target)
    *_, fraction, own_zone = match.groups()
    year, month, day = (int(part) if part else 1 for part in match.groups()[:3])
    hour, minute, second = (int(part) if part else 0 for part in match.groups()[3:6])
    days = days_since_epoch(year, month, day)
    if own_zone:
        parsed_zone = _zone(own_zone)
        if parsed_zone is None or target == TIMESTAMP_NTZ:
            raise _refusal(text, target)
        zone = parsed_zone
    if days is None or hour > 23 or minute > 59 or second > 59:
        return None
    micros = ((days * 24 + hour) * 60 + minute) * 60 + second
    micros = micros * 1_000_000 + int(f"{fraction or '':0<6}"[:6])
    return _instant(micros, _zone_of(target, zone))


def _from_integer(value: int, source: pa.DataType, target: pa.DataType) -> pa.Scalar:
    if pa.types.is_integer(target) and fits(value, target):
        return scalar(value, target)
    if pa.types.is_decimal(target):
        return _from_decimal(Decimal(value), target)
    if pa.types.is_float64(target):
        return scalar(float(value), target)
    if pa.types.is_float32(target):
        return scalar(single(value), target)
    if pa.types.is_string(target):
        return scalar(str(value), target)
    raise _refusal(str(value), target)  # Out of range, Spark wraps around.


def _from_decimal(value: Decimal, target: pa.DataType) -> pa.Scalar:
    if pa.types.is_float64(target):
        return scalar(float(value), target)
    context = Context(prec=1000)
    rounded = value.quantize(Decimal(1).scaleb(-target.scale), ROUND_HALF_UP, context)
    unscaled = int(rounded.scaleb(target.scale, context))
    return scalar(rounded if abs(unscaled) < 10**target.precision else None, target)


def single(value: int) -> float:
    """A 64-bit integer rounded to the nearest float32, as ``(float) value`` in Java."""
    return float(np.int64(value).astype(np.float32))


def integer(digits: str) -> int | None:
    """The integer of decimal digits, with or without a sign; None beyond 64 bits, since Python
    refuses to parse thousands of digits and is slow for many."""
    unsigned = digits.lstrip("+-").lstrip("0")
    if len(unsigned) > _LONG_DIGITS:
        return None
    value = int(unsigned or "0")
    return -value if digits.startswith("-") else value


def fits_exponent(digits: str) -> bool:
    """Whether an exponent, with or without a sign, is in the range of Java's int."""
    exponent = integer(digits)
    return exponent is not None and fits(exponent, pa.int32())


def fits(value: int, integer_type: pa.DataType) -> bool:
    """Whether `value` is in the range of a signed integer type."""
    half = 1 << (integer_type.bit_width - 1)
    return bool(-half <= value < half)


def _zone_of(target: pa.DataType, zone: tzinfo) -> tzinfo:
    return UTC if target.tz is None else zone


def _instant(local_micros: int, zone: tzinfo) -> int:
    """Microseconds since the epoch of a local time. A time in a gap is moved forward by the gap's
    length; of two instants the earlier is taken (``ZonedDateTime.of``)."""
    if isinstance(zone, timezone):
        micros = local_micros - zone.utcoffset(None) // timedelta(microseconds=1)
    elif not 0 <= local_micros < _YEAR_10000:
        raise PredicateUnsupported(
            "A local time before 1970 or after 9999 may depend on the time zone data's version.",
            remedy="Write it in UTC: TIMESTAMP'yyyy-MM-dd HH:mm:ssZ'.",
        )
    else:
        local = datetime(1970, 1, 1) + timedelta(microseconds=local_micros)
        offset = local.replace(tzinfo=zone).utcoffset()
        assert offset is not None
        micros = local_micros - offset // timedelta(microseconds=1)
    if not fits(micros, pa.int64()):
        raise PredicateUnsupported(
            "A timestamp is outside the range of 64-bit microseconds.",
            remedy="Use a year between -290307 and 294246.",
        )
    return micros


def _zone(name: str) -> tzinfo | None:
    if name in ("Z", "UTC", "GMT", "Etc/UTC"):
        return UTC
    match = _OFFSET.fullmatch(name)
    if match is not None:
        offset = timedelta(hours=int(match[2]), minutes=int(match[3] or 0))
        if offset > _MAX_OFFSET or int(match[3] or 0) > 59:
            return None
        return timezone(-offset if match[1] == "-" else offset)
    if name.startswith(_FOLDERS_OF_ZONES):
        return None
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # ZoneInfoNotFoundError is a KeyError
        return None


def _refusal(text: str, target: pa.DataType) -> PredicateUnsupported:
    return PredicateUnsupported(
        f"The literal {shortened(text)!r} cannot be cast to type {target} with certainty.",
        remedy=f"Write a literal of the column's own type ({target}) in its usual form.",
    )
