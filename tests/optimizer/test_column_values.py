"""Position of a text between two others."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_index_service.optimizer.column_values import share_between

TEXTS = st.one_of(st.binary(max_size=12), st.text("ab0 z", max_size=12).map(str.encode))


def share(least: str, greatest: str, value: str, *, above: bool = False) -> float:
    return share_between(least.encode(), greatest.encode())(value.encode(), above)


@pytest.mark.parametrize(
    ("least", "greatest", "value", "expected"),
    [
        ("0000", "9999", "5000", 0.5),
        ("order-0000", "order-9999", "order-2500", 0.25),  # the common prefix does not count
        ("a", "z", "n", 0.5),
        ("Aa", "Zz", "Nn", 0.5),
        ("a", "b", "a", 0.0),
        ("a", "b", "b", 1.0),
    ],
)
def test_positions_follow_digits_and_letters(least, greatest, value, expected):
    assert share(least, greatest, value) == pytest.approx(expected, abs=0.03)


def test_a_prefix_spans_all_texts_that_start_with_it():
    low = share("0000", "9999", "42")
    assert share("0000", "9999", "42", above=True) - low == pytest.approx(0.01, rel=0.05)
    assert share("key-00", "key-99", "ke", above=True) == 1
    assert share("key-00", "key-99", "ke") == 0


@settings(derandomize=True, database=None, max_examples=200)
@given(st.lists(TEXTS, min_size=2, max_size=5))
def test_the_order_is_kept(values):
    ordered = sorted(values)
    share = share_between(ordered[0], ordered[-1])
    shares = [share(each, False) for each in ordered]

    assert shares == sorted(shares)
    assert all(0 <= each <= 1 for each in shares)
    for each in ordered:
        assert share(each, False) <= share(each, True)
