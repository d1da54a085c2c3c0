"""What was tested together: the versions with which the tests run. Others are used all the same; a
process names them once, in its log."""

import logging
import os
import re
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from threading import Lock

import pyarrow as pa

from hudi_index_service.errors import CombinationUntested

log = logging.getLogger(__name__)

Combination = Mapping[str, tuple[str, ...]]
"""Part → its tested versions, the oldest first: "3.5" is a line of releases, and stands for all
of it. A combination takes one version of each part."""

WITHOUT_SPARK: Combination = {
    "Python": ("3.11", "3.12", "3.13", "3.14"),
    "pyarrow": ("26",),
    "Lucene": ("9.12",),
    "Java": ("17", "25"),
    "glibc": ("2.36", "2.43"),
    "processor": ("x86_64",),
}
"""Reading, and building in threads. Java is Lucene's."""

WITH_SPARK: tuple[Combination, ...] = (
    {
        "Spark": ("3.5",),
        "Scala": ("2.12",),
        "Java": ("17",),
        "Python": ("3.11", "3.12", "3.13"),
        "Hudi": ("0.15", "1.0", "1.1", "1.2"),
    },
    {
        "Spark": ("3.5",),
        "Scala": ("2.13",),
        "Java": ("17",),
        "Python": ("3.11",),
        "Hudi": ("1.1",),
    },
)
"""What runs in a Spark session. Hudi is its bundle."""

_LATER_RUNS_EARLIER = {"glibc"}
"""Whatever lies between their tested versions counts as tested."""

_naming = Lock()
_named: set[tuple[str, str]] = set()


def version_of(distribution: str) -> str | None:
    """The version of an installed distribution; None if it is not installed."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def own_python() -> str:
    """The version of this Python, such as "3.11.9"."""
    return ".".join(map(str, sys.version_info[:3]))


def versions_here() -> dict[str, str]:
    """Part → version, of this process. Java is known where it starts."""
    return {
        "Python": own_python(),
        "pyarrow": pa.__version__,
        "glibc": _c_library(),
        "processor": os.uname().machine,
    }


def name_untested(found: Mapping[str, str], *combinations: Combination) -> None:
    """Logs one line, a warning with a code, if these versions were not tested together. What a
    process has named is not named again.

    Args:
        found: Part → version, such as "3.5.9".
        combinations: What was tested. The nearest one is compared.
    """
    differences = [untested(found, each) for each in combinations]
    nearest = min(differences, key=lambda each: (len(each), [part in each for part in found]))
    with _naming:
        new = {part: each for part, each in nearest.items() if (part, found[part]) not in _named}
        _named.update((part, found[part]) for part in new)
    if new:
        log.warning("%s", CombinationUntested(described(found, new)))


def untested(found: Mapping[str, str], combination: Combination) -> Combination:
    """Those of the parts whose versions were not tested, with the versions that were."""
    return {
        part: combination[part]
        for part, version in found.items()
        if not _is_tested(part, version, combination[part])
    }


def described(found: Mapping[str, str], unlike: Combination) -> str:
    """A sentence on what was not tested, and what it was not tested with."""
    parts = [f"{part} {found[part]} (tested: {', '.join(each)})" for part, each in unlike.items()]
    others = [f"{part} {version}" for part, version in found.items() if part not in unlike]
    together = f", together with {', '.join(others)}" if others else ""
    return f"Not tested: {', '.join(parts)}{together}."


def _is_tested(part: str, version: str, tested: tuple[str, ...]) -> bool:
    """Releases alone count: what a vendor has changed ("3.5.1-amzn-0") may differ."""
    if re.fullmatch(r"\d+(\.\d+)*", version) is None:
        return version in tested
    if part in _LATER_RUNS_EARLIER:
        return _numbers(tested[0]) <= _numbers(version) <= _numbers(tested[-1])
    return any(f"{version}.".startswith(f"{each}.") for each in tested)


def _numbers(version: str) -> list[int]:
    return [int(each) for each in version.split(".")]


def _c_library() -> str:
    """The version of the GNU C library; of another one, that it is another."""
    name = "CS_GNU_LIBC_VERSION"
    known = os.confstr(name) if name in os.confstr_names else None
    return known.removeprefix("glibc ") if known else "none"
