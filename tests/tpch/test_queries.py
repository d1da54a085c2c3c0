"""The TPC-H queries, and some selective ones: the answers equal Spark's.

The 22 follow the TPC-H specification (2.4), with its validation parameters.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame

from hudi_index_service.sql.rule.uses import RelationUse
from tests.cost_constants import given_costs
from tests.tpch.conftest import DECISIONS, Decisions, Tpch

# The first test creates the tables.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

_HERE = Path(__file__).parent
TPCH = [_HERE / "queries" / f"q{number}.sql" for number in range(1, 23)]
SELECTIVE = sorted((_HERE / "selective").glob("*.sql"))


# Each query's order is total, and no answer is empty.
@pytest.mark.parametrize("query", [*TPCH, *SELECTIVE], ids=lambda path: path.stem)
def test_answers_and_decisions(
    tpch: Tpch, decisions: Decisions, query: Path, request: pytest.FixtureRequest
) -> None:
    frame = tpch.session.sql(query.read_text())
    found = [_decision(use) for use in tpch.session.relations]

    _assert_equals_sparks(frame, tpch, query)
    if request.config.getoption("--write-decisions"):
        decisions[query.stem] = found
    assert found == decisions[query.stem]


@pytest.fixture
def expensive_spark_scans(tpch: Tpch) -> Iterator[None]:
    """Makes Spark's own scans cost more than anything else. Earlier decisions are forgotten."""
    with given_costs(tpch.session.spark) as costs:
        costs(spark_scan_ms=1e12)
        yield


def _left_to_spark_for_its_cost() -> list[Path]:
    """The queries that only their cost keeps from the index, in whole or in part."""
    decisions = json.loads(DECISIONS.read_text())
    return [each for each in TPCH if any("scans them faster" in d for d in decisions[each.stem])]


@pytest.mark.parametrize("query", _left_to_spark_for_its_cost(), ids=lambda path: path.stem)
def test_answers_with_the_index_whatever_its_cost(
    tpch: Tpch, query: Path, expensive_spark_scans: None
) -> None:
    frame = tpch.session.sql(query.read_text())

    assert any(use.by_index for use in tpch.session.relations)
    assert not [use for use in tpch.session.relations if "Spark scans" in use.reason]
    _assert_equals_sparks(frame, tpch, query)


def _assert_equals_sparks(frame: DataFrame, tpch: Tpch, query: Path) -> None:
    expected = tpch.plain(query)
    assert expected.rows, "a query without an answer proves little"
    assert frame.schema == expected.schema
    assert list(map(repr, frame.collect())) == expected.rows


def _decision(use: RelationUse) -> str:
    """The decision without numbers, which depend on how rows are distributed over files."""
    table = use.table.rpartition("/")[2]
    reader = "index" if use.by_index else "Spark"
    return f"{table} by {reader}: {re.sub('[0-9,]*[0-9]', '#', use.reason)}"
