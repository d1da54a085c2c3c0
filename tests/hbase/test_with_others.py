"""Lucene, B+ tree and HBase on one table at once: each condition is asked of one of them, the row
ids are put together, and whatever one of them loses the others, or a scan, make good."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hudi_index_service import IndexedTable
from hudi_index_service.optimizer.plan import Access
from hudi_index_service.predicate.expression import And
from hudi_index_service.read.entry_lookups import EntryLookups
from hudi_index_service.read.planner import Wanted
from hudi_index_service.read.query import Binding
from hudi_index_service.read.row_ids import joined
from hudi_index_service.read.slice_entries import SliceEntries
from tests.hbase.conftest import Cells, Open, indexed
from tests.hbase.test_queries import WHERES, agree_with_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

THREE = ["lucene", "btree", "hbase"]


def asked_of(table: IndexedTable, where: str) -> dict[str, str]:
    """Column → index type, of the conjuncts of a predicate on the first slice."""
    query, plan = table._planner.plan(Binding(where, None, "UTC"), Wanted())
    planned = next(each for each in plan.slices if each.access is Access.INDEX)
    assert isinstance(query.normal_form, And)
    with SliceEntries.leased(planned, table._pool) as entries:
        lookups = joined(query.normal_form.operands, EntryLookups(entries, thrifty=True))
        return {
            ",".join(each.columns()): next(entries._answering(each))[1].index_type.name
            for each in lookups
        }


@pytest.mark.parametrize("name", ["cow", "mor"])
def test_every_predicate_gives_sparks_answer(
    name: str, open_copy: Open, spark: "SparkSession"
) -> None:
    agree_with_spark(indexed(open_copy(name), using=THREE), spark, WHERES)


def test_each_condition_is_asked_of_the_type_that_answers_it_soonest(
    open_copy: Open, spark: "SparkSession"
) -> None:
    table = open_copy("cow")
    table.create_index("words", ["msg"], using="lucene")
    table.create_index("in_order", ["amount"], using="btree")
    table.create_index("in_hbase", ["amount", "name", "price"], using="hbase")
    table.build(strategy="all").raise_for_failures()
    where = "msg LIKE '%car%' AND amount >= 30 AND amount <= 300 AND name = 'plain'"

    # What lies on this machine is had sooner than what HBase has.
    assert asked_of(table, where) == {"msg": "lucene", "amount": "btree", "name": "hbase"}
    agree_with_spark(table, spark, [where, f"({where}) OR price > 1.5"])


@pytest.mark.parametrize("lost", THREE)
def test_what_one_type_loses_the_others_have(
    lost: str, open_copy: Open, cells: Cells, spark: "SparkSession"
) -> None:
    table = indexed(open_copy("cow"), ["msg", "amount", "name"], THREE)
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
