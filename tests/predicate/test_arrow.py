"""Conversions without pandas give what pyarrow's own give."""

from datetime import date
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from hudi_index_service.arrow import (
    array_of_scalars,
    as_numbers,
    as_truths,
    binary_array,
    integers_array,
    numbers_array,
    scalar,
    texts_array,
    truths_array,
)

TRUTHS = pa.array([True, False, False, True, True, False, True, False, True, True, False])


@pytest.mark.parametrize(("start", "length"), [(0, 11), (0, 8), (3, 5), (7, 4), (9, 2), (5, 0)])
def test_slices_of_booleans_and_numbers(start: int, length: int) -> None:
    truths = TRUTHS.slice(start, length)
    assert as_truths(truths).tolist() == truths.to_pylist()
    for kind in (pa.int8(), pa.int32(), pa.int64(), pa.uint64(), pa.float32(), pa.float64()):
        numbers = pa.array(range(11), kind).slice(start, length)
        assert as_numbers(numbers).tolist() == numbers.to_pylist()
        assert as_numbers(numbers).dtype == kind.to_pandas_dtype()


def test_chunks() -> None:
    truths = pa.chunked_array([TRUTHS.slice(2, 3), TRUTHS.slice(9, 2)])
    assert as_truths(truths).tolist() == truths.to_pylist()
    assert as_truths(pa.chunked_array([], pa.bool_())).tolist() == []
    assert as_numbers(pa.chunked_array([], pa.int64())).tolist() == []


def test_null_has_no_value_in_numpy() -> None:
    with pytest.raises(ValueError, match="NULL"):
        as_truths(pa.array([True, None]))
    with pytest.raises(ValueError, match="NULL"):
        as_numbers(pa.array([1, None]))


@pytest.mark.parametrize("values", [pa.array([date(2026, 1, 1)]), pa.array([True]), pa.array("a")])
def test_other_types_are_no_numbers(values: pa.Array) -> None:
    with pytest.raises((TypeError, NotImplementedError)):
        as_numbers(values)


def test_masks() -> None:
    is_null = np.array([False, True, False])
    assert numbers_array(np.array([1, 2, 3]), is_null).to_pylist() == [1, None, 3]
    assert numbers_array(np.array([1, 2, 3]), np.zeros(3, dtype=bool)).null_count == 0
    truths = truths_array(np.array([True, True, False]), is_null)
    assert truths.to_pylist() == [True, None, False]
    assert truths.null_count == 1


def test_bytes_of_every_width() -> None:
    values = [b"ab", b"\0\xff"]
    for kind in (pa.binary(), pa.large_binary(), pa.binary(2)):
        assert binary_array(values, kind).equals(pa.array(values, kind))
        assert binary_array([], kind).equals(pa.array([], kind))
    with pytest.raises(pa.ArrowInvalid, match="2 bytes"):
        binary_array([b"abc"], pa.binary(2))


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (None, pa.int64()),
        (True, pa.bool_()),
        (-(2**31), pa.int32()),
        (2**63 - 1, pa.int64()),
        (19_000, pa.date32()),
        (-5, pa.timestamp("us", "UTC")),
        (0.1, pa.float32()),
        (np.float32(0.1), pa.float32()),
        (float("inf"), pa.float64()),
        ("grün", pa.string()),
        ("grün", pa.large_string()),
        (b"\0\xff", pa.binary()),
        (Decimal("-12.30"), pa.decimal128(5, 3)),
        (Decimal(10) ** 37, pa.decimal128(38, 0)),
        (Decimal("1E+3"), pa.decimal128(10, 2)),
    ],
)
def test_scalars(value: object, kind: pa.DataType) -> None:
    assert scalar(value, kind).equals(pa.scalar(value, kind))
    assert scalar(value, kind).type == kind


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (2**31, pa.int32()),
        (Decimal("1.234"), pa.decimal128(5, 2)),
        (Decimal(1000), pa.decimal128(3, 0)),
        ("1", pa.int32()),
    ],
)
def test_values_that_do_not_fit(value: object, kind: pa.DataType) -> None:
    with pytest.raises((pa.ArrowException, OverflowError, TypeError)):
        scalar(value, kind)


@pytest.mark.slow  # it takes as much memory
def test_bytes_of_two_gibibytes_do_not_fit() -> None:
    with pytest.raises(pa.ArrowInvalid, match="2,147,483,648 bytes are too many"):
        binary_array([bytes(1 << 30)] * 2)


@pytest.mark.parametrize(
    "values",
    [
        pa.array(["a", None, "é", ""]),
        pa.array([1, None, -(2**63)], pa.int64()),
        pa.array([7, None, -128], pa.int8()),
        pa.array([0, None, -719162, 2932896], pa.date32()),
        pa.array([None], pa.date32()),
        pa.array([], pa.string()),
        pa.array(["a", None, "é", ""], pa.large_string()),
        pa.array([None], pa.string()),
        pa.array([None], pa.int64()),
        pa.array([], pa.int64()),
    ],
)
def test_arrays_of_values(values: pa.Array) -> None:
    scalars = [each if each.is_valid else None for each in values]
    assert array_of_scalars(scalars, values.type).equals(values)
    if pa.types.is_int64(values.type):
        assert integers_array(values.to_pylist(), values.type).equals(values)
    elif not (pa.types.is_integer(values.type) or pa.types.is_date(values.type)):
        assert texts_array(values.to_pylist(), values.type).equals(values)
