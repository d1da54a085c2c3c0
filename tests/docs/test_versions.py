"""The page of versions tells what ran, and a version without a record fails it."""

import re

import pytest

from dev import versions
from dev.versions import BY_HAND, CELLS, NOT_RUN, Cell, Record, Unrecorded, page, recorded
from tests.docs.markdown import ROOT

PYTHON = Cell("Python", "3.13", "wheels", "tests/setup/test_way_in.py", "[3.13")
SCALA = Cell("Spark", "3.5, Scala 2.13", "queries", "tests/spark_rule", run="scala 2.13")


def test_each_version_has_the_state_and_the_commit_of_its_record() -> None:
    by_hand = Cell("Java", "21", "look-ups", outcome=BY_HAND, commit="4567abcd")
    absent = Cell("Java", "22", "not at hand", outcome=NOT_RUN)

    text = page([PYTHON, by_hand, absent], {"Python 3.13": Record("0123abcd", 2)})

    assert "| 3.13 | wheels | ran | 2 | 0123abcd |" in text
    assert "| 21 | look-ups | ran by hand | | 4567abcd |" in text
    assert "| 22 | not at hand | not run | |  |" in text


def test_version_without_a_record_fails_the_page_and_names_the_tests() -> None:
    with pytest.raises(Unrecorded, match=r"Python 3\.13.*tests/setup/test_way_in\.py"):
        page([PYTHON], {})


def test_every_version_has_a_record() -> None:
    assert versions.records().keys() == {each.name for each in CELLS if each.tests}
    assert page().count("\n| ") >= len(CELLS)


def test_record_is_of_the_run_that_a_version_belongs_to() -> None:
    test = "tests/spark_rule/test_counts.py::test_count"
    assert SCALA.is_of(test, "scala 2.13")
    assert not SCALA.is_of(test, "")
    assert not SCALA.is_of("tests/spark_rule_other/test_counts.py::test_count", "scala 2.13")


def test_what_was_done_by_hand_names_its_commit_and_nothing_else_lacks_tests() -> None:
    for each in CELLS:
        assert bool(each.commit) == each.outcome.endswith("by hand"), each
        assert bool(each.tests) == (not each.commit and each.outcome != NOT_RUN), each


def test_failure_takes_the_record_away() -> None:
    before = {each: Record("old", 1) for each in ("Python 3.12", "Python 3.13", "HBase 2")}
    outcomes = {
        "tests/setup/test_way_in.py::test_demo[3.12]": True,
        "tests/setup/test_way_in.py::test_drop[3.12]": True,
        "tests/setup/test_way_in.py::test_demo[3.13]": True,
        "tests/setup/test_way_in.py::test_drop[3.13]": False,
    }

    after = recorded(before, "new", "", outcomes)

    assert after == {"Python 3.12": Record("new", 2), "HBase 2": Record("old", 1)}


@pytest.mark.parametrize("cell", [each for each in CELLS if each.tests], ids=lambda cell: cell.name)
def test_tests_of_each_version_exist(cell: Cell) -> None:
    path = ROOT / cell.tests
    files = sorted(path.rglob("test_*.py")) if path.is_dir() else [path]
    named = re.match(r"\w+", cell.naming)
    assert files
    assert named is None or any(named[0] in each.read_text() for each in files)
