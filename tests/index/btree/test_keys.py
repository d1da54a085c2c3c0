"""Keys sort in Spark's order of the values, for every type."""

from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_index_service.arrow import numbers_array
from hudi_index_service.index.btree.fields import has_number_keys
from hudi_index_service.index.btree.keys import (
    CUT_BYTES,
    byte_keys,
    key_bytes,
    number_keys,
)
from hudi_index_service.predicate import evaluate
from hudi_index_service.predicate.expression import BoundColumn, Compare, Operator
from tests.example_counts import examples

PROPERTY = examples(60)


def keys_of(values: list[object], type: pa.DataType) -> list[bytes]:
    array = pa.array([None, *values], type).slice(1)  # starts inside its buffers
    if has_number_keys(type):
        numbers = numbers_array(number_keys(array))
        return [key_bytes(numbers, at) for at in range(len(numbers))]
    keys: list[bytes] = byte_keys(array)[0].to_pylist()
    return keys


def decimals(precision: int, scale: int) -> st.SearchStrategy[object]:
    most = 10**precision - 1
    return st.integers(-most, most).map(lambda n: Decimal(f"{n}E-{scale}"))


MOMENTS = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30))
ANY: dict[pa.DataType, st.SearchStrategy[object]] = {
    pa.bool_(): st.booleans(),
    pa.int8(): st.integers(-(2**7), 2**7 - 1),
    pa.int16(): st.integers(-(2**15), 2**15 - 1),
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.float32(): st.floats(width=32),
    pa.float64(): st.floats(),
    pa.decimal128(1, 0): decimals(1, 0),
    pa.decimal128(18, 6): decimals(18, 6),
    pa.decimal128(19, 19): decimals(19, 19),
    pa.decimal128(38, 10): decimals(38, 10),
    pa.date32(): st.dates(date(1, 1, 1), date(9999, 12, 31)),
    pa.timestamp("us"): MOMENTS,
    pa.timestamp("ms"): MOMENTS.map(lambda moment: moment.replace(microsecond=0)),
    pa.timestamp("us", "UTC"): MOMENTS.map(lambda moment: moment.replace(tzinfo=UTC)),
    pa.string(): st.text(st.sampled_from("aZé日😀\x00\x7f\uffff")),
    pa.binary(): st.binary(max_size=12),
}  # fmt: skip


def is_true(
    column: BoundColumn, operator: Operator, value: pa.Scalar, data: pa.Table
) -> list[bool]:
    return list(evaluate(Compare(column, operator, value), data).to_pylist())


@pytest.mark.parametrize("type", ANY, ids=str)
def test_keys_compare_as_spark_compares_values(type: pa.DataType) -> None:
    @PROPERTY
    @given(values=st.lists(ANY[type], min_size=1, max_size=30), one=ANY[type])
    def holds(values: list[object], one: object) -> None:
        column, data = BoundColumn("c", type), pa.table({"c": pa.array(values, type)})
        keys, (key,) = keys_of(values, type), keys_of([one], type)
        scalar = pa.scalar(one, type)
        assert [other < key for other in keys] == is_true(column, Operator.LT, scalar, data)
        assert [other == key for other in keys] == is_true(column, Operator.EQ, scalar, data)

    holds()


def test_all_nans_have_the_same_key() -> None:
    payloads = np.array([0x7FF8000000000000, 0xFFF8000000000001, 0x7FF800000000ABCD], np.uint64)
    assert len({*number_keys(pa.array(payloads.view(np.float64))).tolist()}) == 1


@pytest.mark.parametrize("length", [CUT_BYTES - 1, CUT_BYTES, CUT_BYTES + 1, 5_000])
def test_long_keys_are_truncated(length: int) -> None:
    keys, cut = byte_keys(pa.array(["a", "é" * (length // 2) + "x" * (length % 2)]))
    assert cut == (length >= CUT_BYTES)
    assert [len(key.as_py()) for key in keys] == [1, min(length, CUT_BYTES)]
