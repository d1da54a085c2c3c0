"""HBase is away, slow, or has lost or garbled what it was given: every answer is a scan's, soon,
and EXPLAIN and the log say why."""

from collections.abc import Callable
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from dev.hbase import HBase
from hudi_index_service import IndexedTable
from hudi_index_service.config import HBaseSettings, Settings
from hudi_index_service.errors import IndexRequired, IndexServerUnavailable
from hudi_index_service.index.hbase.server import server_of
from hudi_index_service.optimizer.plan import Access
from hudi_index_service.sql import IndexSession
from tests.hbase.conftest import Cells, Open, indexed
from tests.hudi_tables import read_rows
from tests.same_rows import assert_same_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = ["name", "amount", "price", "msg"]
WHERES = [
    "amount BETWEEN 30 AND 300",
    "name = 'plain' AND price > 0",
    "name = 'plain' OR amount = 33",
    "msg LIKE 'Buying a new car%'",
]

QUERY = "SELECT id FROM {t} WHERE ? ORDER BY id"

Break = Callable[[HBase, Cells], None]


def garble(server: HBase, cells: Cells) -> None:
    """One bit of every cell of every leaf is another."""
    for key, row in cells.all().items():
        if b"i:uri" not in row:
            cells.put(key, {name: bytes([cell[0] ^ 1]) + cell[1:] for name, cell in row.items()})


def lose(server: HBase, cells: Cells) -> None:
    """All leaves are gone, and what says that they are there is not."""
    cells.delete(*(key for key, row in cells.all().items() if b"i:uri" not in row))


BROKEN: dict[str, Break] = {
    "connections are refused": lambda server, cells: server.kill_thrift(),
    "Thrift server is frozen": lambda server, cells: server.freeze_thrift(),
    "HBase is frozen": lambda server, cells: server.freeze(),
    "table is dropped": lambda server, cells: cells.drop(),
    "leaves are gone": lose,
    "leaves are garbled": garble,
}
GIVES_UP = [name for name in BROKEN if not name.startswith(("table", "leaves"))]


def rows(table: IndexedTable, where: str, **options: object) -> list[str]:
    """The keys of the matching rows."""
    scan = table.scan(where, columns=["id"], **options)  # type: ignore[arg-type]
    return sorted(scan.to_arrow()["id"].to_pylist())


@pytest.fixture
def hurried(settings: Settings) -> HBaseSettings:
    """Waits a second for HBase, and keeps nothing that was read."""
    known = {"connect_seconds": 1, "read_seconds": 1, "pause_seconds": 3600, "cache_mb": 0}
    return settings.hbase.model_copy(update=known)


@pytest.mark.parametrize("broken", BROKEN)
def test_answers_are_a_scans(
    broken: str,
    open_copy: Open,
    breakable: HBase,
    cells: Cells,
    hurried: HBaseSettings,
    caplog: pytest.LogCaptureFixture,
) -> None:
    table = indexed(open_copy("cow", hbase=hurried), COLUMNS)
    expected = {where: rows(table, where, use_index="never") for where in WHERES}
    assert all(expected.values())
    BROKEN[broken](breakable, cells)
    before = server_of(hurried).requests
    caplog.clear()

    with open_copy("cow", hbase=hurried) as again:
        for where in WHERES:
            assert rows(again, where) == expected[where]
            assert again.scan(where).count() == len(expected[where])
        told = again.scan(WHERES[0], columns=["id"]).explain(analyze=True)
    assert told.actual is not None
    # Two slices are left: the least and the greatest amount of the others rule them out, or none.
    notes = {each.note for each in told.actual.slices if each.access is Access.SCAN}
    assert notes
    assert all("HBase" in note for note in notes), notes
    assert any("HBase" in record.getMessage() for record in caplog.records)
    if broken in GIVES_UP:
        # At most one for each of the slices that are read at once; then nobody asks any more.
        assert server_of(hurried).requests - before <= 3


@pytest.fixture
def away(hurried: HBaseSettings, refused: int) -> HBaseSettings:
    """The same, and nobody is there."""
    return hurried.model_copy(update={"port": refused})


def test_who_requires_the_index_is_told(
    open_copy: Open, hbase: HBase, cells: Cells, hurried: HBaseSettings, away: HBaseSettings
) -> None:
    table = indexed(open_copy("cow", hbase=hurried), COLUMNS)
    with pytest.raises(IndexRequired, match="HBase"):
        open_copy("cow", hbase=away).scan("amount = 300", use_index="require").count()
    lose(hbase, cells)
    with pytest.raises(IndexRequired, match="HBase"):
        table.scan("amount = 300", use_index="require").count()


def test_a_slow_hbase_is_not_asked_for_a_while(open_copy: Open, hurried: HBaseSettings) -> None:
    """Here every request takes too long."""
    impatient = hurried.model_copy(update={"slow_seconds": 1e-6, "slow_requests": 2})
    table = indexed(open_copy("cow", hbase=impatient), COLUMNS)
    expected = {where: rows(table, where, use_index="never") for where in WHERES}
    before = server_of(impatient).requests
    assert {where: rows(table, where) for where in WHERES} == expected
    told = table.scan(WHERES[0], columns=["id"]).explain(analyze=True)
    assert told.actual is not None
    assert any("is slow" in each.note for each in told.actual.slices)
    # Two, and those that were on their way by then.
    assert 2 <= server_of(impatient).requests - before <= 4


def test_keys_are_located_and_sql_answered_without_hbase(
    open_copy: Open,
    hurried: HBaseSettings,
    away: HBaseSettings,
    settings: Settings,
    spark: "SparkSession",
) -> None:
    table = indexed(open_copy("cow", hbase=hurried), ["_hoodie_record_key", *COLUMNS])
    keys = ["7", "14", "9999"]
    found = table.tag_location(keys)
    assert_same_rows(open_copy("cow", hbase=away).tag_location(keys), found)

    known = settings.model_copy(update={"hbase": away})
    with closing(IndexSession(spark, settings=known)) as session:
        frame = read_rows(spark, table.uri)
        for where in WHERES:
            query = QUERY.replace("?", where)
            assert session.sql(query, t=frame).collect() == spark.sql(query, t=frame).collect()


def test_hbase_is_asked_again_after_a_while(
    open_copy: Open, breakable: HBase, hurried: HBaseSettings
) -> None:
    soon = hurried.model_copy(update={"pause_seconds": 0.001})
    table = indexed(open_copy("cow", hbase=soon), COLUMNS)
    breakable.kill_thrift()
    assert rows(table, "amount = 300") == ["100"]
    breakable.mend()
    assert rows(table, "amount = 300", use_index="require") == ["100"]


def test_a_thrift_server_that_was_started_anew_is_not_taken_for_one_that_is_away(
    open_copy: Open, breakable: HBase, hurried: HBaseSettings
) -> None:
    table = indexed(open_copy("cow", hbase=hurried), COLUMNS)
    assert rows(table, "amount = 300", use_index="require") == ["100"]
    breakable.restart_thrift()  # and the connections of before are dead
    assert rows(table, "amount = 300", use_index="require") == ["100"]


@pytest.mark.parametrize("broken", ["leaves are gone", "leaves are garbled", "table is dropped"])
def test_what_is_lost_is_found_by_verify_and_built_anew(
    broken: str, open_copy: Open, hbase: HBase, cells: Cells, hurried: HBaseSettings
) -> None:
    table = indexed(open_copy("cow", hbase=hurried), COLUMNS)
    BROKEN[broken](hbase, cells)
    found = table.verify()
    assert {problem.index_type for problem in found.problems} == {"hbase"}
    assert len(found.problems) == 3
    table.verify(repair=True)
    assert table.verify().problems == ()
    assert rows(table, "amount = 300", use_index="require") == ["100"]


def test_a_verify_without_hbase_repairs_nothing(
    open_copy: Open, hurried: HBaseSettings, away: HBaseSettings
) -> None:
    """Nothing is known to be wrong with entries that cannot be looked at."""
    table = indexed(open_copy("cow", hbase=hurried), COLUMNS)
    with pytest.raises(IndexServerUnavailable):
        open_copy("cow", hbase=away).verify(repair=True)
    assert rows(table, "amount = 300", use_index="require") == ["100"]


def test_spark_tasks_scan_too(
    open_copy: Open, hurried: HBaseSettings, away: HBaseSettings, spark: "SparkSession"
) -> None:
    table = indexed(open_copy("cow", hbase=hurried), COLUMNS)
    expected = rows(table, WHERES[1], use_index="never")
    frame = open_copy("cow", hbase=away).scan(WHERES[1], columns=["id"]).to_spark(spark)
    assert sorted(row["id"] for row in frame.collect()) == expected
