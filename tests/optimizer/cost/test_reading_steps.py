"""What reading costs in steps of a look-up: less where pages are kept, more with each test."""

import pyarrow as pa
import pytest

from hudi_index_service.optimizer.cost.constants import MIB, TESTS_OF_TEXT, Constants
from hudi_index_service.optimizer.cost.reading_steps import ReadingSteps
from hudi_index_service.predicate import negation_normal_form, parse_predicate
from hudi_index_service.predicate.expression import Predicate

ROWS = 1_000_000
SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.int64()), ("s", pa.string())])
CONSTANTS = Constants(
    step_ms=0.001,
    value_ms=0.002,
    lookup_ms=0.5,
    scan_ms=3.0,
    tested_mib_ms=10.0,
    tested_value_ms=0.00001,
)
A_COLUMN = 10_000  # steps of testing its values


def parsed(where: str) -> Predicate:
    return negation_normal_form(parse_predicate(where, SCHEMA))


def reading(where: str, **sizes: int) -> ReadingSteps:
    """Of columns with so many bytes to be read, all of numbers."""
    of_numbers = {name: (size, 8 * ROWS) for name, size in sizes.items()}
    return ReadingSteps.of(CONSTANTS, parsed(where), ROWS, of_numbers)


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


def test_texts_in_pages_take_longer_than_numbers_and_dictionaries() -> None:
    def scan(plain: int) -> int | None:
        return ReadingSteps.of(CONSTANTS, parsed("s = 'x'"), ROWS, {"s": (0, plain)}).scan

    assert scan(2 * ROWS) == scan(8 * ROWS) == A_COLUMN
    assert scan(20 * ROWS) == TESTS_OF_TEXT * A_COLUMN


def test_a_value_is_compared_with_some_of_a_list() -> None:
    listed = ", ".join(map(str, range(1024)))
    assert reading(f"a IN ({listed})", a=0).scan == 21 * A_COLUMN
    assert reading(f"NOT (a IN ({listed}))", a=0).scan == 21 * A_COLUMN


def test_a_scan_alone_has_its_fixed_cost() -> None:
    alone = ReadingSteps.of(CONSTANTS, parsed("a = 1"), ROWS, {"a": (0, 0)}, alone=True)
    assert alone.scan == 3_000 + A_COLUMN


def test_the_first_look_up_may_take_as_long_as_what_it_rules_out() -> None:
    of_a = reading("a = 1", a=0)
    assert of_a.ruling_out(0.0) == A_COLUMN - of_a.lookup == A_COLUMN - 500
    assert of_a.ruling_out(0.5) == A_COLUMN // 2 - 500
    assert of_a.ruling_out(1.0) == 0
    assert ReadingSteps(page=1, row=2).ruling_out(1.0) is None


def test_few_rows_are_tested_one_by_one() -> None:
    of_a, leaf = reading("a = 1", a=0), parsed("a = 1")
    assert of_a.testing(leaf, 3) == 3 * of_a.row
    assert of_a.testing(leaf, ROWS) == A_COLUMN
    assert ReadingSteps(page=1, row=2).testing(leaf, ROWS) == 2 * ROWS
