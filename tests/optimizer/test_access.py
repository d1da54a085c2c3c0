"""Whether rows are so few that nothing has to be weighed before they are looked up."""

import pytest

from hudi_index_service.optimizer.access import has_few_rows
from hudi_index_service.optimizer.expected import Expected, RowEstimate
from hudi_index_service.optimizer.plan import Access, SlicePlan
from hudi_index_service.table.protocol import FileSlice

TOTAL = 160_000


def plan(rows: RowEstimate, *, learnt: bool) -> SlicePlan:
    guess = Expected(rows, 1, 1, 0, 1, 1, 1)
    expected = guess._replace(before_history=guess) if learnt else guess
    return SlicePlan(FileSlice("", "1", None), Access.INDEX, expected=expected)


@pytest.mark.parametrize(
    ("rows", "learnt", "few"),
    [
        (RowEstimate(0, 9_000, 9_999), False, True),  # by bounds that hold
        (RowEstimate(0, 10, 10_000), False, False),  # a guess may be wrong
        (RowEstimate(0, 10, TOTAL), True, True),  # queries of the shape had few
        (RowEstimate(0, 2_499, TOTAL), True, True),
        (RowEstimate(0, 2_500, TOTAL), True, False),  # not clearly
    ],
)
def test_few_rows_are_certain_or_learnt(rows: RowEstimate, learnt: bool, few: bool) -> None:
    assert has_few_rows(plan(rows, learnt=learnt), TOTAL) is few


def test_of_what_nothing_is_expected_nothing_is_known() -> None:
    assert not has_few_rows(SlicePlan(FileSlice("", "1", None), Access.INDEX), TOTAL)
