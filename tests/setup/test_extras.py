"""The extras of the package fit together: each alone and every pair. Nothing is installed: the
metadata of what is installed here says what each distribution requires. And programs outside the
package, mostly used by slow tests and benchmarks, can be imported."""

import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, requires, version
from itertools import combinations
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from tests.programs import ended

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS: Mapping[str, list[str]] = PROJECT["optional-dependencies"]
USERS = [name for name in EXTRAS if name not in ("dev", "docs")]
PAIRS = [*((name,) for name in USERS), *combinations(USERS, 2)]

# What the package refuses or cannot work with, whoever brings it.
REFUSED = {"pyspark": "4.0.0", "apache-airflow-providers-apache-spark": "6.0.0"}


@pytest.mark.parametrize("extras", PAIRS, ids=",".join)
def test_an_extra_alone_or_with_another_brings_nothing_that_is_refused(
    extras: tuple[str, ...],
) -> None:
    for name, ranges in required_by(extras).items():
        if name in REFUSED:
            assert not ranges.contains(REFUSED[name]), f"{extras}: {name}{ranges}"
        installed = version_of(name)
        if installed is not None:
            assert ranges.contains(installed, prereleases=True), f"{extras}: {name}{ranges}"


def test_pandas_on_spark_imports_as_the_guide_to_spark_says() -> None:
    done = ended("import pyspark.pandas")
    assert (done.returncode == 0) == (version("pandas") < "3"), done.stderr


def required_by(extras: tuple[str, ...]) -> dict[str, SpecifierSet]:
    """The ranges of all distributions that the package with these extras requires, directly or by
    others."""
    ranges: defaultdict[str, SpecifierSet] = defaultdict(SpecifierSet)
    todo = [*map(Requirement, PROJECT["dependencies"])]
    todo += [Requirement(each) for extra in extras for each in EXTRAS[extra]]
    seen: set[tuple[str, str]] = set()
    while todo:
        each = todo.pop()
        name = canonicalize_name(each.name)
        if each.marker is not None and not each.marker.evaluate({"extra": ""}):
            continue
        if name != PROJECT["name"]:
            ranges[name] &= each.specifier
        for extra in ("", *sorted(each.extras)):
            if (name, extra) not in seen:
                seen.add((name, extra))
                todo += brought_by(name, extra)
    return ranges


def brought_by(name: str, extra: str) -> Iterator[Requirement]:
    """What a distribution requires, with one of its extras; "" for none."""
    if name == PROJECT["name"]:
        yield from map(Requirement, EXTRAS.get(extra, ()))
        return
    for each in metadata_of(name):
        if each.marker is None or each.marker.evaluate({"extra": extra}):
            plain = Requirement(str(each))
            plain.marker = None
            yield plain


@cache
def metadata_of(name: str) -> tuple[Requirement, ...]:
    try:
        return tuple(map(Requirement, requires(name) or ()))
    except PackageNotFoundError:
        return ()


@cache
def version_of(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


MODULES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for folder in ("tests", "benchmarks", "dev")
    for path in (ROOT / folder).rglob("*.py")
    if not path.name.startswith(("test_", "conftest", "__main__", "bench_lance"))  # not installed
)


@pytest.mark.parametrize("name", MODULES)
def test_module_can_be_imported(name: str) -> None:
    import_module(name.removesuffix(".__init__"))
