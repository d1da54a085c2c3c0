"""The queries of TPC-H, and some that ask for few rows: the answers are Spark's own.

The 22 follow the TPC-H specification (2.4), with its validation parameters.
"""

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hudi_index_service.optimizer.cost import Constants, model
from hudi_index_service.sql.select import RelationUse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from tests.tpch.conftest import Decisions, Tpch

# The first one makes the tables.
pytestmark = pytest.mark.timeout(1200)

_HERE = Path(__file__).parent
TPCH = [_HERE / "queries" / f"q{number}.sql" for number in range(1, 23)]
SELECTIVE = sorted((_HERE / "selective").glob("*.sql"))

# Of each query the order leaves no two rows to chance, and no answer is empty.
each_query = pytest.mark.parametrize("query", [*TPCH, *SELECTIVE], ids=lambda path: path.stem)


@each_query
def test_answers_and_decisions(
    tpch: "Tpch", decisions: "Decisions", query: Path, request: pytest.FixtureRequest
) -> None:
    frame = tpch.session.sql(query.read_text())
    found = [_decision(use) for use in tpch.session.relations]

    _assert_sparks_own(frame, tpch, query)
    if request.config.getoption("--write-decisions"):
        decisions[tpch.variant][query.stem] = found
    assert found == decisions[tpch.variant][query.stem]


@each_query
def test_answers_where_the_index_serves_whatever_it_costs(
    tpch: "Tpch", query: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dear_spark = Constants(spark_scan_ms=1e12)
    monkeypatch.setattr(model, "load_constants", lambda settings: dear_spark)

    frame = tpch.session.sql(query.read_text())

    assert not [use for use in tpch.session.relations if "Spark scans" in use.reason]
    _assert_sparks_own(frame, tpch, query)


def test_the_index_serves_selective_queries(decisions: "Decisions") -> None:
    for variant, by_query in decisions.items():
        assert by_query.keys() == {path.stem for path in (*TPCH, *SELECTIVE)}, variant
        for path in SELECTIVE:
            assert any(" by index: " in each for each in by_query[path.stem]), (variant, path)


def _assert_sparks_own(frame: "DataFrame", tpch: "Tpch", query: Path) -> None:
    expected = tpch.plain(query)
    assert expected.rows, "a query without an answer proves little"
    assert frame.schema == expected.schema
    assert list(map(repr, frame.collect())) == expected.rows


def _decision(use: RelationUse) -> str:
    """Numbers depend on how rows happen to be spread over files."""
    table = use.table.rpartition("/")[2]
    reader = "index" if use.by_index else "Spark"
    return f"{table} by {reader}: {re.sub('[0-9]+', '#', use.reason)}"
