"""The benchmark of the optimizer measures the queries that it runs."""

from pathlib import Path

from benchmarks.optimizer.measure import measured
from benchmarks.optimizer.queries import Query
from tests.golden.table import Golden
from tests.indexed import indexed


def test_a_query_is_measured_in_all_ways(golden: Golden, tmp_path: Path) -> None:
    with indexed(golden("hundred_base_files").put(tmp_path / "table"), ["amount"]) as table:
        query = Query(1, "range", "amount BETWEEN 20 AND 60", ("id",), counts=False)
        row = measured(table, query, 1)
        assert set(row["ms"]) == {"auto", "index", "scan"}
        assert row["rows"] == 41
        assert 0 < row["decide_ms"] < row["plan_ms"]
        assert row["within"]
