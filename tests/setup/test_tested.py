"""What was tested together: the table says what the tests run with, the README says what the table
says, and a process names once what is outside of it."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Iterable
from pathlib import Path

import hudi_index_spark
import pytest

from dev.environment import pinned
from dev.native import PYLUCENE
from dev.paths import CONSTRAINTS, ROOT
from dev.prerequisites import JDK_MAJOR, LATEST_JDK_MAJOR, PYTHON
from dev.wheels import OTHER_PYTHONS
from hudi_index_service import open_table
from hudi_index_service.tested import WITH_SPARK, WITHOUT_SPARK, name_untested, untested
from tests.golden.table import Golden
from tests.programs import ended

OPENED = """
import sys
from hudi_index_service import open_table
with open_table(sys.argv[1]) as table:
    table.create_index("by_sender", ["sender"])
    table.build(strategy="all").raise_for_failures()
"""


def lines_of_releases(versions: Iterable[str]) -> set[str]:
    return {".".join(each.split(".")[:2]) for each in versions}


@pytest.mark.parametrize("pins", ["demo.txt", "dev.txt"])
def test_packages_are_those_that_are_pinned(pins: str) -> None:
    assert WITHOUT_SPARK["pyarrow"] == (pinned(CONSTRAINTS / pins, "pyarrow").split(".")[0],)
    assert {each["Spark"] for each in WITH_SPARK} == {
        (*lines_of_releases([pinned(CONSTRAINTS / pins, "pyspark")]),)
    }


def test_pythons_and_javas_are_those_of_the_set_up_and_the_wheels() -> None:
    own = ".".join(map(str, PYTHON))
    assert WITHOUT_SPARK["Python"] == (own, *OTHER_PYTHONS)
    assert WITHOUT_SPARK["Java"] == (str(JDK_MAJOR), str(LATEST_JDK_MAJOR))
    for each in WITH_SPARK:
        assert each["Python"][0] == own
        assert each["Java"] == (str(JDK_MAJOR),)


def test_lucene_is_that_of_its_jars() -> None:
    jars = (PYLUCENE.folder / "jars.txt").read_text()
    found = lines_of_releases(re.findall(r"lucene-core:([\d.]+)$", jars, re.MULTILINE))
    assert {*WITHOUT_SPARK["Lucene"]} == found


@pytest.mark.parametrize("tested", WITH_SPARK, ids=lambda each: each["Scala"][0])
def test_bundles_are_those_that_are_fetched(tested: dict[str, tuple[str, ...]]) -> None:
    (scala,), jars = tested["Scala"], (CONSTRAINTS / "jars.txt").read_text()
    assert scala in hudi_index_spark.SCALA
    assert tested["Spark"] == (hudi_index_spark.SPARK,)
    bundles = re.findall(rf"hudi-spark3\.5-bundle_{re.escape(scala)}:([\d.]+)", jars)
    assert {*tested["Hudi"]} == lines_of_releases(bundles)


def test_readme_names_what_was_tested() -> None:
    told = (ROOT / "README.md").read_text().split("| | tested |")[1].split("\n\n")[0]
    for tested in (WITHOUT_SPARK, *WITH_SPARK):
        for part in ("Python", "Java", "Spark", "Scala", "Hudi", "glibc", "processor"):
            for version in tested.get(part, ()):
                assert re.search(rf"(?<![\d.]){re.escape(version)}(?!\.?\d)", told), (part, version)


@pytest.mark.parametrize(
    ("part", "version", "is_tested"),
    [
        ("Java", "17.0.19", True),
        ("Java", "25", True),
        ("Java", "21.0.2", False),
        ("Java", "170.0.1", False),
        ("pyarrow", "26.9.0", True),
        ("pyarrow", "27.0.0", False),
        ("pyarrow", "26.1.0.dev7", False),
        ("Python", "3.14.0", True),
        ("Python", "3.1.4", False),
        ("glibc", "2.35", False),
        ("glibc", "2.36", True),
        ("glibc", "2.40", True),
        ("glibc", "2.44", False),
        ("glibc", "none", False),
        ("processor", "aarch64", False),
    ],
)
def test_a_line_of_releases_stands_for_its_releases(
    part: str, version: str, is_tested: bool
) -> None:
    assert untested({part: version}, WITHOUT_SPARK) == (
        {} if is_tested else {part: WITHOUT_SPARK[part]}
    )


def test_the_nearest_combination_is_compared(caplog: pytest.LogCaptureFixture) -> None:
    name_untested({"Spark": "3.5.9", "Scala": "2.12.18", "Hudi": "1.2.0"}, *WITH_SPARK)
    assert not caplog.messages
    name_untested({"Spark": "3.5.9", "Scala": "2.13.8", "Hudi": "1.2.0"}, *WITH_SPARK)
    assert caplog.messages == [
        "COMBINATION_UNTESTED: Not tested: Hudi 1.2.0 (tested: 1.1), together with Spark 3.5.9, "
        "Scala 2.13.8. They are used. If something fails, try the tested versions."
    ]


def test_a_process_names_once_what_was_not_tested(
    golden: Golden,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    table = golden("messages_of_users").put(tmp_path / "messages")
    monkeypatch.setattr("pyarrow.__version__", "127.0.0")
    for _ in range(2):
        open_table(table).close()
    (line,) = (each for each in caplog.records if "127.0.0" in each.message)
    assert line.levelno == logging.WARNING
    assert "COMBINATION_UNTESTED: Not tested: pyarrow 127.0.0 (tested: 26)" in line.message
    assert f"together with Python {sys.version_info[0]}.{sys.version_info[1]}." in line.message


def test_nothing_is_named_where_all_was_tested(golden: Golden, tmp_path: Path) -> None:
    """Of what these tests may rely on: other machines have another C library."""
    done = ended(OPENED, golden("messages_of_users").put(tmp_path / "messages"))
    assert done.returncode == 0, done.stderr
    assert re.findall(r"(?:Python|pyarrow|Java) [\d.]+ \(tested", done.stderr) == []
