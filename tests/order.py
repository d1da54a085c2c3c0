"""Which tests of a run stay together in one process, and which begin first.

`tests/seconds.json` holds the seconds that each file took in the last recorded run, and those of
single tests of ten seconds or more. ``pytest -m "" --record-seconds`` writes it anew.
"""

import json
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parent.parent
RECORDED = ROOT / "tests" / "seconds.json"

TOGETHER = (
    "tests/cluster",
    "tests/hbase",
    "tests/hdfs",
    "tests/tpch",
)
"""Folders whose tests share a server, or tables that take long to index."""

RELEASES = "tests/versions"
"""Its tests share the tables of a Hudi release, which are written on first use."""

SHARED_OUT_BY_TEST = (
    "tests/faults/test_intruders.py",
    "tests/faults/test_kills.py",
    "tests/faults/test_schedules.py",
    "tests/faults/test_single_faults.py",
    "tests/faults/test_where_texts.py",
    "tests/golden/test_golden_tables.py",
    "tests/proof/test_proof.py",
    "tests/setup/test_way_in.py",
)
"""Long files whose tests need nothing that is made once a file: they are shared out by test."""

RECORDED_ALONE = 10
"""The seconds from which on a test is recorded by itself, too."""

UNKNOWN = 30
"""What a new file may take, in seconds: it does not begin last."""


Seconds = dict[str, dict[str, float]]
"""``fast``, ``slow``: path of a file, relative to the root → seconds of its fast, its slow tests.
``tests``: id of a test → its seconds."""


def scope_of(nodeid: str, *, fast: bool) -> str:
    """The name of the group of tests that run in one process, one after the other.

    Args:
        nodeid: A test's id, such as ``tests/cli/test_cli.py::test_help``.
        fast: Whether only fast tests run. Those that need Spark then share one session.
    """
    file = nodeid.partition("::")[0]
    if fast:
        return "spark" if "pytest.mark.fast" in _text(file) else file
    folder = str(PurePosixPath(*PurePosixPath(file).parts[:2]))
    if folder in TOGETHER:
        return folder
    if folder == RELEASES:
        releases = _releases()
        return f"{folder} {next((each for each in releases if f'[{each}' in nodeid), releases[0])}"
    return nodeid if file in SHARED_OUT_BY_TEST else file


def seconds_of(scope: str, *, fast: bool) -> float:
    """What a scope took in the last recorded run, in seconds."""
    if scope in recorded()["tests"]:
        return recorded()["tests"][scope]
    if "::" in scope:
        return RECORDED_ALONE / 2 if scope.partition("::")[0] in recorded()["slow"] else UNKNOWN
    if scope.endswith(".py"):
        return _of_file(scope, fast=fast)
    # A server, a release, all of Spark's fast tests: long, in whatever order.
    return sum(recorded()["fast"].values())


def longest_first(nodeids: list[str], *, fast: bool) -> list[int]:
    """The positions of the tests in the order in which they shall run: the scopes that took
    longest first; in each scope, the order given."""
    scopes = [scope_of(nodeid, fast=fast) for nodeid in nodeids]
    seconds = {scope: seconds_of(scope, fast=fast) for scope in set(scopes)}
    return sorted(range(len(nodeids)), key=lambda n: (-seconds[scopes[n]], scopes[n], n))


@cache
def recorded() -> Seconds:
    """The seconds of the last recorded run."""
    seconds: Seconds = json.loads(RECORDED.read_text())
    return seconds


def record(fast: Mapping[str, float], slow: Mapping[str, float]) -> None:
    """Writes what tests took. Files that did not run keep their seconds, unless they are gone.

    Args:
        fast, slow: Id of a test → seconds.
    """
    ran = {"fast": _by_file(fast), "slow": _by_file(slow)}
    files = {tier: _kept(recorded()[tier], seconds) for tier, seconds in ran.items()}
    alone = {
        nodeid: round(seconds, 1)
        for nodeid, seconds in {**fast, **slow}.items()
        if seconds >= RECORDED_ALONE
    }
    earlier = {
        nodeid: seconds
        for nodeid, seconds in recorded()["tests"].items()
        if nodeid not in fast and nodeid not in slow
    }
    RECORDED.write_text(
        json.dumps(files | {"tests": _kept(earlier, alone)}, indent=1, sort_keys=True) + "\n"
    )


def _kept(earlier: Mapping[str, float], now: Mapping[str, float]) -> dict[str, float]:
    return {
        each: seconds
        for each, seconds in {**earlier, **now}.items()
        if (ROOT / each.partition("::")[0]).exists()
    }


def _by_file(tests: Mapping[str, float]) -> dict[str, float]:
    seconds: dict[str, float] = defaultdict(float)
    for nodeid, each in tests.items():
        seconds[nodeid.partition("::")[0]] += each
    return {file: round(each, 1) for file, each in seconds.items()}


def _of_file(file: str, *, fast: bool) -> float:
    known = recorded()
    seconds = [known[tier][file] for tier in ("fast", "slow") if file in known[tier]]
    if not seconds:
        return UNKNOWN
    return known["fast"].get(file, 0) if fast else sum(seconds)


def _releases() -> tuple[str, ...]:
    from tests.versions.written import TABLE_VERSIONS

    return tuple(TABLE_VERSIONS)


@cache
def _text(file: str) -> str:
    return (ROOT / file).read_text()
