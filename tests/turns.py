"""Which slow tests a landing runs: what is long because it repeats one question many times is
shared out over three landings, unless the landing touches what it is about.

`.ci/turn` holds a number, which each landing raises by one (``make turn``). What has changed since
it was raised before decides what runs whole.
"""

import subprocess
import sys
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from tests.order import ROOT, scope_of

TURN = ROOT / ".ci" / "turn"
SHARES = 3

EVERYWHERE = (
    "constraints/*",
    "hudi_index_service/columns.py",
    "hudi_index_service/config.py",
    "hudi_index_service/errors.py",
    "hudi_index_service/table.py",
    "pyproject.toml",
    "tests/conftest.py",
)
"""What all tests stand on."""

HARMLESS = (
    "*.md",
    ".ci/*",
    ".editorconfig",
    ".gitignore",
    ".pre-commit-config.yaml",
    "benchmarks/*",
    "docs/*",
    "examples/*",
    "hudi_index_service/cli/*",
    "hudi_index_service/demo/*",
    "hudi_index_service/doctor/*",
    "mkdocs.yml",
    "tests/seconds.json",
)
"""What no shared-out test is about; the tests about it always run."""


@dataclass(frozen=True)
class Family:
    """Slow tests that are shared out.

    Attributes:
        tests: Patterns of their files' paths.
        about: Patterns of the paths whose change makes all of them run, beside their own.
    """

    tests: tuple[str, ...]
    about: tuple[str, ...]


FAMILIES: Mapping[str, Family] = {
    "Hudi releases": Family(
        ("tests/versions/*", "tests/golden/*"),
        ("hudi_index_service/hudi/*", "hudi_index_service/build/*", "tests/kept_tables.py"),
    ),
    "wheels": Family(
        ("tests/setup/*",),
        (
            "LICENSE",
            "Makefile",
            "NOTICE",
            "configs/*",
            "dags/*",
            "dev/*",
            "native/*",
            "plugins/*",
        ),
    ),
    "HBase": Family(
        ("tests/hbase/*",),
        (
            "dev/hbase/*",
            "hudi_index_service/build/*",
            "hudi_index_service/index/*",
            "plugins/hbase/*",
        ),
    ),
    "HDFS": Family(("tests/hdfs/*",), ("dev/hdfs/*", "hudi_index_service/storage/*")),
    "faults": Family(
        ("tests/faults/*",),
        (
            "hudi_index_service/build/*",
            "hudi_index_service/index/*",
            "hudi_index_service/maintain/*",
            "hudi_index_service/storage/*",
        ),
    ),
    "proof": Family(
        ("tests/proof/*", "tests/oracle/*"),
        (
            "hudi_index_service/index/*",
            "hudi_index_service/optimizer/*",
            "hudi_index_service/predicate/*",
            "hudi_index_service/read/*",
            "native/*",
        ),
    ),
}

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
    for path in sorted(changed):
        everywhere = matches(path, EVERYWHERE) or not matches(path, (*ALWAYS, *HARMLESS))
        for name, family in FAMILIES.items():
            if everywhere or matches(path, (*family.tests, *family.about)):
                reasons.setdefault(name, f"{path} has changed")
    return reasons


def changed_paths() -> list[str] | None:
    """The paths that have changed since the turn before this one was raised; None where git does
    not know."""
    raised = _git("log", "-2", "--format=%H", "--", str(TURN.relative_to(ROOT)))
    if raised is None or len(raised) < 2:
        return None
    return _git("diff", "--name-only", raised[1])


def turn() -> int:
    """The number of this landing."""
    return int(TURN.read_text())


def share_of(nodeid: str) -> int:
    """The share, from 0 on, to which a test belongs."""
    return zlib.crc32(scope_of(nodeid, fast=False).encode()) % SHARES


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


def main() -> None:
    """``raise`` raises the turn; ``options`` prints pytest's options for it."""
    (command,) = sys.argv[1:]
    if command == "raise":
        TURN.write_text(f"{turn() + 1}\n")
        print(f"This is landing {turn()}: commit .ci/turn with it.")
    else:
        print(*options())


if __name__ == "__main__":
    main()
