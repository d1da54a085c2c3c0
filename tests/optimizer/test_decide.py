"""Whether to look up or to scan, decided from estimates."""

import pytest

from hudi_index_service.optimizer.decide import (
    lookups_are_weighed,
    most_keys_by_index,
)
from hudi_index_service.optimizer.expected import Expected, RowEstimate
from hudi_index_service.predicate import parse_predicate
from tests.optimizer.tables import PaperTable

TOTAL = 160_000
SCHEMA = PaperTable({"a": "int64", "text": "string"}, []).schema


def expected(rows: RowEstimate, *, learnt: bool) -> Expected:
    guess = Expected(rows, 1, 1, 0, 1, 1, 1)
    return guess._replace(guessed=rows.expected) if learnt else guess


@pytest.mark.parametrize(
    ("rows", "learnt", "weighed"),
    [
        (RowEstimate(0, 9_000, 9_999), False, False),  # few by guaranteed bounds
        (RowEstimate(0, 10, 10_000), False, True),  # a guess may be wrong
        (RowEstimate(0, 10, TOTAL), True, False),  # queries of this shape matched few
        (RowEstimate(0, 2_499, TOTAL), True, False),
        (RowEstimate(0, 2_500, TOTAL), True, True),  # not clearly few
    ],
)
def test_lookups_for_clearly_few_rows_are_not_weighed(
    rows: RowEstimate, learnt: bool, weighed: bool
) -> None:
    predicate = parse_predicate("a = 5", SCHEMA)
    assert lookups_are_weighed(predicate, expected(rows, learnt=learnt), TOTAL) is weighed


def test_lookups_without_an_estimate_are_weighed() -> None:
    assert lookups_are_weighed(parse_predicate("a = 5", SCHEMA), None, TOTAL)


def test_lookups_are_not_weighed_if_checking_a_row_is_expensive() -> None:
    assert not lookups_are_weighed(parse_predicate("text RLIKE 'x+'", SCHEMA), None, TOTAL)
    assert not lookups_are_weighed(parse_predicate("NOT text RLIKE 'x+'", SCHEMA), None, TOTAL)


@pytest.mark.parametrize(
    ("keys", "rows", "by_index"),
    [
        (1, 0, True),
        (16, 100, True),
        (17, 100, False),
        (1_000, 200_000, True),
        (1_001, 200_000, False),
    ],
)
def test_keys_are_looked_up_if_few_compared_with_the_rows(
    keys: int, rows: int, by_index: bool
) -> None:
    assert (keys <= most_keys_by_index(rows)) is by_index
