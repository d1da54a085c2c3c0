"""The history: what it learns, what it forgets, and that it never blocks a query."""

import logging
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from hudi_index_service.config import HistorySettings, Settings
from hudi_index_service.optimizer.history import history as module
from hudi_index_service.optimizer.history.file import SCHEMA_VERSION
from hudi_index_service.optimizer.history.history import History, stored_history
from hudi_index_service.optimizer.history.record import Observation

TABLE = "/data/messages"
SETTINGS = HistorySettings()


def observation(
    shape: str = "a = ?",
    *,
    expected: float = 10,
    actual: float = 99,
    used: frozenset[str] = frozenset("a"),
    **amounts: float,
) -> Observation:
    """A query with its expected and its actual number of rows."""
    columns = frozenset("a")
    return Observation(shape, columns, columns - used, used, (expected, actual), amounts)


@pytest.fixture
def folder(tmp_path) -> Path:
    return tmp_path / "state" / "history"


def rows_factor(history: History, shape: str = "a = ?", table: str = TABLE) -> float | None:
    known = history.shape(table, shape)
    return None if known is None else known.correction


def _warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]


def _use(history: History) -> None:
    for _ in range(4):
        history.record(TABLE, observation())
        history.flush()


def factor(folder: Path, rows: Iterable[int], settings: HistorySettings = SETTINGS) -> float:
    """The correction by queries that expected ten rows and found these."""
    history = History(folder, settings)
    for actual in rows:
        history.record(TABLE, observation(expected=10, actual=actual))
    return rows_factor(history) or 0


def test_a_correction_needs_several_similar_queries(folder):
    factors = [factor(folder, [109] * number) for number in range(1, 11)]  # ten times as many
    assert factors[:2] == [0, 0]  # two queries may be chance
    assert factors[2:] == sorted(factors[2:])
    assert 9 < factors[-1] < 10

    history = History(folder, SETTINGS)
    for _ in range(3):
        history.record(TABLE, observation())
    assert rows_factor(history, "b = ?") is None
    assert rows_factor(history, table="/data/others") is None


def test_contradictory_queries_and_outliers_correct_little(folder):
    mixed = factor(folder, [703, 0] * 2)
    assert 1 < mixed < factor(folder, [87] * 4)  # same mean logarithm
    assert 1 < factor(folder, [10, 10, 10, 10_000_000]) < 2.5


def test_later_queries_count_more(folder):
    later = factor(folder, [109] * 20 + [10] * 20, HistorySettings(half_life_queries=4))
    assert later == pytest.approx(1, abs=0.1)


def test_old_queries_count_less(folder, monkeypatch):
    clock = 1_800_000_000.0
    monkeypatch.setattr(module, "time", lambda: clock)
    history = History(folder, HistorySettings(half_life_days=1))
    for _ in range(20):
        history.record(TABLE, observation(expected=10, actual=109))
    clock += 30 * 86_400
    for _ in range(3):
        history.record(TABLE, observation(expected=10, actual=10))

    (shape,) = history.shapes(TABLE)
    assert shape.queries == 23
    assert shape.sums["queries"] == pytest.approx(3, abs=0.2)
    assert rows_factor(history) == pytest.approx(1, abs=0.01)
    assert history.queries_since(TABLE, clock) == 0  # the day itself is not counted
    assert history.queries_since(TABLE, clock - 86_400) == 3
    assert history.queries_since(TABLE, clock - 40 * 86_400) == 23


def test_the_next_process_continues_the_history(folder):
    first = History(folder, SETTINGS)
    for _ in range(5):
        first.record(TABLE, observation(bytes=100.0))
    first.flush()

    second = History(folder, SETTINGS)
    assert rows_factor(second) == pytest.approx(rows_factor(first))
    second.record(TABLE, observation(used=frozenset()))
    (shape,) = second.shapes(TABLE)
    assert shape.queries == 6
    assert shape.unindexed == {"a"}
    assert 0 < shape.last_used < shape.last
    assert 450 < shape.sums["bytes"] < 500
    first.record(TABLE, observation())
    (shape,) = first.shapes(TABLE)
    assert shape.queries == 7


def test_a_table_is_read_once_for_all_queries_that_are_written_together(folder, monkeypatch):
    statements: list[str] = []
    connect = sqlite3.connect

    def traced(*arguments, **options) -> sqlite3.Connection:
        connection = connect(*arguments, **options)
        connection.set_trace_callback(statements.append)
        return connection

    monkeypatch.setattr(sqlite3, "connect", traced)
    history = History(folder, SETTINGS)
    for number in range(60):
        history.record(TABLE, observation(f"column_{number % 7} = ?"))
    history.flush()
    read = [each for each in statements if each.startswith("SELECT * FROM shapes")]
    assert len(read) == 2  # before and after they were added


def test_files_are_accessible_only_to_the_user(folder):
    history = History(folder, SETTINGS)
    history.record(TABLE, observation())
    assert not folder.exists()  # nothing is written during the query
    history.flush()

    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}


def test_least_recently_queried_shapes_are_dropped(folder):
    history = History(folder, HistorySettings(max_shapes=3))
    for name in "abcad":
        history.record(TABLE, observation(f"{name} = ?"))
        history.flush()
    history.record("/data/others", observation("x = ?"))
    history.flush()

    left = History(folder, SETTINGS)
    assert [each.shape for each in left.shapes(TABLE)] == ["d = ?", "a = ?"]
    assert [each.shape for each in left.shapes("/data/others")] == ["x = ?"]


def test_without_a_folder_some_shapes_are_kept_in_memory(folder, caplog):
    folder.parent.mkdir()
    folder.write_text("no folder")
    history = History(folder, HistorySettings(max_shapes=3))
    for number in range(500):
        history.record(TABLE, observation(f"column_{number} = ?"))
    _use(history)

    assert len(history.shapes(TABLE)) == 3
    assert rows_factor(history) is not None
    assert len(_warnings(caplog)) == 1


def test_forgetting_leaves_no_trace(folder):
    history = History(folder, SETTINGS)
    assert history.forget() == 0
    assert not folder.exists()
    for table in (TABLE, "/data/others"):
        for number in range(50):
            history.record(table, observation(f"very_telling_column_{number} = ?"))
    history.flush()

    assert history.forget(TABLE) == 50
    assert history.shapes(TABLE) == []
    assert len(history.shapes("/data/others")) == 50
    assert history.forget() == 50
    assert history.queries_since("/data/others", 0) == 0
    left = b"".join(path.read_bytes() for path in folder.iterdir())
    assert b"very_telling_column" not in left
    assert b"/data/" not in left


def _overwrite(path: Path, start: int) -> None:
    content = path.read_bytes()
    path.write_bytes(content[:start] + b"\xa5" * (len(content) - start))


def _invalidate(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE shapes SET sums = '[1, 2'")
    connection.close()


@pytest.mark.parametrize(
    ("spoil", "set_aside"),
    [
        (lambda path: _overwrite(path, 0), True),
        (lambda path: _overwrite(path, 4096), True),
        (_invalidate, False),
    ],
    ids=["no database", "damaged pages", "an invalid row"],
)
def test_what_is_damaged_is_replaced(folder, caplog, spoil, set_aside):
    first = History(folder, SETTINGS)
    for number in range(400):
        first.record(TABLE, observation(f"column_{number} = ?"))
    _use(first)
    spoil(folder / "queries.sqlite")

    history = History(folder, SETTINGS)
    assert rows_factor(history) is None
    _use(history)
    assert len(_warnings(caplog)) == set_aside
    assert (folder / "queries.sqlite.damaged").exists() is set_aside
    shapes = {each.shape: each.queries for each in History(folder, SETTINGS).shapes(TABLE)}
    assert shapes["a = ?"] == 4


def test_a_file_of_a_newer_release_is_left_unchanged(folder, caplog):
    _use(History(folder, SETTINGS))
    path = folder / "queries.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    before = path.read_bytes()

    history = History(folder, SETTINGS)
    _use(history)
    assert rows_factor(history) is not None  # from this process only
    assert len(_warnings(caplog)) == 1
    assert path.read_bytes() == before


def test_queries_do_not_wait_for_a_locked_file(folder, caplog, monkeypatch):
    monkeypatch.setattr("hudi_index_service.optimizer.history.file.WRITE_SECONDS", 0.01)
    _use(History(folder, SETTINGS))
    holder = sqlite3.connect(folder / "queries.sqlite", isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")

    history = History(folder, SETTINGS)
    assert rows_factor(history) is not None  # readers never wait for writers
    _use(history)
    assert len(_warnings(caplog)) == 1
    holder.execute("ROLLBACK")
    holder.close()
    assert [each.queries for each in history.shapes(TABLE)] == [8]  # written the next time


PROCESS = """
import sys
from pathlib import Path
from hudi_index_service.config import HistorySettings, Settings
from hudi_index_service.optimizer.history.history import stored_history
from hudi_index_service.optimizer.history.record import Observation

lasting = HistorySettings(half_life_queries=1e12)
history = stored_history(Settings(state_folder=Path(sys.argv[1]).parent, history=lasting))
for number in range(90):
    shape = f"column_{number % 3} = ?"
    history.record("/data/messages", Observation(
        shape, frozenset("a"), frozenset(), frozenset("a"), (10, 109), {"bytes": 1.0}
    ))
    if number % 7 == 0:
        history.flush()
# The rest is written when the process ends.
"""


def test_several_processes_at_once_lose_nothing(folder):
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROCESS, str(folder)], stderr=subprocess.PIPE, text=True
        )
        for _ in range(3)
    ]
    printed = [each.communicate()[1] for each in processes]

    assert [each.returncode for each in processes] == [0] * 3
    assert printed == [""] * 3  # not a single warning
    shapes = History(folder, SETTINGS).shapes(TABLE)
    assert [each.queries for each in shapes] == [90] * 3
    assert sum(each.sums["bytes"] for each in shapes) == pytest.approx(270, rel=1e-3)
    assert History(folder, SETTINGS).queries_since(TABLE, 0) == 270


def test_a_killed_process_leaves_an_intact_file(folder):
    endless = PROCESS.replace("range(90)", "iter(int, 1)").replace("number % 7 == 0", "True")
    process = subprocess.Popen([sys.executable, "-c", endless, str(folder)])
    history = History(folder, SETTINGS)
    while not (folder / "queries.sqlite").exists() or not History(folder, SETTINGS).shapes(TABLE):
        assert process.poll() is None
    process.kill()
    process.wait()

    history.record(TABLE, observation())
    assert {each.shape for each in history.shapes(TABLE)} == {"a = ?", "column_0 = ?"}


def test_a_forked_child_writes_only_its_own_queries(folder):
    history = stored_history(Settings(state_folder=folder.parent))
    history.record(TABLE, observation("parent = ?"))
    child = os.fork()
    if child == 0:
        history.record(TABLE, observation("child = ?"))
        history.flush()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0

    counts = {each.shape: each.queries for each in history.shapes(TABLE)}
    assert counts == {"parent = ?": 1, "child = ?": 1}
