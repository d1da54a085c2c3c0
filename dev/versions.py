"""Which versions the tests run on, and the page that says so, from what ran.

``pytest -m "" --record-versions`` writes `RECORDS`: for each version the commit whose tests passed
on it, and how many did. `CELLS` says which tests those are.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby

from dev.jars import PINS, pinned
from dev.paths import CONSTRAINTS, ROOT
from dev.wheels import OTHER_PYTHONS

RECORDS = ROOT / "docs" / "versions.json"
OWN_PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
RAN, COMPILED, NOT_RUN = "ran", "compiled", "not run"
BY_HAND, COMPILED_BY_HAND = f"{RAN} by hand", f"{COMPILED} by hand"


@dataclass(frozen=True)
class Cell:
    """A version of something that the project runs on or beside.

    Attributes:
        of: What the version is of, such as "Python".
        version: Such as "3.13".
        part: What of the project it is about. Of a version that nothing runs on: why not.
        tests: The file or folder of the tests that run on it, or compile for it; "" if none do.
        naming: What is in the names of those tests, their parameters included.
        run: The run of pytest that they belong to, such as "java 25"; "" is the main one.
        outcome: What it shows that the tests pass, or without tests, what is known.
        commit: Without tests, the commit that was run by hand.
    """

    of: str
    version: str
    part: str
    tests: str = ""
    naming: str = ""
    run: str = ""
    outcome: str = RAN
    commit: str = ""

    @property
    def name(self) -> str:
        """Its key in the records."""
        return f"{self.of} {self.version}"

    def is_of(self, nodeid: str, run: str) -> bool:
        """Whether a test of a run of pytest is one of its tests."""
        file, _, test = nodeid.partition("::")
        among = file == self.tests or file.startswith(f"{self.tests}/")
        return bool(self.tests) and run == self.run and among and self.naming in test


@dataclass(frozen=True)
class Record:
    """What ran on a version.

    Attributes:
        commit: The commit, shortened.
        tests: How many tests passed; none failed.
    """

    commit: str
    tests: int


class Unrecorded(Exception):
    """A version whose tests have not been run, or not all passed."""


def _pythons() -> Iterator[Cell]:
    way_in = "tests/setup/test_way_in.py"
    part = "wheels alone: install, doctor, build, query, drop"
    for version in (OWN_PYTHON, *OTHER_PYTHONS):
        parameter = "own" if version == OWN_PYTHON else version
        then = "; without Spark" if version == "3.14" else ", demo"
        yield Cell("Python", version, f"{part}{then}", way_in, f"[{parameter}")


def _hudi() -> Iterator[Cell]:
    for jar in sorted(pinned(PINS), key=lambda each: each.version):
        if jar.artifact.endswith("-bundle_2.12"):
            part = "tables that it wrote, in every state of their timeline"
            yield Cell("Hudi", jar.version, part, "tests/versions", f"[{jar.version}")


def _spark() -> Iterator[Cell]:
    rule = "tests/spark_rule"
    yield Cell("Spark", "3.5, Scala 2.12", "queries, statements, writes", rule)
    yield Cell(
        "Spark", "3.5, Scala 2.13", "queries, statements, DataFrame writes", rule, run="scala 2.13"
    )
    part = "the rule compiled, with a class in place of Hudi's list of files"
    for pin in (CONSTRAINTS / "spark-4.txt").read_text().split():
        version = pin.partition("==")[2].rpartition(".")[0]
        yield Cell("Spark", version, part, "tests/spark_4", f"[{version}", outcome=COMPILED)
    yield Cell("Spark", "4 with Hudi", "no bundle is at hand", outcome=NOT_RUN)


def _rest() -> Iterator[Cell]:
    yield Cell("Java", "17", "every index type", "tests/index")
    yield Cell("Java", "21", "look-ups, without Spark", outcome=BY_HAND, commit="366efec5")
    yield Cell("Java", "25", "lucene and btree, without Spark", "tests/index", run="java 25")
    yield Cell("Airflow", "3", "the DAG and the sensor", "tests/airflow")
    yield Cell("HBase", "2", "the index type hbase", "tests/hbase")
    yield Cell("HDFS", "3", "tables in it, with Kerberos too", "tests/hdfs")
    test = "test_released_row_reader_runs_on_older_linux"
    part = "the row reader, by the symbols that it needs"
    yield Cell(
        "Linux", "x86_64, glibc 2.28", part, "tests/setup/test_wheels.py", test, "", COMPILED
    )
    part, commit = "the row reader of `make wheels` under qemu: reads rows", "6e84327a"
    yield Cell("Linux", "aarch64, glibc 2.28", part, outcome=BY_HAND, commit=commit)
    part = "Lucene, against Debian's Python and JDK"
    yield Cell("Linux", "aarch64", part, outcome=COMPILED_BY_HAND, commit=commit)


CELLS = (*_pythons(), *_spark(), *_hudi(), *_rest())


def records() -> dict[str, Record]:
    """The name of a cell → what ran on it."""
    return {name: Record(**each) for name, each in json.loads(RECORDS.read_text()).items()}


def recorded(
    before: Mapping[str, Record], commit: str, run: str, outcomes: Mapping[str, bool]
) -> dict[str, Record]:
    """The records after a run of pytest.

    Args:
        before: Those before it.
        commit: The commit that it ran.
        run: Which run it was.
        outcomes: Id of each test that ran → whether it passed. A cell with a test that failed has
            no record any more.
    """
    after = dict(before)
    for cell in CELLS:
        of_cell = [passed for nodeid, passed in outcomes.items() if cell.is_of(nodeid, run)]
        if of_cell:
            after.pop(cell.name, None)
        if of_cell and all(of_cell):
            after[cell.name] = Record(commit, len(of_cell))
    return after


def write(after: Mapping[str, Record]) -> None:
    """Writes the records."""
    lines = {name: vars(after[name]) for name in sorted(after)}
    RECORDS.write_text(json.dumps(lines, indent=1) + "\n")


def commit_of_checkout() -> str:
    """The commit that is checked out, shortened.

    Raises:
        Unrecorded: a file differs from it.
    """
    changed = _git("status", "--porcelain", "--", ".", f":!{RECORDS.relative_to(ROOT)}")
    if changed:
        raise Unrecorded(f"commit first: what runs is not the commit\n{changed}")
    return _git("rev-parse", "--short=8", "HEAD").strip()


def _git(*arguments: str) -> str:
    command = ["git", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def page(cells: Iterable[Cell] = CELLS, ran: Mapping[str, Record] | None = None) -> str:
    """The page of versions, in Markdown.

    Raises:
        Unrecorded: a version of which it says that tests ran has no record.
    """
    ran = records() if ran is None else ran
    lines = [
        "# Versions",
        "",
        "What the tests ran on. A commit is the last one whose tests were recorded there; the",
        "tests of some rows are shared out over three runs, of which a row counts one.",
    ]
    for of, each in groupby(cells, lambda cell: cell.of):
        heads = "| version | what | state | tests | commit |"
        lines += ["", f"## {of}", "", heads, "|---" * 5 + "|"]
        lines += [f"| {cell.version} | {cell.part} | {_state(cell, ran)} |" for cell in each]
    return "\n".join([*lines, ""])


def _state(cell: Cell, ran: Mapping[str, Record]) -> str:
    if not cell.tests:
        return f"{cell.outcome} | | {cell.commit}"
    if cell.name not in ran:
        option = f"--{cell.run} " if cell.run else ""
        raise Unrecorded(
            f"{cell.name} has no record: commit, then run "
            f"pytest -m '' {option}--record-versions {cell.tests}"
        )
    return f"{cell.outcome} | {ran[cell.name].tests} | {ran[cell.name].commit}"
