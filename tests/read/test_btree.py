"""Tables with a B+ tree index, alone or next to Lucene's, give exactly Spark's answers."""

from pathlib import Path

import pytest

from hudi_index_service import IndexedTable, open_table
from hudi_index_service.optimizer.grouping import grouped
from hudi_index_service.optimizer.plan import Access
from hudi_index_service.predicate.expression import And
from hudi_index_service.predicate.fold import conjuncts
from hudi_index_service.read.planner import ScanOptions
from hudi_index_service.read.query import Binding
from hudi_index_service.read.slices.slice_entries import SliceEntries
from tests.golden.predicates import PREDICATES, RANGES
from tests.indexed import indexed
from tests.read.conftest import columns_for, unindexed_copy


def reindexed_copy(path: Path, target: Path, using: list[str]) -> IndexedTable:
    """A copy of the table, its index replaced by one of these types."""
    return indexed(unindexed_copy(path, target), columns_for("btree"), using=using)


@pytest.fixture(scope="module", params=["btree", "lucene,btree"])
def table(request, awkward, tmp_path_factory) -> IndexedTable:
    target = tmp_path_factory.mktemp("btree") / "table"
    return reindexed_copy(awkward("clustered, partitioned").path, target, request.param.split(","))


def test_every_predicate_gives_sparks_answer(table, awkward):
    for where in [*PREDICATES, *RANGES]:
        expected = awkward("clustered, partitioned").ids(where)
        scan = table.scan(where, columns=["id"])
        assert sorted(scan.to_arrow().column("id").to_pylist()) == expected, where
        assert scan.count() == len(expected), where


def test_the_index_is_used_and_passes_verification(table):
    scan = table.scan("amount BETWEEN 30 AND 300", use_index="require")
    plan = scan.explain().plan
    assert {each.access for each in plan.slices} == {Access.INDEX}
    assert scan.count() > 0
    assert not table.verify().unrepaired


def test_each_index_type_answers_what_only_it_can(awkward, tmp_path):
    table = reindexed_copy(
        awkward("clustered, partitioned").path, tmp_path / "table", ["lucene", "btree"]
    )
    contains = table.scan("msg LIKE '%car%' AND amount BETWEEN 30 AND 300", use_index="require")
    expected = contains.count()
    assert expected > 0
    # If one type's entries are lost, the other answers what it can: the result is the same.
    for kind in ("btree", "lucene"):
        for data in (tmp_path / "table/.hoodie/.index" / kind).rglob("data-*.pack"):
            data.unlink()
        where = "msg LIKE '%car%' AND amount BETWEEN 30 AND 300"
        with open_table(tmp_path / "table") as again:
            assert again.scan(where).count() == expected, kind


def test_each_condition_uses_the_fastest_index_type(awkward, tmp_path):
    table = reindexed_copy(
        awkward("clustered, partitioned").path, tmp_path / "table", ["lucene", "btree"]
    )
    where = "msg LIKE '%car%' AND amount >= 30 AND amount <= 300 AND name = 'plain'"
    query, plan = table._queries.planner.plan(Binding(where, None, "UTC"), ScanOptions())
    planned = next(each for each in plan.slices if each.access is Access.INDEX)
    assert isinstance(query.normal_form, And)
    with SliceEntries.leased(planned, table._queries.pool) as entries:
        groups = conjuncts(grouped(query.normal_form, planned.entries))
        answering = {
            (*each.columns(), type(each).__name__): next(entries._answering(each))[
                1
            ].index_type.name
            for each in groups
        }
    assert answering == {
        ("msg", "Like"): "lucene",
        ("amount", "Together"): "btree",
        ("name", "Compare"): "btree",
    }
