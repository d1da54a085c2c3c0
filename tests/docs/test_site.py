"""The docs site builds without a warning, needs nothing from elsewhere, and its references are of
the code."""

import inspect
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from pydantic import BaseModel

from dev import docs_site
from hudi_index_service import errors
from hudi_index_service.cli import app
from hudi_index_service.config import Settings
from tests.docs.markdown import ROOT
from tests.programs import ended


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site."""
    folder = tmp_path_factory.mktemp("site")
    build = ("build", "--quiet", "--strict", "--site-dir", folder)
    done = ended("mkdocs", *build, module=True, NO_MKDOCS_2_WARNING="1")
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


class _Requested(HTMLParser):
    """What a browser requests to show a page, and the text of the page."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.feed(page.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = dict(attrs)
        shown = tag in ("script", "img", "iframe", "source") or (
            tag == "link" and names.get("rel") in ("stylesheet", "icon", "preconnect")
        )
        address = names.get("src") or names.get("href") if shown else None
        if address:
            self.addresses.append(address)


def test_pages_request_nothing_from_elsewhere(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 25
    for page in pages:
        for address in _Requested(page).addresses:
            assert not address.startswith(("http:", "https:", "//")), (page.name, address)
            if not address.startswith("data:"):
                folder = site if address.startswith("/") else page.parent
                file = folder / address.split("?")[0].removeprefix("/")
                assert file.is_file(), (page.name, address)


def test_every_page_is_in_the_navigation_or_in_the_list_of_decisions(site: Path) -> None:
    home = (site / "index.html").read_text()
    decisions = (site / "decisions" / "index.html").read_text()
    for page in sorted(site.rglob("*.html")):
        name = page.relative_to(site).as_posix()
        listed = decisions if name.startswith("decisions/") and page.name != "index.html" else home
        link = page.name if listed is decisions else name
        assert name in ("404.html", "index.html") or f'href="{link}"' in listed, name


def test_titles_of_the_navigation_are_short(site: Path) -> None:
    home = (site / "index.html").read_text()
    labels = re.findall(r'<span class="md-ellipsis">\s*(.*?)\s*</span>', home, re.DOTALL)
    navigation = {re.sub("<.*?>", "", each).strip() for each in labels}
    assert {"Install", "Production", "Disk format"} <= navigation
    in_file = re.findall(r"^ +- (.+): \S+\.md$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    pages = [each for each in (ROOT / "docs").rglob("*.md") if each.parent.name != "decisions"]
    assert len(in_file) == len(pages) + 1 + 8  # the list of decisions, and those that are made
    assert all(len(each) <= 20 for each in in_file)


def test_reference_of_the_command_line_has_every_command() -> None:
    text = docs_site.command_line()
    commands = [each for each in app.registered_commands if not each.hidden]
    groups = {f"{each.name} ": each.typer_instance for each in app.registered_groups}
    below = [(name, each) for name, group in groups.items() for each in group.registered_commands]
    for before, command in [("", each) for each in commands] + below:
        assert f"## `hudi-index {before}{command.callback.__name__.replace('_', '-')}`" in text
    summaries = re.findall(r"^\* `[a-z][a-z-]*`: (.*)$", text, re.MULTILINE)
    assert len(summaries) == len(commands) + len(groups) + len(below)
    assert not [each for each in summaries if each.endswith("...")]


def test_every_setting_is_described() -> None:
    sections: list[type[BaseModel]] = [Settings]
    for each in Settings.model_fields.values():
        if inspect.isclass(each.annotation) and issubclass(each.annotation, BaseModel):
            sections.append(each.annotation)
    for section in sections:
        plain = {
            name for name, each in section.model_fields.items() if each.annotation not in sections
        }
        assert plain <= docs_site.documented(section).keys(), section.__name__
    assert "`read.enabled`" in docs_site.settings()


def test_every_error_code_is_explained() -> None:
    page = docs_site.error_codes()
    for kind in vars(errors).values():
        if inspect.isclass(kind) and issubclass(kind, errors.IndexServiceError):
            (row,) = [line for line in page.splitlines() if line.startswith(f"| `{kind.code}` |")]
            assert all(cell.strip() for cell in row.strip("|").split(" | "))


def test_links_lead_to_pages_or_to_nothing() -> None:
    text = "[a](docs/sql.md#x) [b](SECURITY.md) [c](dags/hudi_index.py) [d](https://e.org/)"

    assert docs_site.relinked(text, "README.md", "guides/p.md") == (
        "[a](../sql.md#x) [b](../security.md) c [d](https://e.org/)"
    )


def test_home_is_the_readme(site: Path) -> None:
    title = re.search(r"# (.*)", (ROOT / "README.md").read_text())
    assert title[1] in (site / "index.html").read_text()
