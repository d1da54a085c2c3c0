"""The rows expected for the keys of a join, before the keys are known."""

import pytest

from hudi_index_service import open_table
from hudi_index_service.optimizer.cost.in_spark import SessionReaders
from hudi_index_service.sql.rule.weighing import Candidates, candidates_of_keys
from tests.indexed import GoldenIndex

pytestmark = pytest.mark.fast


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
    assert isinstance(found, Candidates)
    assert (found.rows, found.exact, found.few) == (14, False, True)


def test_all_keys_have_all_rows(orders):
    total = orders.scan().count()
    found = expected(orders, "o_custkey", 1_000_000)
    assert isinstance(found, Candidates)
    assert found.rows == total


def test_a_table_without_entries_is_left_to_spark(golden_index: GoldenIndex):
    with open_table(golden_index("tpch_orders", ["o_orderkey"], build=False)) as table:
        assert expected(table, "o_orderkey", 2) == "no entry serves its files"
