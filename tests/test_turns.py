"""Which tests a landing runs, and in which order."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import order, turns

FOLDER = Path(__file__).parent
PROOF = "tests/proof/test_proof.py::test_index_scan_and_spark_give_the_same_rows"


@pytest.fixture
def turn(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[int], None]:
    """Sets the number of the landing."""
    monkeypatch.setattr(turns, "TURN", tmp_path / "turn")
    return lambda number: (tmp_path / "turn").write_text(f"{number}\n") and None


@pytest.mark.parametrize(
    "pattern", [*turns.SHARED_OUT, *turns.SHARED_OUT_BY_TEST, *order.SHARED_OUT_BY_TEST]
)
def test_every_pattern_names_tests(pattern: str) -> None:
    assert [each for each in FOLDER.parent.glob(pattern) if each.name.startswith("test_")]


@pytest.mark.parametrize(
    "nodeids",
    [
        [f"tests/tpch/test_queries.py::test_answers[cow-q{n}]" for n in range(1, 23)],
        [f"{PROOF}[{each}]" for each in ("first", "second", "third")],
    ],
)
def test_three_landings_run_each_shared_out_test_once(
    nodeids: list[str], turn: Callable[[int], None]
) -> None:
    ran: list[str] = []
    for number in range(7, 10):
        turn(number)
        of_this_landing = [each for each in nodeids if turns.runs(each)]
        assert of_this_landing
        ran += of_this_landing
    assert sorted(ran) == sorted(nodeids)


def test_each_landing_runs_the_others(turn: Callable[[int], None]) -> None:
    for number in range(7, 10):
        turn(number)
        assert turns.runs("tests/spark_rule/test_queries.py::test_rows")


@pytest.mark.parametrize(
    ("folder", "files"), [("spark_rule", turns.on_scala_2_13), ("index", turns.on_java_25)]
)
def test_three_landings_run_each_file_with_the_other_version_once(
    folder: str, files: Callable[[], list[str]], turn: Callable[[int], None]
) -> None:
    ran: list[str] = []
    for number in range(7, 10):
        turn(number)
        of_this_landing = files()
        assert of_this_landing, "without a file, pytest would run all tests"
        ran += of_this_landing
    tests = FOLDER.joinpath(folder).rglob("test_*.py")
    assert sorted(ran) == sorted(str(each.relative_to(FOLDER.parent)) for each in tests)


def test_one_landing_in_three_measures_coverage(turn: Callable[[int], None]) -> None:
    measured = []
    for number in range(7, 10):
        turn(number)
        measured.append("--cov" in turns.options())
    assert measured == [False, False, True]


def test_tests_of_a_server_stay_together() -> None:
    first, second = (f"tests/hbase/test_{name}.py::test_it" for name in ("store", "build"))
    assert order.scope_of(first, fast=False) == order.scope_of(second, fast=False)


def test_tests_of_a_release_stay_together() -> None:
    one = "tests/versions/test_tables.py::test_due[1.2.0-archived]"
    other = "tests/versions/test_races.py::test_files[1.2.0-before]"
    older = "tests/versions/test_races.py::test_files[1.0.2-before]"
    assert order.scope_of(one, fast=False) == order.scope_of(other, fast=False)
    assert order.scope_of(one, fast=False) != order.scope_of(older, fast=False)


def test_the_longest_begin_first_test_by_test_where_a_file_is_shared_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    long, short = order.SHARED_OUT_BY_TEST[0], "tests/read/test_short.py"
    tests = {f"{long}::test_{n}": 100.0 + n for n in range(2)}
    monkeypatch.setattr(
        order, "recorded", lambda: {"fast": {short: 1.0}, "slow": {long: 201.0}, "tests": tests}
    )
    nodeids = [f"{short}::test_it", *tests]
    assert [order.scope_of(each, fast=False) for each in nodeids] == [short, *tests]
    assert order.longest_first(nodeids, fast=False) == [2, 1, 0]


def test_a_file_that_did_not_run_keeps_its_seconds(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    kept, ran = "tests/test_turns.py", "tests/conftest.py"
    known = {"fast": {kept: 3.0, ran: 1.0, "tests/gone.py": 9.0}, "slow": {}, "tests": {}}
    monkeypatch.setattr(order, "recorded", lambda: known)
    monkeypatch.setattr(order, "RECORDED", tmp_path / "seconds.json")
    order.record(fast={f"{ran}::test_a": 20.0, f"{ran}::test_b": 0.5}, slow={})
    assert json.loads((tmp_path / "seconds.json").read_text()) == {
        "fast": {kept: 3.0, ran: 20.5},
        "slow": {},
        "tests": {f"{ran}::test_a": 20.0},
    }
