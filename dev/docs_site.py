"""Pages of the docs site that are made when it is built: `make docs` (mkdocs.yml names this file).

The home page, security, benchmarks and changes are the project's own Markdown files; the references
of the command line and of the settings are made from the code.
"""

import inspect
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dev import versions
from dev.paths import ROOT

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page
    from pydantic import BaseModel

OWN_FILES = {
    "index.md": "README.md",
    "security.md": "SECURITY.md",
    "benchmarks.md": "benchmarks/README.md",
    "changes.md": "CHANGELOG.md",
}
"""Page → the file that it shows."""

_LINK = re.compile(r"(?P<start>!?\[(?P<text>[^\]]*)\]\()(?P<target>[^)\s]+)\)")
_MARKED_FENCE = re.compile(r"^( *```\w+) .+$", re.MULTILINE)
_DOCUMENTED = re.compile(r"(?P<names>[a-z_]+(?:, [a-z_]+)*): (?P<text>.*)", re.DOTALL)


def on_files(files: "Files", config: "MkDocsConfig") -> "Files":
    """Adds the pages. Called by MkDocs."""
    from mkdocs.structure.files import File

    for path, content in pages().items():
        files.append(File.generated(config, path, content=content))
    return files


def on_page_markdown(markdown: str, page: "Page", **_: object) -> str:
    """Leads links to the project's files to their pages, and leaves the language alone of what
    stands after the marks of a block of code. Called by MkDocs for each page."""
    name = page.file.src_uri
    text = relinked(markdown, OWN_FILES.get(name, f"docs/{name}"), name)
    return _MARKED_FENCE.sub(r"\1", text)


def pages() -> dict[str, str]:
    """Path in docs/ → Markdown of each page that is made here."""
    own = {page: (ROOT / source).read_text() for page, source in OWN_FILES.items()}
    return own | {path: made() for path, made in MADE.items()}


def relinked(text: str, source: str, page: str) -> str:
    """Markdown with links that lead to pages of the site. What is not on the site is named only.

    Args:
        source: The file that the text is from, relative to the project.
        page: The page that shows it, relative to docs/.
    """
    shown = {file: name for name, file in OWN_FILES.items()}

    def linked(match: re.Match[str]) -> str:
        path, _, anchor = match["target"].partition("#")
        if "://" in path or not path:
            return match[0]
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        target = shown.get(target, target.removeprefix("docs/"))
        if not (target in shown.values() or (ROOT / "docs" / target).exists() or target in MADE):
            return match["text"]
        place = posixpath.relpath(target, posixpath.dirname(page) or ".")
        return f"{match['start']}{place}{'#' + anchor if anchor else ''})"

    return _LINK.sub(linked, text)


def command_line() -> str:
    """The reference of the commands, from their own help."""
    import typer
    from typer.cli import get_docs_for_click

    from hudi_index_service.cli import app

    command: Any = typer.main.get_command(app)
    shown = {name: each for name, each in command.commands.items() if not each.hidden}
    command.commands = shown
    context = typer.Context(command, info_name="hudi-index")
    text = get_docs_for_click(obj=command, ctx=context, name="hudi-index", title="Command line")
    groups = [each.commands for each in shown.values() if hasattr(each, "commands")]
    below = [pair for commands in groups for pair in commands.items()]
    for name, each in [*shown.items(), *below]:  # Typer cuts the summaries for a terminal
        cut = f"* `{name}`: {each.get_short_help_str()}\n"
        assert cut in text, name
        text = text.replace(cut, f"* `{name}`: {_summary(each.help or '')}\n", 1)
    return re.sub(r"\n{3,}", "\n\n", text)  # Typer writes more empty lines than needed


def _summary(text: str) -> str:
    """The first sentence of a command's help."""
    paragraph = " ".join(text.split("\n\n")[0].split())
    return re.split(r"(?<=\.) |; ", paragraph)[0].rstrip(".") + "."


def settings() -> str:
    """The reference of the settings, from the models and their docstrings."""
    from hudi_index_service.config import Settings

    lines = [
        "# Settings",
        "",
        "From arguments, environment, a YAML file and defaults; the first that gives a value wins.",
        "The variable of `read.enabled` is `HUDI_INDEX_READ__ENABLED`, and so on;",
        "`HUDI_INDEX_CONFIG` names a YAML file with the same sections, as `configs/service.yaml`.",
        "",
    ]
    single = {
        name: field
        for name, field in Settings.model_fields.items()
        if not inspect.isclass(field.annotation) or not hasattr(field.annotation, "model_fields")
    }
    lines += _table(Settings, "", single)
    for name, field in Settings.model_fields.items():
        if name not in single:
            section: Any = field.annotation
            summary = (inspect.getdoc(section) or "").split("\n\n")[0]
            lines += [f"## {name}", "", summary, ""]
            lines += _table(section, f"{name}.", section.model_fields)
    return "\n".join(lines)


def error_codes() -> str:
    """The table of the errors' codes, from their classes."""
    from hudi_index_service import errors

    kinds = {
        each.code: each
        for each in vars(errors).values()
        if inspect.isclass(each) and issubclass(each, errors.IndexServiceError)
    }
    lines = [
        "# Error codes",
        "",
        "Every error has a code, a message and a remedy. Remedies of single errors may say more.",
        "",
        "| code | meaning | remedy in Python |",
        "| --- | --- | --- |",
    ]
    for code, kind in sorted(kinds.items()):
        meaning = (inspect.getdoc(kind) or "").split("\n\n")[0]
        cells = [_cell(meaning), _cell(kind.default_remedy.python)]
        lines.append(f"| `{code}` | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(text: str) -> str:
    """A text as a cell of a table, in one line."""
    return " ".join(text.split()).replace("|", "\\|")


def _table(model: "type[BaseModel]", prefix: str, fields: dict[str, Any]) -> Iterator[str]:
    if not fields:
        return
    meanings = documented(model)
    rows: dict[str, list[str]] = {}
    for name in fields:
        rows.setdefault(meanings[name], []).append(name)
    yield from ("| setting | default | meaning |", "| --- | --- | --- |")
    for meaning, names in rows.items():
        settings_shown = ", ".join(f"`{prefix}{name}`" for name in names)
        defaults = [_shown(fields[each].get_default(call_default_factory=True)) for each in names]
        yield f"| {settings_shown} | {', '.join(defaults)} | {meaning} |"
    yield ""


def documented(model: "type[BaseModel]") -> dict[str, str]:
    """Field → what the model's docstring says of it. A paragraph on several fields counts for each
    of them."""
    meanings: dict[str, str] = {}
    paragraph: list[str] = []

    def end() -> None:
        match = _DOCUMENTED.fullmatch(" ".join(paragraph))
        if match:
            text = match["text"].replace("``", "`").replace("|", "\\|")
            meanings.update(dict.fromkeys(match["names"].split(", "), text))
        paragraph.clear()

    for line in (inspect.getdoc(model) or "").splitlines():
        if not line.strip():
            end()
            continue
        begins = re.match(r"[a-z_]+(, [a-z_]+)*: ", line)
        if begins and begins[0].split(":")[0].split(", ")[0] in model.model_fields:
            end()
        paragraph.append(line.strip())
    end()
    return meanings


def _shown(default: object) -> str:
    if default is None:
        return "none"
    if isinstance(default, Path) and default.is_relative_to(Path.home()):
        return f"`~/{default.relative_to(Path.home())}`"
    if isinstance(default, (tuple, list)):
        return ", ".join(f"`{each}`" for each in default)
    return f"`{str(default).lower() if isinstance(default, bool) else default}`"


MADE = {
    "reference/command_line.md": command_line,
    "reference/settings.md": settings,
    "reference/errors.md": error_codes,
    "versions.md": versions.page,
}
"""Page → what writes it, from the code; that of versions, from what ran."""
