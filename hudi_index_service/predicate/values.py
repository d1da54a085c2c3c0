"""Forms of a value: printed by Spark, as a literal of Spark SQL, and as a bound of values.

A literal written here is exact and means the same in every session (Spark 3.5, default settings):
timestamps carry their zone, decimals their suffix, strings their escapes (for
``spark.sql.parser.escapedStringLiterals=false``). Days and microseconds are those of the proleptic
Gregorian calendar, for Spark's whole range of years; Python's own dates only cover 1 to 9999.
"""

import math
from datetime import date
from decimal import Context, Decimal

import numpy as np
import pyarrow as pa
from pyarrow import lib

DAY_MICROS = 86_400_000_000

_CYCLE_YEARS = 400
_CYCLE_DAYS = 146_097
_EPOCH = date(1970, 1, 1).toordinal()

_INTEGER_SUFFIX = {pa.int8(): "Y", pa.int16(): "S", pa.int32(): "", pa.int64(): "L"}

_ESCAPES = str.maketrans(
    {
        "\\": "\\\\",
        "'": "\\'",
        "\n": "\\n",
        "\r": "\\r",
        # Three octal digits, since \0 followed by digits would be read as an octal escape.
        "\0": "\\000",
    }
)

_EXACT = Context(prec=76)

# By number, which is fast: called for every literal of every query.
_COUNTED = {lib.Type_DATE32, lib.Type_TIMESTAMP}
_FLOATING = {lib.Type_FLOAT, lib.Type_DOUBLE}
_PLAIN = {
    lib.Type_BOOL,
    lib.Type_INT8,
    lib.Type_INT16,
    lib.Type_INT32,
    lib.Type_INT64,
    lib.Type_BINARY,
}


def days_since_epoch(year: int, month: int, day: int) -> int | None:
    """Days from 1970-01-01 to the date; None if there is no such date. Year 0 is 1 BC."""
    # The calendar repeats every 400 years: compute in the cycle that starts in the year 2000.
    cycles, year_in_cycle = divmod(year - 2000, _CYCLE_YEARS)
    try:
        base = date(2000 + year_in_cycle, month, day)
    except ValueError:
        return None
    return base.toordinal() - _EPOCH + cycles * _CYCLE_DAYS


def format_date(days: int) -> str:
    """``yyyy-MM-dd`` as Spark casts a date to a string: a sign for years above 9999 or below 0."""
    cycles, day_in_cycle = divmod(days + _EPOCH - date(2000, 1, 1).toordinal(), _CYCLE_DAYS)
    base = date.fromordinal(date(2000, 1, 1).toordinal() + day_in_cycle)
    year = base.year + cycles * _CYCLE_YEARS
    sign = "+" if year > 9999 else "-" if year < 0 else ""
    return f"{sign}{abs(year):04}-{base.month:02}-{base.day:02}"


def format_timestamp(micros: int) -> str:
    """Microseconds from 1970-01-01 00:00:00 as Spark casts them to a string: no trailing zeros in
    the fraction."""
    days, in_day = divmod(micros, DAY_MICROS)
    seconds, fraction = divmod(in_day, 1_000_000)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    tail = f".{fraction:06}".rstrip("0") if fraction else ""
    return f"{format_date(days)} {hour:02}:{minute:02}:{second:02}{tail}"


def identifier_sql(name: str) -> str:
    """`name` as a back-quoted identifier."""
    return "`" + name.replace("`", "``") + "`"


def string_sql(text: str) -> str:
    """`text` as a string literal."""
    return "'" + text.translate(_ESCAPES) + "'"


def literal_sql(value: pa.Scalar) -> str:
    """A scalar that is not NULL as a literal of the Spark type for its Arrow type.

    Raises:
        TypeError: Spark has no literal for the Arrow type.
    """
    kind = value.type
    if pa.types.is_boolean(kind):
        return "TRUE" if value.as_py() else "FALSE"
    if kind in _INTEGER_SUFFIX:
        return f"{value.as_py()}{_INTEGER_SUFFIX[kind]}"
    if pa.types.is_floating(kind):
        return _floating_sql(value)
    if pa.types.is_decimal(kind):
        number: Decimal = value.as_py()
        return f"{number:f}BD"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return string_sql(value.as_py())
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return f"X'{value.as_py().hex().upper()}'"
    if pa.types.is_date32(kind):
        return f"DATE'{format_date(value.value)}'"
    if pa.types.is_timestamp(kind):
        micros = value.cast(pa.timestamp("us", kind.tz)).value
        text = format_timestamp(micros)
        return f"TIMESTAMP_NTZ'{text}'" if kind.tz is None else f"TIMESTAMP'{text}Z'"
    raise TypeError(f"no Spark SQL literal for Arrow type {kind}")


def _floating_sql(value: pa.Scalar) -> str:
    single = pa.types.is_float32(value.type)
    number = value.as_py()
    if math.isfinite(number):
        shortest = str(np.float32(number)) if single else repr(number)
        return shortest + ("F" if single else "D")
    text = "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"
    return f"CAST('{text}' AS {'FLOAT' if single else 'DOUBLE'})"


def bound_of(value: pa.Scalar) -> bool | int | float | bytes | None:
    """A value in the form of bounds: dates and timestamps as integers, decimals unscaled, text in
    UTF-8; None for NaN and for types without bounds."""
    kind = value.type.id
    if kind in _COUNTED:
        return int(value.value)
    if kind in _PLAIN:
        plain: bool | int | bytes = value.as_py()
        return plain
    if kind == lib.Type_STRING:
        return utf8(value.as_py())
    if kind in _FLOATING:
        number = float(value.as_py())
        return None if math.isnan(number) else number
    if kind == lib.Type_DECIMAL128:
        return int(value.as_py().scaleb(value.type.scale, _EXACT))
    return None


def utf8(text: str) -> bytes | None:
    """The text in UTF-8; None if it has a lone surrogate."""
    try:
        return text.encode()
    except UnicodeEncodeError:  # a lone surrogate
        return None
