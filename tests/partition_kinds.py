"""The types of partition columns, and what queries get of each: for a test and for the page."""

from dataclasses import dataclass

PATH = "that of the path, if spelled as Hudi's writers spell it"
REFUSED = "queries that use the column are left to Spark; others are not"


@dataclass(frozen=True)
class Kind:
    """A type of a partition column.

    Attributes:
        type: As in Spark SQL.
        one: A value, as SQL.
        other: Another one.
        value: What queries get.
    """

    type: str
    one: str
    other: str
    value: str = PATH


KINDS = {
    "flag": Kind("boolean", "true", "false"),
    "number": Kind("int", "7", "-8"),
    "large": Kind("bigint", "3000000000", "5"),
    "single": Kind("float", "0.1f", "1e10f"),
    "double": Kind("double", "0.1", "-1e-20"),
    "price": Kind("decimal(10, 2)", "1.50", "-20.00"),
    "day": Kind("date", "date'2024-02-29'", "date'1969-12-31'"),
    "name": Kind("string", "'a'", "'B c'", "that of the path, with `%XX` decoded"),
    "seen": Kind(
        "timestamp", "timestamp'2024-07-10 12:34:56.789'", "timestamp'1969-12-31 23:59'", REFUSED
    ),
    "raw": Kind("binary", "X'6162'", "X'63'", REFUSED),
}
"""Column → its type. Two types are missing: Spark itself fails on ``timestamp_ntz``, which is
refused, and ``tinyint`` and ``smallint`` are ``int`` in Hudi's schemas."""
