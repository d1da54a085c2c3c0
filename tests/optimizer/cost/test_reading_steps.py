"""What reading costs in steps of a look-up: less where pages are kept, more with each test."""

import pyarrow as pa
import pytest

from hudi_index_service.optimizer.cost.constants import MIB, Constants
from hudi_index_service.optimizer.cost.reading_steps import ReadingSteps
from hudi_index_service.predicate import negation_normal_form, parse_predicate
from hudi_index_service.predicate.expression import Predicate

ROWS = 1_000_000
SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.int64()), ("s", pa.string())])
CONSTANTS = Constants(step_ms=0.001, value_ms=0.002, tested_mib_ms=10.0, tested_value_ms=0.00001)
A_COLUMN = 10_000  # steps of testing its values


def parsed(where: str) -> Predicate:
    return negation_normal_form(parse_predicate(where, SCHEMA))


def reading(where: str, **sizes: int) -> ReadingSteps:
    return ReadingSteps.of(CONSTANTS, parsed(where), ROWS, sizes)


def test_steps_follow_from_milliseconds() -> None:
    usual = ReadingSteps.unknown(Constants())
    slow = ReadingSteps.unknown(Constants(step_ms=2 * Constants().step_ms))
    assert 10_000 < usual.page < 40_000
    assert slow.page == usual.page // 2
    assert (usual.scan, usual.columns) == (None, {})


def test_pages_that_are_kept_cost_no_bytes() -> None:
    kept, cold = reading("a = 1", a=0), reading("a = 1", a=10 * MIB)
    assert (kept.scan, cold.scan) == (A_COLUMN, A_COLUMN + 100_000)
    assert kept.page < cold.page
    assert kept.row == cold.row


@pytest.mark.parametrize(
    ("where", "columns"),
    [
        ("a = 1", 1.0),
        ("a = 1 OR b = 1", 2.0),
        ("a = 1 AND b = 1", 1.5),
        ("a = 1 AND b = 1 AND s = 'x'", 1.75),
        ("(a = 1 OR b = 1) AND s = 'x'", 2.0),
    ],
)
def test_each_further_conjunct_is_tested_on_half_of_the_rows(where: str, columns: float) -> None:
    assert reading(where, a=0, b=0, s=0).scan == columns * A_COLUMN


def test_the_cheapest_conjunct_is_tested_first() -> None:
    assert reading("s = 'x' AND a = 1", a=0, s=MIB).scan == A_COLUMN + (A_COLUMN + 10_000) // 2


def test_few_rows_are_tested_one_by_one() -> None:
    of_a, leaf = reading("a = 1", a=0), parsed("a = 1")
    assert of_a.testing(leaf, 3) == 3 * of_a.row
    assert of_a.testing(leaf, ROWS) == A_COLUMN
    assert ReadingSteps(page=1, row=2).testing(leaf, ROWS) == 2 * ROWS
