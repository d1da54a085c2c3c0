"""What the pages name is there: commands, files, settings, error codes, make targets."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer.main

from hudi_index_service import IndexedTable, errors
from hudi_index_service.cli import app
from hudi_index_service.config import Settings
from hudi_index_service.read.scan import Scan
from tests.docs.markdown import PAGES, ROOT, code_blocks

pages = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


def found(pattern: str, page: Path) -> Iterator[str]:
    """The first group of every match in the page."""
    return (match[1] for match in re.finditer(pattern, page.read_text(), re.MULTILINE))


@pages
def test_commands_exist(page: Path) -> None:
    known = typer.main.get_command(app).commands  # type: ignore[attr-defined]

    for name in found(r"hudi-index ([a-z]+)", page):
        assert name in known


@pages
def test_make_targets_exist(page: Path) -> None:
    known = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))

    for name in found(r"(?:^ +|`)make (?:INSTALLER=pip )?([a-z-]+)", page):
        assert name in known


@pages
def test_links_lead_somewhere(page: Path) -> None:
    for target in found(r"\]\((?!https?:)([^)#]+)\)", page):
        assert (page.parent / target).exists(), target


@pages
def test_files_named_exist(page: Path) -> None:
    # Paths that stand for many, or that are said to be relative to the package.
    places = (ROOT, ROOT / "hudi_index_service")

    for name in found(r"`([\w./-]+/(?:[\w-]+\.(?:py|md|yaml|properties|txt))?)`", page):
        if not name.startswith((".hoodie", "_service")):
            assert any((place / name).exists() for place in places), name


@pages
def test_modules_named_exist(page: Path) -> None:
    known = {path.name for path in (ROOT / "hudi_index_service").rglob("*.py")}

    for name in found(r"`(\w+\.py)`", page):
        assert name in known


def test_the_rooms_are_those_of_the_package() -> None:
    (block,) = (each for each in code_blocks("docs/design.md", "") if "  cli/" in each)
    ours = block.split("hudi_index_service/\n")[1].split("native/")[0]
    # In each line the rooms come first, then, after three blanks or more, what they are for.
    shown = {
        name
        for line in ours.splitlines()
        for name in re.findall(r"[a-z_]+(?:\.py|/)", re.split(r"(?<=\S) {3,}", line)[0])
    }

    package = ROOT / "hudi_index_service"
    rooms = {path.parent.name + "/" for path in package.glob("*/__init__.py")}
    modules = {path.name for path in package.glob("[!_]*.py")}
    assert shown == rooms | modules


@pages
def test_settings_named_exist(page: Path) -> None:
    sections = "|".join(Settings.model_fields)
    variables = [
        tuple(name.lower().split("__")) for name in found(r"HUDI_INDEX_([A-Z]+__[A-Z_]+)", page)
    ]
    dotted = [tuple(name.split(".")) for name in found(rf"`((?:{sections})\.[a-z_]+)\b", page)]

    for section, key in variables + dotted:
        if key != "py":  # a module of the same name
            assert key in type(getattr(Settings(), section)).model_fields, f"{section}.{key}"


@pages
def test_error_codes_exist(page: Path) -> None:
    known = {
        each.code
        for each in vars(errors).values()
        if isinstance(each, type) and issubclass(each, errors.IndexServiceError)
    }
    words = set(found(r"`(?!HUDI_INDEX_)([A-Z]+(?:_[A-Z]+)+)`", page))

    others = {"JAVA_HOME", "HADOOP_CONF_DIR", "YARN_CONF_DIR", "PYTEST_ARGS", "FORMAT_MINOR"}
    assert words - known <= others


def test_methods_named_exist_and_later_ones_do_not() -> None:
    design = ROOT / "docs" / "design.md"
    section = design.read_text().split("## The façade")[1].split("\n## ")[0]
    present, later = section.split("*Later*")

    for name in re.findall(r"t\.(\w+)\(", present):
        assert hasattr(IndexedTable, name), name
    for name in re.findall(r"[# ]\.(\w+)\b", present):
        assert hasattr(Scan, name), name
    for name in re.findall(r"`(\w+)`", later):
        assert not hasattr(IndexedTable, name), f"{name} is there now: say so"
    for name in re.findall(r"`Scan\.(\w+)`", later):
        assert not hasattr(Scan, name), f"{name} is there now: say so"


def test_methods_in_the_readme_exist() -> None:
    readme = ROOT / "README.md"

    for name in found(r"`IndexedTable\.(\w+)`", readme):
        assert hasattr(IndexedTable, name), name
    for name in found(r"`Scan\.(\w+)`", readme):
        assert hasattr(Scan, name), name


def test_the_readme_stays_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) < 160
