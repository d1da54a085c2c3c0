"""Which rows the comparison distinguishes, and how it shows differences."""

import pyarrow as pa
import pytest

from tests.same_rows import assert_same_rows

ROWS = pa.table({"id": ["1", "2"], "price": [float("nan"), 0.0], "tags": [[-0.0], None]})


def test_order_of_rows_is_ignored() -> None:
    assert_same_rows(ROWS, ROWS.take([1, 0]))


@pytest.mark.parametrize("other", [-0.0, float("nan"), None])
def test_awkward_values_are_distinguished(other: float | None) -> None:
    rows = ROWS.set_column(1, "price", pa.array([float("nan"), other]))
    with pytest.raises(AssertionError):
        assert_same_rows(rows, ROWS)


def test_duplicate_row_is_one_too_many() -> None:
    with pytest.raises(AssertionError, match="1 rows too many, 0 rows missing"):
        assert_same_rows(ROWS.take([0, 0, 1]), ROWS)


def test_differences_are_shown_as_a_table() -> None:
    rows = pa.table({"id": ["1", "2"], "price": [1.5, 2.5]})
    other = pa.table({"id": ["2", "1"], "price": [2.5, None]}, schema=rows.schema)
    with pytest.raises(AssertionError) as raised:
        assert_same_rows(rows, other)
    assert str(raised.value).splitlines() == [
        "1 rows too many, 1 rows missing:",
        "          id   price",
        "found     '1'  1.5",
        "expected  '1'  None",
        "               ^",
    ]
