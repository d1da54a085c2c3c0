"""Lucene, B+ tree and HBase on one table: each condition is looked up in one of them, the row ids
are combined, and what one of them loses, another one or a scan provides."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from hudi_index_service import IndexedTable
from hudi_index_service.optimizer.grouping import grouped
from hudi_index_service.optimizer.plan import Access
from hudi_index_service.predicate.expression import And
from hudi_index_service.predicate.fold import conjuncts
from hudi_index_service.read.planner import ScanOptions
from hudi_index_service.read.query import Binding
from hudi_index_service.read.slices.slice_entries import SliceEntries
from tests.golden.table import Golden
from tests.hbase.conftest import GOLDEN, Cells, Open, in_hbase
from tests.hbase.test_queries import agree_with_golden, agree_with_spark

THREE = ["lucene", "btree", "hbase"]


def types_used(table: IndexedTable, where: str) -> dict[str, str]:
    """Column → index type that answers it, for the conjuncts of a predicate on the first slice."""
    query, plan = table._queries.planner.plan(Binding(where, None, "UTC"), ScanOptions())
    planned = next(each for each in plan.slices if each.access is Access.INDEX)
    assert isinstance(query.normal_form, And)
    with SliceEntries.leased(planned, table._queries.pool) as entries:
        lookups = conjuncts(grouped(query.normal_form, planned.entries))
        return {
            ",".join(each.columns()): next(entries._answering(each))[1].index_type.name
            for each in lookups
        }


@pytest.mark.parametrize("name", ["cow", "mor"])
def test_predicates_give_sparks_rows(name: str, open_copy: Open, golden: Golden) -> None:
    agree_with_golden(in_hbase(open_copy(name), using=THREE), golden(GOLDEN[name]))


def test_each_condition_is_looked_up_in_the_fastest_index_type(
    open_copy: Open, spark: SparkSession
) -> None:
    table = open_copy("cow")
    table.create_index("words", ["msg"], using="lucene")
    table.create_index("in_order", ["amount"], using="btree")
    table.create_index("in_hbase", ["amount", "name", "price"], using="hbase")
    table.build(strategy="all").raise_for_failures()
    where = "msg LIKE '%car%' AND amount >= 30 AND amount <= 300 AND name = 'plain'"

    # Local indexes are faster than HBase.
    assert types_used(table, where) == {"msg": "lucene", "amount": "btree", "name": "hbase"}
    agree_with_spark(table, spark, [where, f"({where}) OR price > 1.5"])


@pytest.mark.parametrize("lost", THREE)
def test_other_types_or_a_scan_replace_a_lost_index(
    lost: str, open_copy: Open, cells: Cells, spark: SparkSession
) -> None:
    table = in_hbase(open_copy("cow"), ["msg", "amount", "name"], THREE)
    wheres = [
        "msg LIKE '%car%' AND amount BETWEEN 30 AND 300",
        "amount BETWEEN 30 AND 300 AND name = 'plain'",
        "name = 'plain' OR amount = 33",
    ]
    if lost == "hbase":
        cells.drop()
    else:
        for data in Path(table.uri, ".hoodie/.index", lost).rglob("data-*.pack"):
            data.unlink()
    agree_with_spark(open_copy("cow"), spark, wheres)
