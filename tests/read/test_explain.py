"""EXPLAIN shows what is read and why, with expected and actual values; the history keeps
statistics of queries."""

import json
import logging
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from hudi_index_service import IndexedTable, open_table
from hudi_index_service.config import HistorySettings, Settings
from hudi_index_service.optimizer.plan import Access
from hudi_index_service.read.explanation import (
    EXPLANATION_VERSION,
    ExplainedGroup,
    ExplainedNote,
    Explanation,
)
from hudi_index_service.read.planner import ScanOptions

ROWS = 20_000
_AUTO = ScanOptions()


@pytest.fixture(scope="module")
def path(golden, tmp_path_factory) -> Path:
    """Two partitions with a base file each, one without an entry; `city` follows from `zip`."""
    path = golden("zips_in_two_partitions").put(tmp_path_factory.mktemp("explain"))
    table = open_table(path)
    table.create_index("by_zip", ["zip", "city", "amount"])
    table.build(strategy="all", partitions=["p0"]).raise_for_failures()
    return path


@pytest.fixture
def settings(tmp_path) -> Settings:
    return Settings(state_folder=tmp_path / "state")


@pytest.fixture
def table(path, settings) -> Iterator[IndexedTable]:
    with open_table(path, settings=settings) as table:
        yield table


def test_explain_shows_expected_and_actual_values(table):
    explained = table.scan("zip = 'zip8'").explain(analyze=True)

    assert explained.version == EXPLANATION_VERSION
    assert (explained.files.covered, explained.files.uncovered, explained.files.unknown) == (
        1,
        1,
        0,
    )
    assert explained.shape == "zip = ?"
    by_index, scanned = explained.slices
    assert (by_index.access, by_index.covered, scanned.access, scanned.covered) == (
        *("index", True),
        *("scan", False),
    )
    assert by_index.actual.rows == by_index.actual.rows_checked == ROWS // 100
    assert by_index.expected.rows.least == by_index.expected.rows.most == ROWS // 100
    assert by_index.actual.lookup_ms <= by_index.actual.ms
    assert by_index.expected.index_ms > 0
    assert scanned.expected is None  # nothing is known of a file without an entry
    assert scanned.actual.bytes > 0
    assert explained.expected.slices == 1
    assert explained.actual.slices["index"] == 1


@pytest.mark.parametrize(
    "where",
    [
        "zip = 'zip8'",
        "zip = 'zip8' AND city = 'city8'",  # as many as for either alone
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
def test_actual_rows_are_within_the_stated_bounds(table, where):
    for _ in range(4):  # later runs use what the history learnt
        slices = table.scan(where).explain(analyze=True).slices
        for each in slices:
            if each.expected is not None and each.actual is not None:
                rows = each.expected.rows
                assert rows.least <= each.actual.rows <= rows.most
                assert rows.least <= rows.expected <= rows.most


@pytest.mark.parametrize("name", ["hundred_base_files", "seven_partitions", "half_compacted"])
@pytest.mark.parametrize("where", ["amount BETWEEN 20 AND 60", "amount IN (3, 51)", None])
def test_the_groups_add_up_to_all_slices(golden_index, name, where):
    with open_table(golden_index(name, ["amount"])) as table:
        explained = table.scan(where).explain(analyze=True)
    assert sum(each.slices for each in explained.groups) == len(explained.slices)
    runs = [each.actual for each in explained.groups if each.actual is not None]
    read = sum((Counter(each.slices) for each in runs), Counter[str]())
    assert read == Counter(each.actual.access for each in explained.slices if each.actual)
    assert sum(each.rows for each in runs) == explained.actual.rows_returned
    assert sum(each.bytes for each in runs) == explained.actual.bytes
    for each in explained.groups:
        assert f"{each.slices} " in str(explained)


def test_text_and_json_show_the_record(table):
    explained = table.scan("zip = 'zip8'").explain(analyze=True)

    text = str(explained)
    assert "slices   2: 1 by index, 1 scanned, 0 merged with log files" in text
    assert "entries  for 1 slice, none for 1" in text
    assert "expected 200 rows of 1 of 2 slices, " in text
    assert "actual   200 rows returned of " in text
    parsed = json.loads(explained.to_json())
    assert parsed == explained.to_dict()
    again = Explanation.model_validate(parsed)
    assert (again.to_dict(), str(again)) == (parsed, str(explained))
    assert parsed["slices"][0]["rule"] == "coverage"
    assert "expected" not in parsed["slices"][1]


def test_explain_without_analyze_runs_nothing(table):
    explained = table.scan("zip = 'zip8' AND amount < 50").explain()

    assert explained.actual is None
    assert table.history() == []  # nothing was run
    assert explained.slices[0].actual is None


def test_the_text_says_how_many_groups_it_leaves_out(table):
    explained = table.scan("zip = 'zip8'").explain(analyze=True)
    groups = [
        ExplainedGroup(slices=2, access="scan", reason=f"reason {number}", rule="coverage")
        for number in range(23)
    ]
    notes = tuple(ExplainedNote(name="file", note=f"note {number}") for number in range(21))
    actual = explained.actual.model_copy(update={"notes": notes})
    text = str(explained.model_copy(update={"groups": tuple(groups), "actual": actual}))

    assert "reason 19 [coverage]\n        and 3 more groups of 6 slices\n" in text
    assert text.endswith("note 19\n        and 1 more note")


def test_each_query_logs_one_line_without_literals(table, caplog):
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


def test_the_history_keeps_queries_without_literals(table, settings):
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
    # The statistics rule every base file out: no entry is opened, yet the index did the work.
    assert table.scan("zip = 'nowhere'").count() == 0
    (nowhere,) = (each for each in table.history() if each.shape == "zip = ?")
    assert (nowhere.used, nowhere.unindexed) == ({"zip"}, frozenset())
    assert by_text.sums["scan_rows"] > 0
    table.close()
    kept = b"".join(
        each.read_bytes() for each in settings.state_folder.rglob("*") if each.is_file()
    )
    assert b"amount = ? AND zip = ?" in kept
    for literal in (b"zip8", b"MySecretText", b"4711"):
        assert literal not in kept


def test_the_history_learns_correlated_columns(table, path, settings):
    where = "zip = 'zip8' AND city = 'city8'"

    def guess(of):
        plan = of._queries.planner.plan(of.scan(where)._binding, _AUTO)[1]
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


def test_the_history_can_be_forgotten(table):
    for _ in range(3):
        table.scan("zip = 'zip8'").to_arrow()

    assert table.forget_history() == 1
    assert table.history() == []


def test_no_history_is_kept_when_switched_off(path, tmp_path):
    settings = Settings(state_folder=tmp_path / "state", history=HistorySettings(enabled=False))
    with open_table(path, settings=settings) as table:
        for _ in range(3):
            table.scan("zip = 'zip8'").to_arrow()
    assert not settings.state_folder.exists()


def test_an_unwritable_history_changes_no_answer(path, tmp_path, caplog):
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "history").write_text("no folder")
    with open_table(path, settings=Settings(state_folder=tmp_path / "state")) as table:
        for _ in range(3):
            assert table.scan("zip = 'zip8'").count() == ROWS // 100
        plan = table.scan("zip = 'zip8'").explain().plan
        assert plan.count(Access.INDEX) == 1
    warned = [each for each in caplog.records if each.levelno >= logging.WARNING]
    assert len(warned) == 1
