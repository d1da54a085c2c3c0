"""Names on the pages exist: commands, files, settings, error codes, make targets."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer.main

from hudi_index_service import IndexedTable, errors
from hudi_index_service.cli import app
from hudi_index_service.config import Settings
from hudi_index_service.hudi.gate import KNOWN_MERGES, KNOWN_VALUES
from hudi_index_service.read.scan import Scan
from tests.docs.markdown import PAGES, ROOT

pages = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


def matches(pattern: str, page: Path) -> Iterator[str]:
    """The first group of each match in the page."""
    return (match[1] for match in re.finditer(pattern, page.read_text(), re.MULTILINE))


@pages
def test_commands_exist(page: Path) -> None:
    known = typer.main.get_command(app).commands  # type: ignore[attr-defined]

    for name in matches(r"hudi-index ([a-z][a-z-]*)", page):
        assert name in known


@pages
def test_make_targets_exist(page: Path) -> None:
    known = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))

    for name in matches(r"(?:^ +|`)make (?:INSTALLER=pip )?([a-z-]+)", page):
        assert name in known


@pages
def test_links_to_files_exist(page: Path) -> None:
    for target in matches(r"\]\((?!https?:)([^)#]+)\)", page):
        assert (page.parent / target).exists(), target


@pages
def test_files_exist(page: Path) -> None:
    # Paths below the project's root, or relative to the package.
    places = (ROOT, ROOT / "hudi_index_service")

    for name in matches(r"`([\w./-]+/(?:[\w-]+\.(?:py|md|yaml|properties|txt))?)`", page):
        if not name.startswith((".hoodie", "_service")):
            assert any((place / name).exists() for place in places), name


@pages
def test_modules_exist(page: Path) -> None:
    package = ROOT / "hudi_index_service"
    known = {path.name for path in (*package.rglob("*.py"), *(ROOT / "native").rglob("*.java"))}

    for name in matches(r"`(\w+\.(?:py|java))`", page):
        assert name in known


ROOMS = (ROOT / "docs" / "design.md").read_text().split("## Rooms")[1].split("\n## ")[0]


def test_design_names_every_folder_and_top_level_module() -> None:
    package = ROOT / "hudi_index_service"
    folders = {f"{path.parent.relative_to(package)}/" for path in package.glob("*/**/__init__.py")}
    modules = {path.name for path in package.glob("[!_]*.py")}
    assert folders | modules <= set(re.findall(r"`([\w./]+)`", ROOMS))


def test_design_names_rooms_by_layer() -> None:
    """A room comes before those that it may use by import-linter's contract."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (rooms,) = (each for each in settings["contracts"] if each["id"] == "rooms")
    layer = {
        name.strip(): place
        for place, names in enumerate(rooms["layers"])
        for name in names.split("|")
    }

    first = re.findall(r"\*\*`(\w+)(?:/|\.py)`\*\*", ROOMS)
    assert sorted(first) == sorted(layer)
    places = [layer[name] for name in first]
    assert places == sorted(places)


def test_design_stays_short() -> None:
    lines = (ROOT / "docs" / "design.md").read_text().splitlines()
    assert len(lines) <= 300
    assert max(map(len, lines)) <= 120


@pages
def test_settings_exist(page: Path) -> None:
    sections = "|".join(Settings.model_fields)
    variables = [
        tuple(name.lower().split("__")) for name in matches(r"HUDI_INDEX_([A-Z]+__[A-Z_]+)", page)
    ]
    dotted = [tuple(name.split(".")) for name in matches(rf"`((?:{sections})\.[a-z_]+)\b", page)]

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
    words = set(matches(r"`(?!HUDI_INDEX_)([A-Z]+(?:_[A-Z]+)+)`", page))

    others = {
        "JAVA_HOME",
        "SPARK_HOME",
        "YARN_CONF_DIR",
        "PYTEST_ARGS",
        "FORMAT_MINOR",
        "SSL_CERT_FILE",
    }
    others |= {f"HADOOP_{each}" for each in ("CONF_DIR", "USER_NAME", "TOKEN_FILE_LOCATION")}
    others |= {"NO_INDEX"}  # a hint
    of_hudi = {
        value for each in (*KNOWN_VALUES.values(), *KNOWN_MERGES.values()) for value in each.values
    }
    assert words - known <= others | of_hudi


def test_methods_in_the_design_exist_and_later_ones_do_not() -> None:
    design = ROOT / "docs" / "design.md"
    section = design.read_text().split("## Façade")[1].split("\n## ")[0]
    present, _, later = section.partition("*Later*")

    table, scan = present.split("A `Scan` offers")
    for name in re.findall(r"`([a-z_]+)`", table):
        assert hasattr(IndexedTable, name), name
    for name in re.findall(r"`([a-z_]+)`", scan.split(". ")[0]):
        assert hasattr(Scan, name), name
    public = {each for each in dir(IndexedTable) if callable(getattr(IndexedTable, each))}
    missing = {each for each in public if not each.startswith("_")} - set(
        re.findall(r"`([a-z_]+)`", table)
    )
    assert missing <= {"close", "schema"}
    for name in re.findall(r"`(\w+)`", later):
        assert not hasattr(IndexedTable, name), f"{name} exists now: update the page"
    for name in re.findall(r"`Scan\.(\w+)`", later):
        assert not hasattr(Scan, name), f"{name} exists now: update the page"


def test_methods_in_the_readme_exist() -> None:
    readme = ROOT / "README.md"

    for name in matches(r"`IndexedTable\.(\w+)`", readme):
        assert hasattr(IndexedTable, name), name
    for name in matches(r"`Scan\.(\w+)`", readme):
        assert hasattr(Scan, name), name


def test_readme_stays_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) < 200
