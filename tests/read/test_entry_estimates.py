"""Row estimates from opened entries: the bounds hold for every predicate."""

import logging
from collections import Counter
from dataclasses import replace

import pytest

from hudi_index_service import IndexedTable
from hudi_index_service.optimizer.estimates import estimated_rows
from hudi_index_service.optimizer.expected import RowEstimate
from hudi_index_service.optimizer.plan import SlicePlan
from hudi_index_service.predicate.expression import Predicate
from hudi_index_service.read.query import Binding
from hudi_index_service.read.slices.index_estimates import row_estimate
from hudi_index_service.read.slices.slice_entries import SliceEntries
from tests.golden.predicates import PREDICATES

ESTIMATED = [
    *PREDICATES,
    "match(msg, 'car')",
    "match(msg, 'new car') AND name = 'plain'",
    "match_any(msg, 'car home')",
    "match_phrase(msg, 'new home')",
    "match_prefix(msg, 'ho')",
    "match_fuzzy(msg, 'cart', 1)",
    "NOT match(msg, 'car')",
    "msg RLIKE '^Buying.*car'",
    "ts >= 1",  # not indexed
    "ts = 0 AND amount < 900",
    "part = 'p0' OR name = 'plain'",
    "amount > 100 AND amount < 900 AND amount <> 300",
]


def slices_of(table: IndexedTable) -> tuple[SlicePlan, ...]:
    """All slices with their entries, before any optimizer rule."""
    planner = table._queries.planner
    plan = planner.base_file_entries(planner.base_files())
    values = planner._start_of(plan.snapshot).partitions.by_partition
    return tuple(
        each._replace(values=values.get(each.file_slice.partition, {})) for each in plan.slices
    )


def normal_form(table: IndexedTable, where: str) -> Predicate:
    predicate = Binding(where, None, "UTC", table._queries.texts).to(table.schema()).normal_form
    assert predicate is not None
    return predicate


def rows_by_file(table: IndexedTable, where: str) -> Counter[str]:
    """How many rows of each base file match."""
    rows = table.scan(where, columns=["_hoodie_file_name"], use_index="never").to_arrow()
    return Counter(rows.column(0).to_pylist())


@pytest.mark.parametrize("name", ["clustered", "clustered, partitioned"])
def test_rows_are_always_within_the_bounds(awkward, name):
    table, exact, manifests_exact = awkward(name).table, 0, 0
    slices = slices_of(table)
    for where in ESTIMATED:
        predicate, rows = normal_form(table, where), rows_by_file(table, where)
        for plan in slices:
            count = rows[plan.file_slice.name.rpartition("/")[2]]
            by_manifest = estimated_rows(plan, predicate)
            assert by_manifest.least <= count <= by_manifest.most, (
                f"{where}: {by_manifest}, not {count}"
            )
            with SliceEntries.leased(plan, table._queries.pool) as entries:
                found = row_estimate(predicate, entries)
                assert found.least <= count <= found.most <= entries.total, f"{where}: {found}"
            assert found.least <= found.expected <= found.most, where
            exact += found.least == found.most
            manifests_exact += by_manifest.least == by_manifest.most
    assert manifests_exact < exact > len(ESTIMATED) * len(slices) / 3


def test_both_ends_of_a_range_are_counted_together(awkward):
    table = awkward("clustered").table
    plan = slices_of(table)[0]
    where = "amount > 300 AND amount <= 600"
    count = rows_by_file(table, where)[plan.file_slice.name.rpartition("/")[2]]

    with SliceEntries.leased(plan, table._queries.pool) as entries:
        found = row_estimate(normal_form(table, where), entries)

    assert found == RowEstimate(count, count, count)


def test_the_column_index_estimates_unindexed_columns(awkward):
    table = awkward("clustered").table
    with SliceEntries.leased(slices_of(table)[0], table._queries.pool) as entries:
        assert row_estimate(normal_form(table, "ts > 5"), entries) == RowEstimate(0, 0, 0)


def test_an_unreadable_entry_is_estimated_from_its_manifest(awkward, caplog):
    table = awkward("clustered").table
    (plan,) = slices_of(table)[:1]
    (serving,) = plan.entries
    gone = replace(serving, entry=replace(serving.entry, folder=serving.entry.folder + "-gone"))
    predicate = normal_form(table, "name = 'plain' AND amount > 100 AND ts = 0")

    with (
        caplog.at_level(logging.WARNING),
        SliceEntries.leased(plan._replace(entries=(gone,)), table._queries.pool) as entries,
    ):
        found = row_estimate(predicate, entries)

    by_manifest = estimated_rows(plan, predicate)
    assert (found.least, found.most) == (by_manifest.least, by_manifest.most)
