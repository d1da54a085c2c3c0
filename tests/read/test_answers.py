"""Answers through the index equal plain Spark's, cell by cell, whatever state the table is in."""

from collections.abc import Callable

import pytest

from hudi_index_service import open_table
from hudi_index_service.config import ReadSettings, Settings
from hudi_index_service.optimizer.plan import Access
from hudi_index_service.table.spark import SparkHudiReader
from tests.hudi_tables import assert_same_rows
from tests.read.conftest import Indexed

PREDICATES = [
    "name = 'plain'",
    "name = ''",
    "name <> 'plain'",
    "name <=> NULL",
    "name <=> 'Ünïcödé'",
    "NOT (name <=> 'plain')",
    "name IN ('plain', '😀 emoji', 'missing')",
    "name NOT IN ('plain', '')",
    "name NOT IN ('plain', NULL)",
    "name > 'a_b'",
    "name BETWEEN 'P' AND 'q'",
    "name LIKE 'a\\\\%b'",
    "name LIKE 'a_b'",
    "name LIKE '%'",
    "name LIKE '😀%'",
    "name LIKE '%back%'",
    "name IS NULL",
    "name IS NOT NULL",
    "msg LIKE 'Buying a new car%'",
    "msg LIKE 'Buying%' AND NOT name = 'plain'",
    "msg NOT LIKE '%car%'",
    "price = 0.0",
    "price = CAST('NaN' AS DOUBLE)",
    "price > 1.5",
    "NOT (price < 1.5)",
    "price >= CAST('Infinity' AS DOUBLE)",
    "price <> 0",
    "price IN (1.5, -1.5)",
    "ratio > 1",
    "ratio = 1.5",
    "amount = 300",
    "amount > 10.5 AND amount < 100",
    "amount IN (3, 6, 9, 99999)",
    "amount IS NULL OR amount > 1790",
    "small = -50",
    "small >= 3000000000",
    "flag",
    "NOT flag",
    "flag IS NULL",
    "born < DATE'0100-01-01'",
    "born = '0001-01-01'",
    "born > DATE'9000-01-01'",
    "seen < TIMESTAMP'1970-01-01 00:00:00'",
    "seen = TIMESTAMP'1970-01-01 00:00:00.000300'",
    "seen BETWEEN '1969-12-31 23:59:00' AND '1970-01-01 00:01:00'",
    "cost = 7.25",
    "cost > 4000.125",
    "huge = 0",
    "huge > 1234567890123456789050",
    "huge <= -12345678901234567890.5",
    "NOT (huge BETWEEN -12345678901234567890.500000 AND 24691357802469135781)",
    "huge IN (0, 12345678901234567890.5, 99999999999999999999999999.9)",
    "huge IS NULL",
    "raw = X'10'",
    "raw >= X'C0'",
    "raw IN (X'', X'07', X'010000')",
    "raw NOT IN (X'')",
    "raw <=> NULL",
    "array_contains(tags, 't1')",
    "NOT array_contains(tags, 'x')",
    "array_contains(tags, '') AND name IS NOT NULL",
    "NOT (array_contains(tags, 't2') OR array_contains(tags, 't3'))",
    "tags IS NULL",
    "tags IS NOT NULL AND NOT array_contains(tags, 'nobody')",
    "array_contains(codes, CAST('NaN' AS DOUBLE))",
    "array_contains(codes, 0)",
    "NOT array_contains(codes, 1.5D)",
    "codes IS NULL OR array_contains(codes, 3)",
    "place.city = 'plain'",
    "PLACE.City LIKE 'a%' AND place.zip < 40",
    "`place`.zip IN (7, 8) OR place.geo.lat = 0",
    "NOT (place.geo.LAT > 0)",
    "place.geo.lat IS NULL",
    "place.city IS NOT NULL AND place IS NOT NULL",
    "place IS NULL",
    "place.geo.lat > 1 AND array_contains(tags, 'x')",
    "name = 'plain' AND price > 0 OR amount = 33",
    "NOT (name = 'plain' OR price > 0)",
    "name = 'plain' AND part = 'p1'",
    "ts = 1 AND name = 'plain'",
    "id = '42'",
    "name = 'plain' AND id < '3'",
    "price > 1.5 AND price >= 0 AND price <= CAST('NaN' AS DOUBLE)",
    "amount BETWEEN 30 AND 90 OR amount BETWEEN 60 AND 120 OR amount = 99",
    "amount > 300 AND amount < 300 AND name IS NOT NULL",
    "price = 0 AND price = -0.0D AND price IS NOT NULL",
    "TRUE",
    "NULL",
    "name = NULL",
]


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
    # One Spark job for all predicates: which rows (by key) each of them keeps.
    flags = [f"coalesce({where}, false) AS p{i}" for i, where in enumerate(PREDICATES)]
    by_spark = indexed.by_spark().selectExpr("id", *flags).collect()
    for i, where in enumerate(PREDICATES):
        expected = {row["id"] for row in by_spark if row[f"p{i}"]}
        scan = indexed.table.scan(where, columns=["id"])
        found = scan.to_arrow().column("id").to_pylist()
        assert sorted(found) == sorted(expected), where
        assert scan.count() == len(expected), where
        assert scan.exists() == bool(expected), where
        never = indexed.table.scan(where, columns=["id"], use_index="never")
        assert sorted(never.to_arrow().column("id").to_pylist()) == sorted(expected), where


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
    names = indexed.by_spark().columns
    assert_same_rows(found, SparkHudiReader(indexed.spark, indexed.path).read(names, where))


def test_a_covered_table_is_read_by_index_alone(clustered: Callable[[bool], Indexed]) -> None:
    scan = clustered(True).table.scan("name = 'plain'", use_index="require")
    plan = scan.explain().plan
    assert plan is not None
    assert {each.access for each in plan.slices} == {Access.INDEX}


def test_a_field_of_a_struct_is_read_by_its_own_pages(
    clustered: Callable[[bool], Indexed],
) -> None:
    path = clustered(False).path
    # Whatever the size of the table: rows by their pages.
    with open_table(path, settings=Settings(read=ReadSettings(scan_fraction=1))) as table:
        read = {}
        for columns in (["id"], ["id", "place"]):
            for use_index in ("auto", "never"):
                scan = table.scan("place.zip = 7", columns=columns, use_index=use_index)
                assert scan.to_arrow().num_rows == 10
                assert scan.statistics is not None
                read[len(columns), use_index] = scan.statistics.bytes_read
        assert scan.statistics.pages == 0
        # Without the struct in the answer, of its three fields one is read.
        assert read[1, "auto"] < read[2, "auto"]
        assert read[1, "never"] < read[2, "never"]


def test_zero_matches_read_no_page(clustered: Callable[[bool], Indexed]) -> None:
    scan = clustered(True).table.scan("name = 'nobody'")
    assert scan.to_arrow().num_rows == 0
    assert scan.statistics is not None
    assert (scan.statistics.bytes_read, scan.statistics.pages) == (0, 0)


def test_counting_by_an_exact_predicate_reads_no_page(
    clustered: Callable[[bool], Indexed],
) -> None:
    scan = clustered(False).table.scan("name = 'plain' AND price > 0")
    assert scan.count() > 0
    assert scan.statistics is not None
    assert scan.statistics.bytes_read == 0


def test_an_upserted_partition_is_scanned_and_the_others_are_not(half_covered: Indexed) -> None:
    plan = half_covered.table.scan("name = 'plain'").explain().plan
    assert plan is not None
    by_access = {each.file_slice.partition: each.access for each in plan.slices}
    assert by_access == {"p0": Access.INDEX, "p1": Access.SCAN, "p2": Access.INDEX}


def test_slices_with_logs_are_merged(with_logs: Callable[[bool], Indexed]) -> None:
    plan = with_logs(True).table.scan("name = 'plain'").explain().plan
    assert plan is not None
    # The first write left two file groups in each partition; updates and compaction touched one.
    assert {(each.file_slice.partition, each.access) for each in plan.slices} == {
        ("p0", Access.SCAN),
        ("p0", Access.INDEX),
        ("p1", Access.SCAN),
        ("p1", Access.INDEX),
        ("p2", Access.SCAN),
        ("p2", Access.MERGE),
    }


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
        expected = [row["id"] for row in indexed.by_spark(where).select("id").collect()]
        assert sorted(each for part in ids for each in part) == sorted(expected)


def test_a_limit_stops_the_reading(clustered: Callable[[bool], Indexed]) -> None:
    table = clustered(True).table
    scan = table.scan("name IS NOT NULL", limit=5)
    assert scan.to_arrow().num_rows == 5
    assert scan.statistics is not None
    assert [each.rows_checked > 0 for each in scan.statistics.slices] == [True, False, False]
    assert table.scan(limit=0).to_arrow().num_rows == 0
