"""The queries' conditions on single rows, on small tables: index and scan find Spark's rows."""

from collections.abc import Callable
from functools import cache

import pytest

from hudi_index_service import IndexedTable
from hudi_index_service.optimizer.plan import Access
from tests.golden.table import Golden
from tests.indexed import indexed
from tests.same_rows import assert_same_rows
from tests.tpch.conftest import Decisions
from tests.tpch.predicates import OF_TABLE
from tests.tpch.tables import INDEXED
from tests.tpch.test_queries import SELECTIVE, TPCH


@pytest.fixture(scope="module")
def tables(
    golden: Golden, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], IndexedTable]:
    """The tables by name, indexed like those of the queries."""

    @cache
    def table(name: str) -> IndexedTable:
        return indexed(
            golden(f"tpch_{name}").put(tmp_path_factory.mktemp(name)), INDEXED[name].split(", ")
        )

    return table


@pytest.mark.parametrize("name", OF_TABLE)
def test_index_and_scan_find_sparks_rows(
    name: str, tables: Callable[[str], IndexedTable], golden: Golden
) -> None:
    table = tables(name)
    for query, where in OF_TABLE[name].items():
        expected = golden(f"tpch_{name}").answer(where)
        assert expected.num_rows, f"{query}: a predicate without an answer proves little"
        for use_index in ("require", "never"):
            scan = table.scan(where, use_index=use_index)  # type: ignore[arg-type]
            assert_same_rows(scan.to_arrow(), expected)
            assert scan.count() == expected.num_rows, query


def test_slices_of_years_that_cannot_match_are_skipped(
    tables: Callable[[str], IndexedTable],
) -> None:
    """Each table has one base file per year."""
    for name, query, years in (("orders", "q4", 1), ("lineitem", "q15", 1), ("lineitem", "q7", 2)):
        plan = tables(name).scan(OF_TABLE[name][query]).explain().plan
        assert plan is not None
        assert len(plan.slices) == 7
        assert plan.count(Access.SKIP) == 7 - years, query


def test_selective_queries_use_the_index(decisions: Decisions) -> None:
    assert decisions.keys() == {path.stem for path in (*TPCH, *SELECTIVE)}
    for path in SELECTIVE:
        assert any(" by index: " in each for each in decisions[path.stem]), path
