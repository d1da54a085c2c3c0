"""The minimum and maximum of a column over several batches."""

from datetime import date
from decimal import Decimal

import pyarrow as pa
import pytest

from hudi_index_service.build.entry.column_facts import Extremes

NAN = float("nan")


def extremes(type: pa.DataType, *batches: list[object]) -> tuple[str | None, str | None]:
    found = Extremes()
    for batch in batches:
        found.add(pa.array(batch, type))
    return found.minimum, found.maximum


@pytest.mark.parametrize(
    ("type", "batches", "expected"),
    [
        (pa.int64(), ([3, None], [], [-(2**63), 7]), (str(-(2**63)), "7")),
        (pa.bool_(), ([True], [None, False]), ("false", "true")),
        (pa.float64(), ([1.5], [-2.5, NAN]), (None, None)),
        (pa.float64(), ([NAN], [1.0]), (None, None)),
        (pa.float64(), ([float("inf")], [-0.5]), ("-0.5", "inf")),
        (pa.string(), (["b", "ä"], ["", None]), ("", "ä")),
        (pa.large_string(), (["b"], ["a"]), ("a", "b")),
        (pa.string(), (["x" * 200], ["a"]), ("a", None)),
        (pa.decimal128(9, 2), ([Decimal("1.10")], [Decimal("-0.01")]), ("-0.01", "1.10")),
        (pa.date32(), ([date(2026, 1, 1)], [date(1, 1, 1)]), ("0001-01-01", "2026-01-01")),
        (pa.string(), ([None], []), (None, None)),
    ],
)
def test_extremes_cover_all_batches(
    type: pa.DataType, batches: tuple[list[object], ...], expected: tuple[str | None, str | None]
) -> None:
    assert extremes(type, *batches) == expected


def test_dates_beyond_pythons_range_are_compared() -> None:
    days = pa.array([2**31 - 1, 5_000_000, 0], pa.int32()).cast(pa.date32())
    found = Extremes()
    for at in range(3):
        found.add(days.slice(at, 1))
    assert (found.minimum, found.maximum) == ("1970-01-01", None)

    micros = pa.array([2**62, -(2**62), 1]).cast(pa.timestamp("us", "UTC"))
    found = Extremes()
    for at in range(3):
        found.add(micros.slice(at, 1))
    assert found.minimum is None or "1970" not in found.minimum
    assert found.maximum is None or "1970" not in found.maximum


def test_invalid_utf8_gives_no_extreme() -> None:
    broken = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.array([0, 2], pa.int32()).buffers()[1], pa.py_buffer(b"\xff\xfe")]
    )
    found = Extremes()
    found.add(pa.array(["a"]))
    found.add(broken)
    assert (found.minimum, found.maximum) == ("a", None)
