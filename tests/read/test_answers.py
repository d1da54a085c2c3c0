"""Answers through the index equal plain Spark's, cell by cell, in every state of a table."""

from collections.abc import Callable

import pytest

from hudi_index_service import open_table
from hudi_index_service.config import ReadSettings, Settings
from hudi_index_service.optimizer.plan import Access
from tests.golden.predicates import PREDICATES
from tests.read.conftest import Indexed
from tests.same_rows import assert_same_rows


@pytest.fixture(scope="session")
def tables(
    clustered: Callable[[bool], Indexed],
    half_covered: Indexed,
    with_logs: Callable[[bool], Indexed],
) -> Callable[[str], Indexed]:
    """The tables by name."""
    makers: dict[str, Callable[[], Indexed]] = {
        "clustered": lambda: clustered(False),
        "clustered, partitioned": lambda: clustered(True),
        "half covered": lambda: half_covered,
        "with logs": lambda: with_logs(False),
        "with logs, partitioned": lambda: with_logs(True),
    }
    return lambda name: makers[name]()


TABLES = [
    "clustered",
    "clustered, partitioned",
    "half covered",
    "with logs",
    "with logs, partitioned",
]


@pytest.mark.parametrize("name", TABLES)
def test_every_predicate_gives_sparks_answer(name: str, tables: Callable[[str], Indexed]) -> None:
    indexed = tables(name)
    for where in PREDICATES:
        expected = indexed.ids(where)
        scan = indexed.table.scan(where, columns=["id"])
        found = scan.to_arrow().column("id").to_pylist()
        assert sorted(found) == expected, where
        assert scan.count() == len(expected), where
        assert scan.exists() == bool(expected), where
        never = indexed.table.scan(where, columns=["id"], use_index="never")
        assert sorted(never.to_arrow().column("id").to_pylist()) == expected, where


@pytest.mark.parametrize("name", TABLES)
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
def test_rows_equal_sparks_cell_by_cell(
    name: str, where: str | None, tables: Callable[[str], Indexed]
) -> None:
    indexed = tables(name)
    found = indexed.table.scan(where).to_arrow()
    assert_same_rows(found, indexed.answer(where))


def test_a_covered_table_is_read_by_index_only(clustered: Callable[[bool], Indexed]) -> None:
    scan = clustered(True).table.scan("name = 'plain'", use_index="require")
    plan = scan.explain().plan
    assert plan is not None
    assert {each.access for each in plan.slices} == {Access.INDEX}


@pytest.mark.usefixtures("keeps_no_pages")
def test_a_struct_field_reads_only_its_own_pages(
    clustered: Callable[[bool], Indexed],
) -> None:
    path = clustered(False).path
    # Rows are read by page, however small the table is.
    with open_table(path, settings=Settings(read=ReadSettings(scan_fraction=1))) as table:
        read = {}
        for columns in (["id"], ["id", "place"]):
            for use_index in ("auto", "never"):
                scan = table.scan("place.zip = 7", columns=columns, use_index=use_index)
                assert scan.to_arrow().num_rows == 10
                assert scan.statistics is not None
                read[len(columns), use_index] = scan.statistics.bytes_read
        assert scan.statistics.pages == 0
        # If the struct is not in the answer, only one of its three fields is read.
        assert read[1, "auto"] < read[2, "auto"]
        assert read[1, "never"] < read[2, "never"]


def test_a_query_without_matches_reads_no_page(clustered: Callable[[bool], Indexed]) -> None:
    scan = clustered(True).table.scan("name = 'nobody'")
    assert scan.to_arrow().num_rows == 0
    assert scan.statistics is not None
    assert (scan.statistics.bytes_read, scan.statistics.pages) == (0, 0)


def test_count_of_an_exact_predicate_reads_no_page(
    clustered: Callable[[bool], Indexed],
) -> None:
    scan = clustered(False).table.scan("name = 'plain' AND price > 0")
    assert scan.count() > 0
    assert scan.statistics is not None
    assert scan.statistics.bytes_read == 0


def test_only_the_upserted_partition_is_scanned(half_covered: Indexed) -> None:
    plan = half_covered.table.scan("name = 'plain'").explain().plan
    assert plan is not None
    by_access = {each.file_slice.partition: each.access for each in plan.slices}
    assert by_access == {"p0": Access.INDEX, "p1": Access.SCAN, "p2": Access.INDEX}


def test_slices_with_logs_are_served(with_logs: Callable[[bool], Indexed]) -> None:
    explanation = with_logs(True).table.scan("name = 'plain'").explain(analyze=True)
    assert explanation.plan is not None
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


def test_row_ids_are_the_positions_in_the_base_files(clustered: Callable[[bool], Indexed]) -> None:
    import pyarrow.parquet as pq

    indexed = clustered(True)
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


def test_a_limit_stops_reading(clustered: Callable[[bool], Indexed]) -> None:
    table = clustered(True).table
    scan = table.scan("name IS NOT NULL", limit=5)
    assert scan.to_arrow().num_rows == 5
    assert scan.statistics is not None
    assert [each.rows_checked > 0 for each in scan.statistics.slices] == [True], "of three"
    assert table.scan(limit=0).to_arrow().num_rows == 0
