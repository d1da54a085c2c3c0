"""HBase is unavailable, slow, or has lost or damaged its cells: every answer comes from a scan,
without long waits, and EXPLAIN and the log give the reason."""

from collections.abc import Callable
from contextlib import closing

import pytest
from pyspark.sql import SparkSession

from dev.hbase import HBase
from hudi_index_hbase.server import server_of
from hudi_index_service import IndexedTable
from hudi_index_service.config import HBaseSettings, Settings
from hudi_index_service.errors import IndexRequired, IndexServerUnavailable
from hudi_index_service.read.explanation import Explanation
from hudi_index_service.sql import IndexSession
from tests.hbase.conftest import Cells, Open, in_hbase
from tests.hudi_tables import read_rows
from tests.index.plug_in import uninstalled
from tests.ports import free_port
from tests.same_rows import assert_same_rows

COLUMNS = ["name", "amount", "price", "msg"]
WHERES = [
    "amount BETWEEN 30 AND 300",
    "name = 'plain' AND price > 0",
    "name = 'plain' OR amount = 33",
    "msg LIKE 'Buying a new car%'",
]

QUERY = "SELECT id FROM {t} WHERE ? ORDER BY id"

Break = Callable[[HBase, Cells], None]


def damage_leaves(server: HBase, cells: Cells) -> None:
    """Flips one bit in every cell of every leaf."""
    for key, row in cells.all().items():
        if b"i:uri" not in row:
            cells.put(key, {name: bytes([cell[0] ^ 1]) + cell[1:] for name, cell in row.items()})


def delete_leaves(server: HBase, cells: Cells) -> None:
    """Deletes all leaves, but not the rows that list the stored entries."""
    cells.delete(*(key for key, row in cells.all().items() if b"i:uri" not in row))


BROKEN: dict[str, Break] = {
    "connections are refused": lambda server, cells: server.kill_thrift(),
    "Thrift server is frozen": lambda server, cells: server.freeze_thrift(),
    "HBase is frozen": lambda server, cells: server.freeze(),
    "table is dropped": lambda server, cells: cells.drop(),
    "leaves are gone": delete_leaves,
    "leaves are garbled": damage_leaves,
}
GIVES_UP = [name for name in BROKEN if not name.startswith(("table", "leaves"))]


def rows(table: IndexedTable, where: str, **options: object) -> list[str]:
    """The keys of the matching rows."""
    scan = table.scan(where, columns=["id"], **options)  # type: ignore[arg-type]
    return sorted(scan.to_arrow()["id"].to_pylist())


def notes_of_scans(explained: Explanation) -> set[str]:
    """Why slices were scanned that were to be read by index."""
    read = [each.actual for each in explained.slices or () if each.actual is not None]
    return {each.note for each in read if each.access == "scan"}


@pytest.fixture
def short_timeouts(settings: Settings) -> HBaseSettings:
    """Settings that wait a second for HBase and cache nothing."""
    changed = {"connect_seconds": 1, "read_seconds": 1, "pause_seconds": 3600, "cache_mb": 0}
    return settings.hbase.model_copy(update=changed)


@pytest.mark.parametrize("broken", BROKEN)
def test_answers_come_from_a_scan_when_hbase_is_broken(
    broken: str,
    open_copy: Open,
    breakable: HBase,
    cells: Cells,
    short_timeouts: HBaseSettings,
    caplog: pytest.LogCaptureFixture,
) -> None:
    table = in_hbase(open_copy("cow", hbase=short_timeouts), COLUMNS)
    expected = {where: rows(table, where, use_index="never") for where in WHERES}
    assert all(expected.values())
    BROKEN[broken](breakable, cells)
    before = server_of(short_timeouts).requests
    caplog.clear()

    with open_copy("cow", hbase=short_timeouts) as again:
        for where in WHERES:
            assert rows(again, where) == expected[where]
            assert again.scan(where).count() == len(expected[where])
        explained = again.scan(WHERES[0], columns=["id"]).explain(analyze=True)
    # Two slices remain, or all: the bounds of `amount` may rule out the others.
    notes = notes_of_scans(explained)
    assert notes
    assert all("HBase" in note for note in notes), notes
    assert any("HBase" in record.getMessage() for record in caplog.records)
    if broken in GIVES_UP:
        # At most one request for each slice read in parallel; after that, none are sent.
        assert server_of(short_timeouts).requests - before <= 3


def test_without_its_distribution_queries_scan_and_nothing_is_lost(
    open_copy: Open, cells: Cells
) -> None:
    where = WHERES[0]
    expected = rows(in_hbase(open_copy("cow"), COLUMNS), where)
    stored = cells.all()
    with uninstalled("hbase"):
        table = open_copy("cow")
        assert rows(table, where) == expected
        assert table.scan(where).count() == len(expected)
        notes = notes_of_scans(table.scan(where, columns=["id"]).explain(analyze=True))
        assert notes
        assert all("module hudi_index_hbase, which is missing" in note for note in notes), notes
        assert table.build(strategy="all").due == ()
        purge = table.drop_index("all_columns", purge=True).purge
        assert purge is not None
        assert purge.remaining
        assert cells.all() == stored
    open_copy("cow").clean(grace_seconds=0)
    assert cells.all() == {}


@pytest.fixture
def table(open_copy: Open, short_timeouts: HBaseSettings) -> IndexedTable:
    """A table with an index in HBase."""
    return in_hbase(open_copy("cow", hbase=short_timeouts), COLUMNS)


@pytest.fixture
def unreachable(short_timeouts: HBaseSettings) -> HBaseSettings:
    """The same settings, with a port on which no process listens."""
    return short_timeouts.model_copy(update={"port": free_port()})


@pytest.fixture
def away(table: IndexedTable, open_copy: Open, unreachable: HBaseSettings) -> IndexedTable:
    """The table, opened where HBase cannot be reached."""
    return open_copy("cow", hbase=unreachable)


def test_required_index_raises_when_hbase_is_broken(
    table: IndexedTable, away: IndexedTable, hbase: HBase, cells: Cells
) -> None:
    with pytest.raises(IndexRequired, match="HBase"):
        away.scan("amount = 300", use_index="require").count()
    delete_leaves(hbase, cells)
    with pytest.raises(IndexRequired, match="HBase"):
        table.scan("amount = 300", use_index="require").count()


def test_slow_hbase_is_paused(open_copy: Open, short_timeouts: HBaseSettings) -> None:
    """Every request takes longer than the limit."""
    impatient = short_timeouts.model_copy(update={"slow_seconds": 1e-6, "slow_requests": 2})
    table = in_hbase(open_copy("cow", hbase=impatient), COLUMNS)
    expected = {where: rows(table, where, use_index="never") for where in WHERES}
    before = server_of(impatient).requests
    assert {where: rows(table, where) for where in WHERES} == expected
    explained = table.scan(WHERES[0], columns=["id"]).explain(analyze=True)
    assert explained.actual is not None
    assert any("is slow" in each.note for each in explained.actual.notes)
    # Two, and those already in flight.
    assert 2 <= server_of(impatient).requests - before <= 4


def test_tag_location_and_sql_work_without_hbase(
    open_copy: Open,
    short_timeouts: HBaseSettings,
    unreachable: HBaseSettings,
    settings: Settings,
    spark: SparkSession,
) -> None:
    table = in_hbase(open_copy("cow", hbase=short_timeouts), ["_hoodie_record_key", *COLUMNS])
    keys = ["7", "14", "9999"]
    found = table.tag_location(keys)
    assert_same_rows(open_copy("cow", hbase=unreachable).tag_location(keys), found)

    changed = settings.model_copy(update={"hbase": unreachable})
    enabled = spark.newSession()
    with closing(IndexSession(enabled, settings=changed)) as session:
        frame, plain = read_rows(enabled, table.uri), read_rows(spark, table.uri)
        for where in WHERES:
            query = QUERY.replace("?", where)
            assert session.sql(query, t=frame).collect() == spark.sql(query, t=plain).collect()


def test_hbase_is_used_again_after_the_pause(
    open_copy: Open, breakable: HBase, short_timeouts: HBaseSettings
) -> None:
    short_pause = short_timeouts.model_copy(update={"pause_seconds": 0.001})
    table = in_hbase(open_copy("cow", hbase=short_pause), COLUMNS)
    breakable.kill_thrift()
    assert rows(table, "amount = 300") == ["100"]
    breakable.mend()
    assert rows(table, "amount = 300", use_index="require") == ["100"]


def test_restarted_thrift_server_is_used_at_once(table: IndexedTable, breakable: HBase) -> None:
    assert rows(table, "amount = 300", use_index="require") == ["100"]
    breakable.restart_thrift()  # closes all earlier connections
    assert rows(table, "amount = 300", use_index="require") == ["100"]


@pytest.mark.parametrize("broken", ["leaves are gone", "leaves are garbled", "table is dropped"])
def test_verify_finds_and_repairs_lost_cells(
    broken: str, table: IndexedTable, hbase: HBase, cells: Cells
) -> None:
    BROKEN[broken](hbase, cells)
    found = table.verify()
    assert {problem.index_type for problem in found.problems} == {"hbase"}
    assert len(found.problems) == 3
    table.verify(repair=True)
    assert table.verify().problems == ()
    assert rows(table, "amount = 300", use_index="require") == ["100"]


def test_verify_without_hbase_repairs_nothing(table: IndexedTable, away: IndexedTable) -> None:
    """Entries that cannot be read are not known to be damaged."""
    with pytest.raises(IndexServerUnavailable):
        away.verify(repair=True)
    assert rows(table, "amount = 300", use_index="require") == ["100"]


def test_spark_tasks_scan_without_hbase(
    table: IndexedTable, away: IndexedTable, spark: SparkSession
) -> None:
    expected = rows(table, WHERES[1], use_index="never")
    frame = away.scan(WHERES[1], columns=["id"]).to_spark(spark)
    assert sorted(row["id"] for row in frame.collect()) == expected
