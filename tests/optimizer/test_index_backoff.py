"""After look-ups that ended in a scan, fewer of the next base files are looked up."""

import pytest

from hudi_index_service.optimizer.decide import IndexBackoff
from hudi_index_service.optimizer.expected import Expected, RowEstimate

TOTAL = 1_000


def expected(rows: int) -> Expected:
    return Expected(RowEstimate(0, rows, TOTAL), 1, 1, 0, 1, 1, 1)


def looked_up(worth: list[bool], rows: list[int] | None = None) -> list[bool]:
    """For each slice, whether it is looked up, given where a look-up is worthwhile."""
    known, found = IndexBackoff(), []
    for number, worthwhile in enumerate(worth):
        guess = expected(rows[number] if rows else 800)
        skipped = known.should_skip(guess, TOTAL)
        if not skipped:
            known.record(guess, TOTAL, scanned=not worthwhile)
        found.append(not skipped)
    return found


def test_similar_slices_are_looked_up_less_and_less_often() -> None:
    assert looked_up([False] * 9) == [True, True, False, True, False, False, True, False, False]
    assert sum(looked_up([False] * 20)) == 6
    assert sum(looked_up([False] * 100)) == 10


def test_every_slice_is_looked_up_where_worthwhile() -> None:
    assert all(looked_up([True] * 100))
    assert all(looked_up([True, False] * 50)), "never two in a row"


@pytest.mark.parametrize("first", range(100))
def test_slices_that_differ_are_soon_looked_up_again(first: int) -> None:
    found = looked_up([False] * first + [True] * (100 - first))
    skipped = found[first:].count(False)
    assert skipped <= first / 2, "at most half as many as were scanned before"
    assert all(found[first + skipped :])


def test_a_slice_with_fewer_expected_rows_is_looked_up() -> None:
    few_in_the_end = [800] * 7 + [100] * 3
    assert looked_up([False] * 7 + [True] * 3, few_in_the_end)[7:] == [True] * 3
    assert not looked_up([False] * 10, [800] * 7 + [500] * 3)[7]


def test_slices_without_an_estimate_count_as_similar() -> None:
    known = IndexBackoff()
    for _ in range(2):
        assert not known.should_skip(None, TOTAL)
        known.record(None, TOTAL, scanned=True)
    assert known.should_skip(None, TOTAL)
