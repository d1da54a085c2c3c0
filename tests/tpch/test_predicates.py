"""The queries' conditions on single rows, on small tables: index and scan find Spark's rows."""

from collections.abc import Callable

import pytest

from hudi_index_service import IndexedTable, open_table
from hudi_index_service.optimizer.plan import Access
from tests.golden.table import Golden
from tests.indexed import GoldenIndex
from tests.same_rows import assert_same_rows
from tests.tpch.conftest import Decisions
from tests.tpch.predicates import OF_TABLE
from tests.tpch.tables import INDEXED
from tests.tpch.test_queries import SELECTIVE, TPCH


@pytest.fixture
def table(golden_index: GoldenIndex) -> Callable[[str], IndexedTable]:
    """Opens a table, which is indexed like those of the queries."""
    return lambda name: open_table(golden_index(f"tpch_{name}", INDEXED[name].split(", ")))


@pytest.mark.parametrize("name", OF_TABLE)
def test_index_and_scan_find_sparks_rows(
    name: str, table: Callable[[str], IndexedTable], golden: Golden
) -> None:
    opened = table(name)
    for query, where in OF_TABLE[name].items():
        expected = golden(f"tpch_{name}").answer(where)
        assert expected.num_rows, f"{query}: a predicate without an answer proves little"
        for use_index in ("require", "never"):
            scan = opened.scan(where, use_index=use_index)  # type: ignore[arg-type]
            assert_same_rows(scan.to_arrow(), expected)
            assert scan.count() == expected.num_rows, query


def test_slices_of_years_that_cannot_match_are_skipped(
    table: Callable[[str], IndexedTable],
) -> None:
    """Each table has one base file per year."""
    for name, query, years in (("orders", "q4", 1), ("lineitem", "q15", 1), ("lineitem", "q7", 2)):
        plan = table(name).scan(OF_TABLE[name][query]).explain().plan
        assert len(plan.slices) == 7
        assert plan.count(Access.SKIP) == 7 - years, query


def test_selective_queries_use_the_index(decisions: Decisions) -> None:
    assert decisions.keys() == {path.stem for path in (*TPCH, *SELECTIVE)}
    for path in SELECTIVE:
        assert any(" by index: " in each for each in decisions[path.stem]), path
