"""Where look-ups in some base files ended in a scan, not each of the next ones is asked."""

import pytest

from hudi_index_service.optimizer.expected import Expected, RowEstimate
from hudi_index_service.read.asked_in_vain import AskedInVain

TOTAL = 1_000


def expected(rows: int) -> Expected:
    return Expected(RowEstimate(0, rows, TOTAL), 1, 1, 0, 1, 1, 1)


def asked(worth: list[bool], rows: list[int] | None = None) -> list[bool]:
    """Of each slice whether it is asked, if asking is worth while where that is said."""
    known, found = AskedInVain(), []
    for number, of_use in enumerate(worth):
        guess = expected(rows[number] if rows else 800)
        passed_over = known.would_be(guess, TOTAL)
        if not passed_over:
            known.tell(guess, TOTAL, in_vain=not of_use)
        found.append(not passed_over)
    return found


def test_of_slices_that_are_alike_ever_fewer_are_asked_in_vain() -> None:
    assert asked([False] * 9) == [True, True, False, True, False, False, True, False, False]
    assert sum(asked([False] * 20)) == 6
    assert sum(asked([False] * 100)) == 10


def test_where_asking_is_of_use_all_are_asked() -> None:
    assert all(asked([True] * 100))
    assert all(asked([True, False] * 50)), "never two in a row"


@pytest.mark.parametrize("first", range(100))
def test_slices_that_differ_are_soon_asked_again(first: int) -> None:
    found = asked([False] * first + [True] * (100 - first))
    passed_over = found[first:].count(False)
    assert passed_over <= first / 2, "at most half as many again as had to be scanned"
    assert all(found[first + passed_over :])


def test_a_slice_of_which_fewer_rows_are_expected_is_asked() -> None:
    few_in_the_end = [800] * 7 + [100] * 3
    assert asked([False] * 7 + [True] * 3, few_in_the_end)[7:] == [True] * 3
    assert not asked([False] * 10, [800] * 7 + [500] * 3)[7]


def test_where_nothing_is_expected_slices_are_alike() -> None:
    known = AskedInVain()
    for _ in range(2):
        assert not known.would_be(None, TOTAL)
        known.tell(None, TOTAL, in_vain=True)
    assert known.would_be(None, TOTAL)
