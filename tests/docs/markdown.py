"""Extracts code blocks and tables from the project's Markdown pages."""

import re
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

ROOT = Path(__file__).resolve().parent.parent.parent

PAGES = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    ROOT / "benchmarks" / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]

# A block in a list is indented as a whole.
_BLOCK = re.compile(
    r"^(?P<indent> *)```(?P<info>[^\n]*)\n(?P<code>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL
)


def code_blocks(page: str, info: str) -> list[str]:
    """The fenced code blocks of a page whose info string is `info`, such as ``python``."""
    text = (ROOT / page).read_text()
    found = (match for match in _BLOCK.finditer(text) if match["info"].strip() == info)
    return [dedent(match["code"]) for match in found]


def only_block(page: str, info: str, containing: str) -> str:
    """The only block of them that contains a text."""
    (found,) = (each for each in code_blocks(page, info) if containing in each)
    return found


@dataclass(frozen=True)
class FieldTable:
    """A table of fields: its section, the ``code`` at the start of the paragraph above it (or ""),
    and field → type."""

    section: str
    label: str
    fields: dict[str, str]


def field_tables(page: str) -> list[FieldTable]:
    """The tables of a page with the columns field, type and meaning."""
    tables: list[FieldTable] = []
    section, label = "", ""
    rows: dict[str, str] | None = None
    for line in (ROOT / page).read_text().splitlines():
        if line.startswith("## "):
            section, label = line.removeprefix("## "), ""
        elif line == "| field | type | meaning |":
            rows = {}
            tables.append(FieldTable(section, label, rows))
        elif line.startswith("|") and rows is not None:
            if not line.startswith("| ---"):
                field, type_, _ = (cell.strip() for cell in line.strip("|").split("|", 2))
                rows[field.strip("`")] = type_
        elif line:
            rows = None
            if match := re.match(r"`([a-z_.\[\]]+)`[:,]", line):
                label = match[1]
    return tables
