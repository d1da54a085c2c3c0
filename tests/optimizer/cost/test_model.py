"""Cost of reading a slice by index and by scan, computed without files."""

import random
from dataclasses import replace

import pytest
from pyroaring import BitMap

from hudi_index_service.config import Settings
from hudi_index_service.optimizer.cost.constants import Constants
from hudi_index_service.optimizer.cost.model import CostModel
from hudi_index_service.optimizer.cost.pages import PAGE_ROWS, pages_holding, pages_of
from hudi_index_service.optimizer.expected import Expected, RowEstimate
from hudi_index_service.optimizer.plan import QueryPlan
from tests.optimizer.tables import MB, PaperTable

ROWS = 4_000_000
TABLE = PaperTable(
    {"a": "int64", "b": "string"},
    [{"rows": ROWS, "mb": 100, "index_mb": 50, "index": {"a": {"distinct": ROWS}}}],
)
PLAN: QueryPlan = TABLE.covered(TABLE.first_plan("a = 1", ["a"]))
OPENED = frozenset({PLAN.slices[0].entries[0].entry.data_path})


def expected(rows: int, **around: object) -> Expected:
    plan = replace(PLAN, **{"share": 0.5, **around})
    return CostModel.of(plan, Settings()).expected(plan.slices[0], RowEstimate(0, rows, ROWS))


@pytest.mark.parametrize(("rows", "pages"), [(0, 10), (1, 10), (5, 10), (100, 50), (1_000, 50)])
def test_the_expected_number_of_pages_matches_random_draws(rows, pages):
    dice, draws = random.Random(7), 300
    drawn = sum(len({dice.randrange(pages) for _ in range(rows)}) for _ in range(draws)) / draws
    assert pages_holding(rows, pages) == pytest.approx(drawn, rel=0.05, abs=0.01)


def test_expected_pages_never_exceed_the_pages_there_are():
    assert pages_holding(10**9, 200) == pytest.approx(200)
    assert pages_holding(5, 1) == 1
    assert pages_holding(0.25, 1) == 0.25


def test_pages_of_known_rows_are_counted():
    dice = random.Random(3)
    for rows in ((), (0,), (19_999, 20_000), (5, 6, 7), dice.sample(range(2_000_000), 50)):
        assert pages_of(BitMap(rows)) == len({row // PAGE_ROWS for row in rows})
    assert pages_of(BitMap(range(30_000, 90_000))) == 4


def test_one_row_takes_one_page_of_each_column():
    one = expected(1, opened=OPENED)
    assert one.pages == pytest.approx(1)
    assert one.bytes == pytest.approx(50 * MB / 200)
    assert one.scan_bytes == 50 * MB
    assert one.index_ms < one.scan_ms / 50
    assert one.index_ms <= 1.25 * one.scan_ms


def test_index_cost_grows_with_rows_up_to_that_of_a_scan():
    costs = [expected(rows, opened=OPENED) for rows in (1, 100, 10_000, 400_000, ROWS)]
    assert [each.index_ms for each in costs] == sorted(each.index_ms for each in costs)
    assert {each.scan_ms for each in costs} == {costs[0].scan_ms}
    assert costs[0].scan_ms < costs[-1].index_ms < 1.2 * costs[-1].scan_ms
    assert costs[-1].bytes == pytest.approx(costs[-1].scan_bytes)


def test_an_index_that_is_not_open_adds_the_cost_of_opening():
    known = Constants()
    assert expected(1).index_ms - expected(1, opened=OPENED).index_ms == pytest.approx(
        known.open_ms
    )
    assert expected(1).index_bytes == 0, "it is on the local disk"


def test_only_the_needed_part_of_a_remote_index_is_fetched():
    cold, warm = expected(1, remote=True), expected(1, remote=True, opened=OPENED)
    assert 0 < cold.index_bytes < MB
    assert warm.index_bytes == 0
    requests = (cold.index_ms - warm.index_ms) / Constants().request_ms
    assert 5 < requests < 6, "four to open, one to look up, and the bytes"
    assert warm.index_ms > Constants().request_ms, "the pages"
    assert warm.scan_ms > expected(1).scan_ms + 50 * Constants().remote_mib_ms


def test_without_a_footer_column_sizes_are_guessed_from_types():
    guessed = expected(1, share=None)
    assert 0.2 * 100 * MB < guessed.scan_bytes < 0.8 * 100 * MB


def test_count_uses_an_index_declined_by_cost():
    (declined,) = TABLE.plan("a IS NOT NULL", ["a"]).slices
    assert declined.rule == "cheaper_by_cost"
    assert not declined.entries
    counted = declined.for_counting()
    assert [each.index_type.name for each in counted.entries] == ["lucene"]
    (never,) = TABLE.plan("a = 1", ["a"], use_index="never").slices
    assert never.for_counting() is never
