"""Values that Parquet files or Arrow arrays may have and Python literals cannot express."""

import numpy as np
import pyarrow as pa
import pytest

from hudi_index_service.predicate import evaluate, parse_predicate

NANS = {
    "double": np.array([0x7FF8000000000000, 0xFFF8000000000001, 0], np.uint64).view(np.float64),
    "float": np.array([0x7FC00000, 0xFFC00001, 0], np.uint32).view(np.float32),
}


def truth(where: str, values: pa.Array) -> list[bool | None]:
    data = pa.table({"c": values})
    return evaluate(parse_predicate(where, data.schema), data).to_pylist()


@pytest.mark.parametrize("kind", NANS)
def test_in_list_with_nan_matches_every_nan_bit_pattern(kind: str) -> None:
    values = pa.array(NANS[kind], mask=None)
    with_null = pa.concat_arrays([values, pa.nulls(1, values.type)])
    nan = f"CAST('NaN' AS {kind})"
    assert truth(f"c IN ({nan}, 7)", with_null) == [True, True, False, None]
    assert truth(f"c NOT IN ({nan}, 7)", with_null) == [False, False, True, None]
    assert truth(f"c IN ({nan}, NULL)", with_null) == [True, True, None, None]
    assert truth("c IN (0, 7)", with_null) == [False, False, True, None]


def broken_text(*values: bytes | None) -> pa.Array:
    """Strings as bytes in a file, valid UTF-8 or not."""
    binary = pa.array(values, pa.binary())
    return pa.Array.from_buffers(pa.string(), len(binary), binary.buffers())


def test_like_percent_matches_every_text_but_null() -> None:
    values = broken_text(b"\xff", b"a", None, b"")
    assert truth("c LIKE '%'", values) == [True, True, None, True]
    assert truth("c NOT LIKE '%%'", values) == [False, False, None, False]


def test_elements_below_null_arrays_are_ignored() -> None:
    """Arrow allows such elements; Parquet does not write them."""
    hidden = pa.ListArray.from_arrays(
        pa.array([0, 2, 4, 5, 7]),
        pa.array([1, None, 7, 7, 7, None, 2]),
        mask=pa.array([False, True, False, False]),
    )
    assert truth("array_contains(c, 7)", hidden) == [None, None, True, None]
    assert truth("array_contains(c, 7)", hidden.slice(1)) == [None, True, None]


FAR_DAY = 3_700_007  # days since the epoch: beyond Python's year 9999


@pytest.mark.parametrize(
    ("days", "literals"),
    [
        (pa.array([0, FAR_DAY, None], pa.int32()).cast(pa.date32()), "DATE'{}', DATE'2024-01-01'"),
        (
            pa.array([0, FAR_DAY * 86_400_000_000, None], pa.int64()).cast(
                pa.timestamp("us", "UTC")
            ),
            "TIMESTAMP'{} 00:00:00', TIMESTAMP'2024-01-01 00:00:00'",
        ),
    ],
    ids=["date", "timestamp"],
)
def test_in_list_with_far_dates(days: pa.Array, literals: str) -> None:
    assert truth(f"c IN ({literals.format('+12100-04-11')})", days) == [False, True, None]


def test_far_date_literals_are_compared() -> None:
    assert truth("DATE'+12100-04-11' > DATE'9999-12-31'", pa.array([0], pa.date32())) == [True]
