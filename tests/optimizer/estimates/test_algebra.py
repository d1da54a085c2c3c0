"""Bounds of AND and OR hold however the operands correlate; the guess is between them."""

from functools import reduce
from operator import and_, or_

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap

from hudi_index_service.optimizer.expected import RowEstimate, all_of, any_of

TOTAL = 24


def exactly(rows: int) -> RowEstimate:
    return RowEstimate(rows, rows, rows)


ROW_SETS = st.builds(BitMap, st.sets(st.integers(0, TOTAL - 1)))


@st.composite
def known_sets(draw: st.DrawFn) -> tuple[BitMap, RowEstimate]:
    """Any rows, and a correct estimate of their number."""
    rows = draw(ROW_SETS)
    least = draw(st.integers(0, len(rows)))
    most = draw(st.integers(len(rows), TOTAL))
    return rows, RowEstimate(least, draw(st.floats(least, most)), most)


def holds(estimate: RowEstimate, rows: BitMap) -> None:
    """The number of rows lies between the bounds, and so does the guess."""
    assert 0 <= estimate.least <= len(rows) <= estimate.most <= TOTAL
    assert estimate.least <= estimate.expected <= estimate.most


@settings(derandomize=True, database=None, max_examples=200)
@given(st.lists(known_sets(), min_size=1, max_size=6))
def test_bounds_hold_for_any_correlation(sets):
    rows, known = [each for each, _ in sets], [each for _, each in sets]

    holds(all_of(known, TOTAL), reduce(and_, rows))
    holds(any_of(known, TOTAL), reduce(or_, rows))


def test_bounds_are_as_narrow_as_possible():
    assert all_of([exactly(70), exactly(80)], 100).least == 50
    assert all_of([exactly(70), exactly(80)], 100).most == 70
    assert all_of([exactly(20), exactly(30)], 100).least == 0
    assert any_of([exactly(20), exactly(30)], 100).least == 30
    assert any_of([exactly(20), exactly(30)], 100).most == 50
    assert any_of([exactly(70), exactly(80)], 100).most == 100


def test_back_off_starts_with_the_most_selective_conjunct():
    half, tenth = exactly(500), exactly(100)
    several = [half, tenth, half, half]
    assert all_of(several, 1000).expected == pytest.approx(100 * 0.5**0.5 * 0.5**0.25 * 0.5**0.125)
    # More than four have no further effect.
    assert all_of([*several, half], 1000).expected == all_of(several, 1000).expected


def test_or_arms_are_assumed_independent():
    assert any_of([exactly(500), exactly(100)], 1000).expected == pytest.approx(550)


def test_the_guess_stays_within_the_bounds():
    assert all_of([exactly(600), RowEstimate(500, 500, 1000)], 1000) == RowEstimate(
        100, pytest.approx(500 * 0.6**0.5), 600
    )
    assert all_of([exactly(300), RowEstimate(900, 900, 1000)], 1000).expected == 300 * 0.9**0.5
    assert all_of([exactly(1000), exactly(3)], 1000) == exactly(3)
    assert any_of([exactly(0), exactly(3)], 1000) == exactly(3)


def test_one_operand_is_unchanged_and_an_empty_table_has_no_rows():
    assert all_of([RowEstimate(1, 2.5, 9)], 10) == RowEstimate(1, 2.5, 9)
    assert any_of([RowEstimate(1, 2.5, 9)], 10) == RowEstimate(1, 2.5, 9)
    assert all_of([exactly(0), exactly(0)], 0) == exactly(0)
    assert any_of([exactly(0), exactly(0)], 0) == exactly(0)
