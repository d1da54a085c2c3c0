"""Answers through the index equal plain Spark's, cell by cell, in every state of a table."""

import pytest

from hudi_index_service import open_table
from hudi_index_service.optimizer.plan import Access
from tests.golden.predicates import PREDICATES
from tests.read.by_pages import BY_PAGES
from tests.read.conftest import STATES
from tests.same_rows import assert_same_rows


@pytest.mark.parametrize("name", STATES)
def test_every_predicate_gives_sparks_answer(name, awkward):
    indexed = awkward(name)
    for where in PREDICATES:
        expected = indexed.ids(where)
        scan = indexed.table.scan(where, columns=["id"])
        found = scan.to_arrow().column("id").to_pylist()
        assert sorted(found) == expected, where
        assert scan.count() == len(expected), where
        assert scan.exists() == bool(expected), where
        never = indexed.table.scan(where, columns=["id"], use_index="never")
        assert sorted(never.to_arrow().column("id").to_pylist()) == expected, where


@pytest.mark.parametrize("name", STATES)
@pytest.mark.parametrize(
    "where",
    [
        None,
        "name = 'plain'",
        "price = CAST('NaN' AS DOUBLE)",
        "msg LIKE 'Buying a new car 1%'",
        "place.zip = 7 OR array_contains(codes, CAST('NaN' AS DOUBLE))",
    ],
)
def test_rows_equal_sparks_cell_by_cell(name, where, awkward):
    indexed = awkward(name)
    found = indexed.table.scan(where).to_arrow()
    assert_same_rows(found, indexed.answer(where))


@pytest.mark.usefixtures("keeps_no_pages")
def test_a_struct_field_reads_only_its_own_pages(awkward):
    path = awkward("clustered").path
    with open_table(path, settings=BY_PAGES) as table:
        read = {}
        for columns in (["id"], ["id", "place"]):
            for use_index in ("auto", "never"):
                scan = table.scan("place.zip = 7", columns=columns, use_index=use_index)
                assert scan.to_arrow().num_rows == 10
                read[len(columns), use_index] = scan.statistics.bytes_read
        assert scan.statistics.pages == 0
        # If the struct is not in the answer, only one of its three fields is read.
        assert read[1, "auto"] < read[2, "auto"]
        assert read[1, "never"] < read[2, "never"]


def test_only_the_upserted_partition_is_scanned(awkward):
    plan = awkward("half covered").table.scan("name = 'plain'").explain().plan
    by_access = {each.file_slice.partition: each.access for each in plan.slices}
    assert by_access == {"p0": Access.INDEX, "p1": Access.SCAN, "p2": Access.INDEX}


def test_slices_with_logs_are_served(awkward):
    explanation = (
        awkward("with logs, partitioned").table.scan("name = 'plain'").explain(analyze=True)
    )
    # The first write left two file groups in each partition; updates and compaction touched one.
    assert {
        (each.file_slice.partition, each.access, bool(each.file_slice.log_files))
        for each in explanation.plan.slices
    } == {
        ("p0", Access.SCAN, False),
        ("p0", Access.INDEX, False),
        ("p1", Access.SCAN, False),
        ("p1", Access.INDEX, False),
        ("p2", Access.SCAN, False),
        ("p2", Access.INDEX, True),
    }
    read = [each.actual for each in explanation.slices or ()]
    assert [each is not None and each.log_rows is not None for each in read] == [
        bool(each.file_slice.log_files) for each in explanation.plan.slices
    ]


def test_row_ids_are_the_positions_in_the_base_files(awkward):
    import pyarrow.parquet as pq

    indexed = awkward("clustered, partitioned")
    for where in ("name = 'plain'", "name = 'plain' AND id < '3'"):
        by_file = indexed.table.scan(where).row_ids()
        ids = [
            pq.read_table(indexed.path / path, columns=["id"], partitioning=None)
            .column("id")
            .take(list(rows))
            .to_pylist()
            for path, rows in by_file.items()
        ]
        assert sorted(each for part in ids for each in part) == indexed.ids(where)
