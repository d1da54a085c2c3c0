"""Columns and literals of generated predicates: values of the rows, and what is beside them."""

import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa

COLUMNS = [
    *("name", "msg", "price", "ratio", "amount", "small", "flag", "born", "seen", "cost", "huge"),
    *("raw", "place.City", "place.zip", "place.geo.lat"),
]
"""What is indexed, by the names of this service. The other columns are scanned."""

PLAIN = ["id", "ts", "part"]

_SPECIAL: dict[str, list[Any]] = {
    "price": [0.0, -0.0, math.nan, math.inf, -math.inf, 0.1, 5e-324],
    "ratio": [0.0, -0.0, math.nan, math.inf, 0.1, 1.5],
    "place.geo.lat": [0.0, -0.0, math.nan, 1e300],
    "amount": [0, -1, 2**63 - 1, -(2**63)],
    "small": [2**31 - 1, -(2**31)],
    "name": ["", "a", "a%", "PLAIN", "\U0010ffff", "é", "e\u0301"],
    "raw": [b"", b"\x00", b"\xff"],
    "born": [date(1, 1, 1), date(9999, 12, 31), date(1582, 10, 10)],
    "seen": [datetime(1970, 1, 1, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC)],
    "cost": [Decimal("0.00"), Decimal("9999999999.99")],
    "huge": [Decimal("0.0"), Decimal("12345678901234567890.5")],
}


class Values:
    """Literals for the columns of some rows.

    Args:
        rows: The rows.
    """

    def __init__(self, rows: pa.Table) -> None:
        self._values: dict[str, list[Any]] = {}
        for name in [*COLUMNS, *PLAIN]:
            values = rows.column(name.split(".")[0]).to_pylist()
            for part in name.split(".")[1:]:
                values = [each and each[part] for each in values]
            known = {repr(each): each for each in values if each is not None}
            self._values[name] = [*known.values(), *_SPECIAL.get(name, [])]

    def one(self, random: Random, column: str) -> Any:
        """A value of the column's type; sometimes next to one."""
        value = random.choice(self._values[column])
        return _beside(random, value) if random.random() < 0.2 else value

    def some(self, random: Random, column: str) -> list[Any]:
        """Up to six values."""
        return [self.one(random, column) for _ in range(random.randint(1, 6))]


def _beside(random: Random, value: Any) -> Any:
    """A value near to this one."""
    match value:
        case bool():
            return not value
        case int():
            return min(max(value + random.choice((-1, 1)), -(2**31)), 2**31 - 1)
        case float():
            return math.nextafter(value, random.choice((-math.inf, math.inf)))
        case str():
            return value[:-1] if random.random() < 0.5 else value + random.choice("\x00az")
        case bytes():
            return value + b"\x00"
        case datetime():
            return datetime(2000, 1, 1, tzinfo=UTC) if value.year > 9000 else value + _MICRO
        case date():
            return date(2000, 1, 1) if value.year > 9000 else value + timedelta(days=1)
        case Decimal():
            return value + Decimal(1).scaleb(int(value.as_tuple().exponent))
    return value


_MICRO = timedelta(microseconds=1)
