"""Advice on small tables after queries that really ran, and cases without advice."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from hudi_index_service import IndexedTable, open_table
from hudi_index_service.config import HistorySettings, Settings
from hudi_index_service.errors import SnapshotChanged
from hudi_index_service.hudi.files.parquet_file import FooterColumn, Footers, footers
from hudi_index_service.hudi.snapshot import BaseFile
from hudi_index_service.maintain.recommend import by_history
from hudi_index_service.maintain.recommend.by_history import unused_since
from hudi_index_service.maintain.recommend.writer import (
    CodecCosts,
    measured_codecs,
    writer_settings,
)
from hudi_index_service.optimizer.cost.constants import Constants
from hudi_index_service.optimizer.history.record import HistoryShape, Observation
from hudi_index_service.storage.store import Storage
from tests.cost_constants import set_constants
from tests.indexed import GoldenIndex, OwnTable
from tests.programs import Command

ROWS = 10_000


@pytest.fixture
def path(golden_index: GoldenIndex) -> Path:
    """One base file; `name` is indexed and built."""
    return golden_index("names_of_cities", ["name", "amount"], name="by_name")


SCANNING = ("scan_ms", "scanned_mib_ms", "scanned_value_ms")
FREE = {name: 1e-9 for name in Constants.model_fields if name not in SCANNING}


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings as on a machine on which reading by index takes no time."""
    settings = Settings(state_folder=tmp_path / "state")
    set_constants(settings, Constants(**FREE))
    return settings


@pytest.fixture
def table(path: Path, settings: Settings) -> Iterator[IndexedTable]:
    with open_table(path, settings=settings) as table:
        yield table


def test_without_history_there_is_no_advice(table: IndexedTable) -> None:
    advice = table.advise()

    assert (advice.queries, advice.indexes, advice.unused, advice.writer) == (0, (), (), ())
    assert advice.lines()[-1] == "Nothing to advise."


@pytest.mark.parametrize("times", [1, 2])
def test_a_base_file_cleaned_meanwhile_is_tolerated_once(
    times: int, table: IndexedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = [FileNotFoundError("a.parquet")] * times

    def read(storage: Storage, base_files: Sequence[BaseFile]) -> Footers:
        if gone:
            raise gone.pop()
        return footers(storage, base_files)

    monkeypatch.setattr(by_history, "footers", read)
    if times == 1:
        assert table.advise().lines()[-1] == "Nothing to advise."
    else:
        with pytest.raises(SnapshotChanged, match=r"a\.parquet"):
            table.advise()


def test_an_index_is_advised_for_columns_that_cause_scans(table: IndexedTable) -> None:
    for number in range(4):
        assert table.scan(f"city = 'city{number}'").to_arrow().num_rows == ROWS // 1000
    table.scan("text = 'once'").to_arrow()  # one query is not enough
    table.scan("name = 'name7'").to_arrow()  # has an index

    (advised,) = table.advise().indexes
    assert (advised.columns, advised.using, advised.defined_by) == (("city",), "lucene", ())
    assert advised.shapes == ("city = ?",)
    assert advised.rows == ROWS // 1000
    assert 0 < advised.scanned_rows <= ROWS
    assert advised.scan_ms > advised.index_ms >= 0
    assert advised.saves_ms == pytest.approx(advised.scan_ms - advised.index_ms, abs=0.01)
    assert advised.build.files == 1
    assert advised.build.seconds is not None
    assert advised.build.index_bytes is not None
    assert advised.build.index_bytes > 0
    assert not advised.build.exact
    assert advised.pays_after is not None


def test_a_defined_index_only_needs_a_build(own_table: OwnTable) -> None:
    table = own_table("names_of_cities", ["city"], name="by_city", build=False)
    for number in range(4):
        table.scan(f"city = 'city{number}'").to_arrow()
    (advised,) = table.advise().indexes
    assert advised.defined_by == ("by_city",)
    assert advised.lines()[0].startswith("Build index by_city: ")


def test_no_index_is_advised_where_it_is_slower(table: IndexedTable, settings: Settings) -> None:
    set_constants(settings, Constants(**FREE | {"value_ms": 100.0}))
    for number in range(4):
        assert table.scan(f"city = 'city{number}'").count() == ROWS // 1000

    assert table.advise().indexes == ()


def test_no_index_is_advised_for_unselective_predicates(table: IndexedTable) -> None:
    for number in range(4):
        assert table.scan(f"city <> 'city{number}'").count() > ROWS * 0.99

    assert table.advise().indexes == ()


def test_a_column_that_cannot_be_indexed_is_not_advised(table: IndexedTable) -> None:
    for _ in range(4):
        table.scan("odd IS NULL AND text IS NULL").to_arrow()

    assert table.advise().indexes == ()


def used(columns: str, last_used: float) -> HistoryShape:
    """A shape whose last query that used an index on these columns ended then."""
    shape = HistoryShape(f"{columns} = ?")
    names = frozenset(columns.split())
    query = Observation(shape.shape, names, frozenset(), names, None, {})
    shape.add(query, last_used, HistorySettings())
    return shape


@pytest.mark.parametrize(
    ("last_used", "expected"),
    [
        ({"a": 200.0, "b": 200.0}, ()),
        ({"a": 200.0}, ("b",)),
        ({}, ("a", "b")),
        ({"a": 50.0, "b": 50.0}, ("a", "b")),  # before the current build
    ],
)
def test_columns_that_no_query_used_are_unused(
    last_used: Mapping[str, float], expected: tuple[str, ...]
) -> None:
    shapes = [used(columns, when) for columns, when in last_used.items()]
    assert unused_since(100.0, ("a", "b"), shapes) == expected


def test_dropping_is_advised_for_a_built_but_unused_column(
    table: IndexedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hudi_index_service.optimizer.history import history as module

    now = module.time()
    monkeypatch.setattr(module, "time", lambda: now + 2 * 86_400)  # the day after the build
    for number in range(19):
        table.scan(f"name = 'name{number}'").count()
    assert table.advise().unused == ()  # too few queries to tell

    table.scan("name = 'name19'").count()
    (unused,) = table.advise().unused
    assert (unused.index, unused.columns, unused.whole) == ("by_name", ("amount",), False)
    assert (unused.queries, unused.entries) == (20, 1)
    assert unused.index_bytes > 0
    assert unused.lines()[0].startswith(
        "Drop amount from by_name: none of 20 queries since it was built"
    )


def by_index(*, bytes: float, rows: float, index_ms: float) -> HistoryShape:
    """Ten queries that read rows by index."""
    shape = HistoryShape("a = ?")
    amounts = {"by_index": 1.0, "bytes": bytes, "rows": rows, "index_ms": index_ms}
    for now in range(10):
        nothing: frozenset[str] = frozenset()
        query = Observation("a = ?", nothing, nothing, nothing, None, amounts)
        shape.add(query, now, HistorySettings(half_life_queries=1e12, half_life_days=1e12))
    return shape


def facts(codec: str = "GZIP", *, page: int = 400_000) -> Footers:
    """A file of a million rows in 50 pages."""
    column = FooterColumn(50 * page // 4, 50 * page, 50, {codec})
    return Footers((), 1_000_000, {"a": column}, 1.0)


def costs(**ms: float) -> Callable[[Sequence[str]], CodecCosts]:
    """Times of codecs on a sample, which all compress to the same size."""
    return lambda codecs: {name: (1000, ms[name]) for name in codecs if name in ms}


def test_smaller_pages_are_advised_if_few_rows_read_many_bytes() -> None:
    shapes = [by_index(bytes=8 * 2**20, rows=2, index_ms=40)]

    pages, codec = writer_settings(
        shapes, facts(), Constants(picked_mib_ms=4), costs(gzip=9.0, zstd=2.0, snappy=1.8)
    )
    assert (pages.key, pages.value) == ("hoodie.parquet.page.size", "32768")
    assert pages.evidence == {
        "page_rows": 20_000,
        "page_bytes": 100_000,
        "plain_page_bytes": 400_000,
        "bytes_a_query": 8 * 2**20,
        "rows_a_query": 2,
    }
    assert pages.saves_ms == 28  # seven eighths of 32
    assert (codec.key, codec.value, codec.present) == (
        *("hoodie.parquet.compression.codec", "snappy"),
        "gzip",
    )
    assert codec.evidence["gzip_ms"] == 9
    assert codec.saves_ms == 25.6


@pytest.mark.parametrize(
    ("shape", "of", "measured"),
    [
        # Reading is a small part of the query's time.
        (by_index(bytes=2**20, rows=2, index_ms=400), facts(), costs(gzip=9.0, zstd=2.0)),
        (by_index(bytes=1000, rows=2, index_ms=1), facts(), costs(gzip=9.0, zstd=2.0)),
        # Pages are small already, and the codec is fast.
        (
            by_index(bytes=8 * 2**20, rows=2, index_ms=40),
            facts("ZSTD", page=20_000),
            costs(zstd=2.0, snappy=1.8),
        ),
    ],
)
def test_good_writer_settings_are_kept(
    shape: HistoryShape,
    of: Footers,
    measured: Callable[[Sequence[str]], CodecCosts],
) -> None:
    assert writer_settings([shape], of, Constants(picked_mib_ms=4), measured) == ()


def test_codecs_are_measured_on_the_tables_rows(table: IndexedTable) -> None:
    from hudi_index_service.hudi.files.parquet_file import footers

    storage = table.hudi_table.storage
    found = footers(storage, table.hudi_table.snapshot().base_files())
    assert found.rows == ROWS
    assert found.columns["text"].codecs == {"GZIP"}
    assert found.columns["text"].pages >= 3
    assert found.columns["text"].plain_bytes > found.columns["text"].bytes > 0

    measured = measured_codecs(storage, found, ["gzip", "zstd", "nonsense_codec"])
    assert set(measured) == {"gzip", "zstd"}
    assert all(bytes > 0 and ms > 0 for bytes, ms in measured.values())


def test_advise_on_the_command_line(
    path: Path,
    settings: Settings,
    own_state: Path,
    command: Command,
) -> None:
    assert settings.state_folder == own_state, "the command uses the table's settings"
    with open_table(path, settings=settings) as table:
        for number in range(4):
            table.scan(f"city = 'city{number}'").to_arrow()

    parsed = json.loads(command("advise", path, "-o", "json"))
    assert parsed["queries"] == 4
    assert parsed["indexes"][0]["columns"] == ["city"]
    assert "Create an index on city: 4 queries scanned by city" in command("advise", path)
    (shape,) = json.loads(command("history", path, "-o", "json"))["shapes"]
    assert (shape["shape"], shape["queries"], shape["unindexed"]) == ("city = ?", 4, ["city"])
    assert "no index on city" in command("history", path)
    assert "Give a table, or --all" in command("forget", status=2)
    assert command("forget", path) == "1 shape of queries forgotten.\n"
    assert command("history", path) == "0 shapes.\n"
    assert command("forget", "--all") == "0 shapes of queries forgotten.\n"
