"""Values as Spark SQL literals (Spark 3.5, default settings), exact and independent of the session.

The text written here means the same in every session: timestamps carry their zone, decimals their
suffix, strings their escapes (for ``spark.sql.parser.escapedStringLiterals=false``).
"""

import math
from decimal import Decimal

import numpy as np
import pyarrow as pa

from hudi_index_service.predicate.calendar import format_date, format_timestamp

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
