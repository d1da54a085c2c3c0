"""Numbers as 64-bit integers: order is kept, and a range holds exactly the values that match."""

from decimal import Context, Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_index_service.index.number_encoding import (
    EMPTY,
    INT64_MAX,
    INT64_MIN,
    WIDE_MIN,
    NumberRange,
    encode_array,
    encode_range,
    encode_wide,
    wide_bytes,
)
from hudi_index_service.index.stored_column import is_wide_number
from hudi_index_service.predicate import evaluate
from hudi_index_service.predicate.expression import BoundColumn, Compare, Operator
from tests.example_counts import examples

fixed = examples(100)
RANGED = tuple(set(Operator) - {Operator.NE})
doubles = st.floats(allow_nan=True, allow_infinity=True)
singles = st.floats(width=32, allow_nan=True, allow_infinity=True)


def wide_decimals(scale: int) -> st.SearchStrategy[Decimal]:
    unscaled = st.integers(-(10**38) + 1, 10**38 - 1)
    return unscaled.map(lambda value: Decimal(value).scaleb(-scale, Context(prec=38)))


@pytest.mark.parametrize(
    ("type", "numbers"),
    [
        (pa.float64(), doubles),
        (pa.float32(), singles),
        (pa.int8(), st.integers(-128, 127)),
        (pa.int64(), st.integers(INT64_MIN, INT64_MAX)),
        (pa.decimal128(18, 4), st.decimals(-(10**13), 10**13, places=4)),
        (pa.decimal128(38, 4), wide_decimals(4)),
        (pa.decimal128(38, 38), wide_decimals(38)),
        (pa.decimal128(19, 0), st.integers(-(10**19) + 1, 10**19 - 1).map(Decimal)),
    ],
    ids=str,
)
def test_a_range_holds_exactly_the_values_that_compare_true(
    type: pa.DataType, numbers: st.SearchStrategy[object]
) -> None:
    @fixed
    @given(literal=numbers, values=st.lists(numbers, max_size=10))
    def check(literal: object, values: list[object]) -> None:
        data = pa.table({"c": pa.array([literal, *values], type)})
        encode = encoded_wide if is_wide_number(type) else encoded_narrow
        encoded = encode(data.column("c").combine_chunks())
        for operator in RANGED:
            scalar = pa.scalar(literal, type)
            bounds = encode_range(operator, scalar, type)
            assert bounds is not None
            truth = evaluate(Compare(BoundColumn("c", type), operator, scalar), data).to_pylist()
            assert [bounds.low <= value <= bounds.high for value in encoded] == truth, operator

    check()


def encoded_narrow(array: pa.Array) -> list[int]:
    return list(encode_array(array).to_pylist())


def encoded_wide(array: pa.Array) -> list[int]:
    """The integers decoded from the bytes, which sort in the same order."""
    stored = encode_wide(array).to_pylist()
    numbers = [int.from_bytes(each, "big") + WIDE_MIN for each in stored]
    assert stored == [wide_bytes(number) for number in numbers]
    assert sorted(range(len(stored)), key=lambda row: stored[row]) == sorted(
        range(len(stored)), key=lambda row: numbers[row]
    )
    return numbers


@pytest.mark.parametrize(
    ("operator", "low", "high"),
    [
        (Operator.EQ, 1, 0),
        (Operator.LT, INT64_MIN, 150),
        (Operator.LE, INT64_MIN, 150),
        (Operator.GT, 151, INT64_MAX),
        (Operator.GE, 151, INT64_MAX),
    ],
)
def test_a_literal_between_two_values_is_rounded_inwards(
    operator: Operator, low: int, high: int
) -> None:
    literal = pa.scalar(Decimal("1.505"), pa.decimal128(4, 3))
    assert encode_range(operator, literal, pa.decimal128(9, 2)) == NumberRange(low, high)


def test_ranges_beyond_the_type_are_empty() -> None:
    int64 = pa.int64()
    assert encode_range(Operator.GT, pa.scalar(INT64_MAX), int64) == EMPTY
    assert encode_range(Operator.LT, pa.scalar(INT64_MIN), int64) == EMPTY
    above = pa.scalar(Decimal(2**63), pa.decimal128(38, 0))
    assert encode_range(Operator.EQ, above, int64) == EMPTY
    assert encode_range(Operator.GE, above, int64) == EMPTY
    assert encode_range(Operator.LT, above, int64) == NumberRange(INT64_MIN, INT64_MAX)


@pytest.mark.parametrize(
    ("literal", "type"),
    [
        (pa.scalar(1.5), pa.int64()),
        (pa.scalar(1), pa.float64()),
        (pa.scalar(1), pa.bool_()),
        (pa.scalar(1), pa.date32()),
        (pa.scalar(1, pa.timestamp("ms")), pa.timestamp("us")),
        (pa.scalar(1, pa.timestamp("us", "UTC")), pa.timestamp("us")),
        (pa.scalar("1"), pa.int64()),
    ],
    ids=str,
)
def test_literals_of_another_type_are_not_encoded(literal: pa.Scalar, type: pa.DataType) -> None:
    assert encode_range(Operator.EQ, literal, type) is None


def test_nulls_and_slices_are_kept() -> None:
    whole = pa.array(
        [Decimal("0.01"), None, Decimal("-0.02"), Decimal("9.99")], pa.decimal128(9, 2)
    )
    assert encode_array(whole.slice(1)).to_pylist() == [None, -2, 999]
    assert encode_array(whole.slice(4)).to_pylist() == []
    assert encode_array(pa.array([True, None, False]).slice(1)).to_pylist() == [None, 0]
    wide = whole.cast(pa.decimal128(38, 2))
    assert encode_wide(wide.slice(1)).to_pylist() == [None, wide_bytes(-2), wide_bytes(999)]
    assert encode_wide(wide.slice(4)).to_pylist() == []
