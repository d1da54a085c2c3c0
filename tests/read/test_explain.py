"""EXPLAIN says what is read and why, what is expected, and what it really was; and what the history
keeps of queries."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from hudi_index_service import IndexedTable, open_table
from hudi_index_service.config import HistorySettings, Settings
from hudi_index_service.optimizer.plan import Access
from hudi_index_service.read.explained import EXPLANATION_VERSION, ExplainedQuery
from hudi_index_service.read.planner import Wanted
from tests.hudi_tables import NO_METADATA_TABLE, hudi_options, write

ROWS = 20_000
_AUTO = Wanted()


@pytest.fixture(scope="module")
def path(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two base files in two partitions, of which one has no entry; `city` follows from `zip`."""
    path = tmp_path_factory.mktemp("explain") / "table"
    rows = spark.range(0, ROWS, 1, 1).selectExpr(
        "cast(id AS string) AS id",
        "concat('zip', id % 100) AS zip",
        "concat('city', id % 100) AS city",
        "cast(id AS int) AS amount",
        "sha2(cast(id AS string), 512) AS text",
        "cast(0 AS bigint) AS ts",
        "concat('p', id % 2) AS part",
    )
    options = hudi_options("t", partition_column="part", **NO_METADATA_TABLE)
    write(rows, path, options, "bulk_insert")
    table = open_table(path)
    table.create_index("by_zip", ["zip", "city", "amount"])
    table.build(strategy="all", partitions=["p0"]).raise_for_failures()
    return path


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(state_folder=tmp_path / "state")


@pytest.fixture
def table(path: Path, settings: Settings) -> Iterator[IndexedTable]:
    with open_table(path, settings=settings) as table:
        yield table


def test_what_is_expected_and_what_it_was(table: IndexedTable) -> None:
    explained = table.scan("zip = 'zip8'").explain(analyze=True).document()

    assert explained.version == EXPLANATION_VERSION
    assert explained.files is not None
    assert (explained.files.covered, explained.files.uncovered, explained.files.unknown) == (
        1,
        1,
        0,
    )
    assert explained.shape == "zip = ?"
    assert explained.slices is not None
    by_index, scanned = explained.slices
    assert (by_index.access, by_index.covered, scanned.access, scanned.covered) == (
        *("index", True),
        *("scan", False),
    )
    assert by_index.expected is not None
    assert by_index.actual is not None
    assert by_index.actual.rows == by_index.actual.rows_checked == ROWS // 100
    assert by_index.expected.rows.least == by_index.expected.rows.most == ROWS // 100
    assert by_index.actual.lookup_ms <= by_index.actual.ms
    assert by_index.expected.index_ms > 0
    assert scanned.expected is None  # of a file without entry nothing is known
    assert scanned.actual is not None
    assert scanned.actual.bytes > 0
    assert explained.expected is not None
    assert explained.expected.slices == 1
    assert explained.actual is not None
    assert explained.actual.slices["index"] == 1


@pytest.mark.parametrize(
    "where",
    [
        "zip = 'zip8'",
        "zip = 'zip8' AND city = 'city8'",  # as many as of each
        "zip = 'zip8' AND city = 'city6'",  # none
        "zip = 'zip8' OR city = 'city6'",
        "zip LIKE 'zip1%' AND amount BETWEEN 100 AND 7000",
        "amount > 100 AND amount < 19000",
        "NOT (zip = 'zip8')",
        "zip IN ('zip2', 'zip4', 'nowhere') OR amount IS NULL",
        "zip LIKE '%p3%'",
        "text = 'x' AND zip = 'zip8'",
        "amount = -1",
    ],
)
def test_actual_rows_are_within_the_stated_bounds(table: IndexedTable, where: str) -> None:
    for _ in range(4):  # by what is learnt, too
        slices = table.scan(where).explain(analyze=True).document().slices
        assert slices is not None
        for each in slices:
            if each.expected is not None and each.actual is not None:
                rows = each.expected.rows
                assert rows.least <= each.actual.rows <= rows.most
                assert rows.least <= rows.expected <= rows.most


def test_the_text_says_the_same(table: IndexedTable) -> None:
    text = str(table.scan("zip = 'zip8'").explain(analyze=True))

    assert "slices   2: 1 by index, 1 scanned, 0 merged with log files" in text
    assert "entries  serve 1 slices, not 1" in text
    assert "expected 200 rows of 1 of 2 slices, " in text
    assert "actual   200 rows returned of " in text


def test_json_is_what_the_model_says(table: IndexedTable) -> None:
    explained = table.scan("zip = 'zip8'").explain(analyze=True)

    told = json.loads(explained.to_json())
    assert told == explained.to_dict()
    assert ExplainedQuery.model_validate(told) == explained.document()
    assert told["slices"][0]["rule"] == "coverage"
    assert "expected" not in told["slices"][1]


def test_explaining_alone_runs_nothing(table: IndexedTable) -> None:
    explained = table.scan("zip = 'zip8' AND amount < 50").explain()

    assert explained.actual is None
    assert table.history() == []  # nothing was run
    slices = explained.document().slices
    assert slices is not None
    assert slices[0].actual is None


def test_one_line_of_log_for_each_query_without_literals(
    table: IndexedTable, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="hudi_index_service.read.execution")
    table.scan("zip = 'zip8' AND amount < 4711").to_arrow()
    table.scan("zip = 'zip8'").count()
    list(table.scan("zip = 'zip8'", limit=1).to_batches())

    lines = caplog.messages
    assert len(lines) == 3
    assert lines[0].startswith("Query on amount, zip: 1 slices by index, 1 scanned, 0 merged, ")
    assert lines[0].endswith("; shape amount < ? AND zip = ?.")
    assert "4711" not in caplog.text
    assert "zip8" not in caplog.text


def test_queries_are_remembered_without_their_literals(
    table: IndexedTable, settings: Settings
) -> None:
    for _ in range(3):
        assert table.scan("zip = 'zip8'").to_arrow().num_rows == ROWS // 100
    table.scan("text = 'MySecretText'").to_arrow()
    assert table.scan("zip = 'zip8' AND amount = 4711").count() == 0

    shapes = {each.shape: each for each in table.history()}
    assert set(shapes) == {"zip = ?", "text = ?", "amount = ? AND zip = ?"}
    by_zip, by_text = shapes["zip = ?"], shapes["text = ?"]
    assert by_zip.queries == 3
    assert by_zip.mean("rows") == pytest.approx(ROWS // 100)
    assert by_zip.sums["by_index"] == by_zip.sums["scanned"] == by_zip.sums["queries"]
    assert (by_zip.used, by_zip.unindexed) == ({"zip"}, frozenset())
    assert (by_text.used, by_text.unindexed) == (frozenset(), {"text"})
    assert by_text.sums["by_index"] == 0
    assert by_text.sums["scan_rows"] > 0
    table.close()
    kept = b"".join(
        each.read_bytes() for each in settings.state_folder.rglob("*") if each.is_file()
    )
    assert b"amount = ? AND zip = ?" in kept
    for literal in (b"zip8", b"MySecretText", b"4711"):
        assert literal not in kept


def test_what_is_correlated_is_learnt(table: IndexedTable, path: Path, settings: Settings) -> None:
    where = "zip = 'zip8' AND city = 'city8'"

    def guess(of: IndexedTable) -> float:
        plan = of._planner.plan(of.scan(where)._binding, _AUTO)[1]
        (expected,) = [each.expected for each in plan.slices if each.expected is not None]
        return expected.rows.expected

    first = guess(table)
    for number in (8, 20, 44, 62, 80):
        table.scan(f"zip = 'zip{number}' AND city = 'city{number}'").to_arrow()
    table.close()
    with open_table(path, settings=settings) as later:
        learnt = guess(later)

    true = ROWS // 100
    assert first < true / 2
    assert abs(learnt - true) < abs(first - true) / 2


def test_forgetting(table: IndexedTable) -> None:
    for _ in range(3):
        table.scan("zip = 'zip8'").to_arrow()

    assert table.forget_history() == 1
    assert table.history() == []


def test_nothing_is_remembered_where_that_is_switched_off(path: Path, tmp_path: Path) -> None:
    settings = Settings(state_folder=tmp_path / "state", history=HistorySettings(enabled=False))
    with open_table(path, settings=settings) as table:
        for _ in range(3):
            table.scan("zip = 'zip8'").to_arrow()
    assert not settings.state_folder.exists()


def test_a_history_that_cannot_be_kept_changes_no_answer(
    path: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "history").write_text("no folder")
    with open_table(path, settings=Settings(state_folder=tmp_path / "state")) as table:
        for _ in range(3):
            assert table.scan("zip = 'zip8'").count() == ROWS // 100
        plan = table.scan("zip = 'zip8'").explain().plan
        assert plan is not None
        assert plan.count(Access.INDEX) == 1
    warned = [each for each in caplog.records if each.levelno >= logging.WARNING]
    assert len(warned) == 1
