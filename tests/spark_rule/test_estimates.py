"""The rows that the index is expected to find decide between it and Spark."""

import re

import pytest

from hudi_index_service import open_table
from hudi_index_service.optimizer.cost.in_spark import SessionReaders
from hudi_index_service.read.slices import index_estimates
from hudi_index_service.read.slices.slice_reader import SliceReader
from hudi_index_service.sql.rule.weighing import Candidates, candidates_of_keys
from tests.indexed import GoldenIndex
from tests.spark_rule.conftest import by_index

# Handing a row over costs 1 ms; 125 rows are the most that cost less than Spark's scan.
EXPENSIVE_ROWS = {"spark_scan_ms": 225, "handing_ms": 0.1, "handed_row_ms": 1, "tasks_ms": 1e6}


@pytest.fixture
def estimates(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ways in which rows were estimated to choose the reader of a relation."""
    found = []

    def record_calls(owner: object, name: str, what: str) -> None:
        original = getattr(owner, name)

        def recording(*args: object, **kwargs: object) -> object:
            found.append(what)
            return original(*args, **kwargs)

        monkeypatch.setattr(owner, name, recording)

    record_calls(index_estimates, "row_estimate", "bounds")
    record_calls(SliceReader, "exact_rows", "look-up")
    return found


def test_most_of_a_table_is_left_to_spark(agreed, costs):
    costs(**EXPENSIVE_ROWS)
    [use] = agreed("SELECT amount FROM rule_cow WHERE amount < 450")
    assert not use.by_index
    assert use.reason == "the index finds 150 of 200 rows, and Spark scans them faster"
    assert by_index(agreed("SELECT amount FROM rule_cow WHERE amount < 60")) == [True]


def test_manifests_alone_may_decide(agreed, costs, estimates):
    [use] = agreed("SELECT amount FROM rule_cow WHERE amount >= 0")
    assert not use.by_index
    assert use.reason == "a scan is cheaper than reading these rows through the index"
    costs(**EXPENSIVE_ROWS)
    assert by_index(agreed("SELECT amount FROM rule_cow WHERE amount >= 0 AND id IS NOT NULL")) == [
        False
    ]
    assert estimates == []


def test_bounds_of_the_opened_index_may_decide(agreed, costs, estimates):
    costs(**EXPENSIVE_ROWS)
    [use] = agreed("SELECT amount FROM rule_cow WHERE amount < 450 AND id <> '3'")
    assert not use.by_index
    assert use.reason == "the index finds at least 149 of 200 rows, and Spark scans them faster"
    [use] = agreed("SELECT amount FROM rule_cow WHERE amount < 6 AND id <> '7'")
    assert use.by_index
    assert (use.reason, use.rows, use.expected) == ("the index finds at most 2 rows", 2, 2)
    # The last time for the number of rows that Spark plans with.
    assert estimates == ["bounds", "bounds", "bounds"]


def test_rows_are_looked_up_when_bounds_do_not_decide(agreed, costs, estimates):
    costs(**EXPENSIVE_ROWS)
    query = "SELECT amount FROM rule_cow WHERE amount < 495 AND msg <> 'Buying car 1'"
    [use] = agreed(query)
    assert not use.by_index
    assert use.reason == "the index finds 128 of 200 rows, and Spark scans them faster"
    assert estimates == ["bounds", "look-up"]


def test_rough_estimate_decides_when_rows_are_far_too_many(agreed, costs, estimates):
    costs(**EXPENSIVE_ROWS | {"spark_scan_ms": 10, "spark_file_ms": 0.1})
    query = "SELECT amount FROM rule_cow WHERE amount < 300 AND msg > 'Buying car 3'"
    [use] = agreed(query)
    assert not use.by_index
    assert re.fullmatch(r"the index finds about \d+ of 200 rows, and Spark .* faster", use.reason)
    assert estimates == ["bounds"]


def test_estimating_stops_once_rows_are_too_many(agreed, costs, estimates):
    costs(**EXPENSIVE_ROWS | {"spark_scan_ms": 20})
    [use] = agreed("SELECT amount FROM rule_partitioned WHERE amount < 300")
    assert not use.by_index
    assert use.reason == "the index finds at least 50 of 200 rows, and Spark scans them faster"
    assert estimates == ["bounds"]


@pytest.fixture
def orders(golden_index: GoldenIndex):
    """Orders of seven years, with a base file for each."""
    with open_table(golden_index("tpch_orders", ["o_orderkey", "o_custkey"])) as table:
        yield table


def expected(table, column: str, keys: int) -> Candidates | str:
    """Who reads the rows with some keys."""
    run = table.scan(f"{column} IS NOT NULL", columns=["o_orderkey", "o_custkey"]).planned()
    return candidates_of_keys(run, SessionReaders(2), column, keys)


def test_spark_plans_with_all_rows_that_are_possible(orders):
    """Each of the keys may be in each of the seven base files."""
    found = expected(orders, "o_orderkey", 2)
    assert (found.rows, found.exact, found.few) == (14, False, True)


def test_all_keys_have_all_rows(orders):
    total = orders.scan().count()
    found = expected(orders, "o_custkey", 1_000_000)
    assert found.rows == total


def test_a_table_without_entries_is_left_to_spark(golden_index: GoldenIndex):
    with open_table(golden_index("tpch_orders", ["o_orderkey"], build=False)) as table:
        assert expected(table, "o_orderkey", 2) == "no entry serves its files"
