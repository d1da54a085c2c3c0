"""Which slow tests a landing runs: what is long because it repeats one question many times is
shared out over three landings.

`.ci/turn` holds a number, which each landing raises by one (``make turn``). It picks the third.
"""

import sys
import zlib
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path

from tests.order import ROOT, scope_of

TURN = ROOT / ".ci" / "turn"
SHARES = 3

SHARED_OUT = (
    "tests/airflow/*",
    "tests/faults/*",
    "tests/golden/*",
    "tests/hbase/*",
    "tests/hdfs/*",
    "tests/oracle/*",
    "tests/proof/*",
    "tests/setup/*",
    "tests/versions/*",
)
"""Of these files' slow tests, each landing runs a third of what runs in one process."""

SHARED_OUT_BY_TEST = (
    "tests/cluster/*",
    "tests/engines/*",
    "tests/spark_4/*",
    "tests/spark_rule/test_generated.py",
    "tests/spark_rule/test_partition_values.py",
    "tests/spark_rule/test_writes.py",
    "tests/tpch/*",
)
"""Of these, a third of each file's tests."""

SPARK_RULE = ROOT / "tests" / "spark_rule"
"""Its files, fast tests and slow ones, run with Scala 2.13, too, by a command of their own."""
INDEX = ROOT / "tests" / "index"
"""Likewise, the fast ones run with the latest JDK."""


def runs(nodeid: str) -> bool:
    """Whether this landing runs a slow test."""
    return not _is_among(nodeid, (*SHARED_OUT, *SHARED_OUT_BY_TEST)) or _is_of_this_turn(nodeid)


def turn() -> int:
    """The number of this landing."""
    return int(TURN.read_text())


def share_of(nodeid: str) -> int:
    """The share, from 0 on, to which a test belongs."""
    by_test = _is_among(nodeid, SHARED_OUT_BY_TEST)
    return zlib.crc32((nodeid if by_test else scope_of(nodeid, fast=False)).encode()) % SHARES


def _is_of_this_turn(nodeid: str) -> bool:
    return share_of(nodeid) == turn() % SHARES


def _is_among(nodeid: str, patterns: Iterable[str]) -> bool:
    file = nodeid.partition("::")[0]
    return any(fnmatchcase(file, pattern) for pattern in patterns)


def options() -> list[str]:
    """Pytest's options for this landing: one in three measures coverage, too."""
    measured = ["--cov", "--cov-report=term"] if turn() % SHARES == 0 else []
    return ["--turn", *measured]


def on_scala_2_13() -> list[str]:
    """The files of `SPARK_RULE` that this landing runs with Scala 2.13."""
    return _share_of_files(SPARK_RULE)


def on_java_25() -> list[str]:
    """The files of `INDEX` that this landing runs with JDK 25."""
    return _share_of_files(INDEX)


def _share_of_files(folder: Path) -> list[str]:
    files = [str(each.relative_to(ROOT)) for each in sorted(folder.rglob("test_*.py"))]
    return [each for each in files if zlib.crc32(each.encode()) % SHARES == turn() % SHARES]


def main() -> None:
    """``raise`` raises the turn; ``options`` prints pytest's options for it; ``scala-2.13`` and
    ``java-25`` print those of its runs with these versions."""
    (command,) = sys.argv[1:]
    if command == "raise":
        TURN.write_text(f"{turn() + 1}\n")
        print(f"This is landing {turn()}: commit .ci/turn with it.")
    elif command == "scala-2.13":
        print("--scala", "2.13", *on_scala_2_13())
    elif command == "java-25":
        print("--java", "25", *on_java_25())
    else:
        print(*options())


if __name__ == "__main__":
    main()
