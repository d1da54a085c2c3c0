"""docs/supported_tables.md agrees with the code.

``python -m tests.docs.test_supported_tables`` rewrites its tables.
"""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path

from hudi_index_service.errors import NeedsSpark, TableFeatureUnsupported
from hudi_index_service.hudi.gate import (
    BOOTSTRAP,
    HARMLESS,
    KNOWN_MERGES,
    KNOWN_VALUES,
    MERGE_PROPERTY,
    ORDERING,
    Allowed,
    Refusal,
    unsupported_base_files,
    unsupported_merge,
)
from tests.docs.markdown import ROOT
from tests.partition_kinds import KINDS, REFUSED

PAGE = ROOT / "docs" / "supported_tables.md"
FROM, UNTIL = "<!-- from hudi_index_service/hudi -->\n", "<!-- until here -->\n"
PACKAGE = ROOT / "hudi_index_service"

_ERRORS = {each.__name__: each.code for each in (TableFeatureUnsupported, NeedsSpark)}
# Attributes that hold a reason until the table is read: see `OpenedTable`.
_KEPT = {"refusal", "merge_refusal", "schema_refusal"}


def test_page_is_generated_from_the_code() -> None:
    page = PAGE.read_text()
    assert page == page_with(generated(), page), (
        f"{PAGE.relative_to(ROOT)} differs from the code. Rewrite it: "
        "python -m tests.docs.test_supported_tables"
    )


def test_listed_values_pass() -> None:
    table = {"hoodie.table.type": "MERGE_ON_READ", "hoodie.table.version": "6"}
    assert unsupported_base_files(table) is None
    for key, allowed in KNOWN_VALUES.items():
        for value in allowed.values:
            reason = unsupported_base_files({**table, key: value})
            # Moreover, the layout must match the table's version.
            assert reason is None or "layout" in reason, reason
        assert unsupported_base_files({**table, key: "another"})
    for key, allowed in KNOWN_MERGES.items():
        assert all(unsupported_merge({**table, key: value}) is None for value in allowed.values)
        assert unsupported_merge({**table, key: "another"})


def test_modules_with_reasons_are_listed() -> None:
    modules = {module for _, _, module in reasons()}
    assert {"hudi/completeness.py", "hudi/hudi_rs/slice_merger.py"} <= modules


def page_with(tables: str, page: str) -> str:
    """The page with the tables between its markers replaced."""
    before, rest = page.split(FROM)
    return before + FROM + tables + UNTIL + rest.split(UNTIL)[1]


def generated() -> str:
    """All generated tables."""
    return "\n".join(
        (
            "## By property\n",
            "A table is native if each of its `hoodie.*` properties is listed here with such a "
            "value.\nAny other value leaves every query to Spark:\n",
            _values({BOOTSTRAP: Allowed(()), **KNOWN_VALUES}),
            "The timeline's layout has to be 1 for table version 6, and 2 for later ones.\n",
            "These say how log files merge. Another value leaves snapshot queries of "
            "`MERGE_ON_READ` tables to\nSpark; `COPY_ON_WRITE` tables and `read_optimized` queries "
            "stay native:\n",
            _values({**KNOWN_MERGES, MERGE_PROPERTY + "*": Allowed(())})
            + "".join(f"| `{key}` | at most one column |\n" for key in ORDERING),
            "These may have any value:\n" + _list(f"`{key}`" for key in sorted(HARMLESS)),
            "The gate says why it leaves a table to Spark in one of these sentences:\n",
            *(f"- {_shortened(each.value)}" for each in Refusal),
            "\n## By state and by file\n",
            "Checked while a snapshot is made, or a file is read.\n",
            _table(
                ("reason", "error", "raised in"),
                ((text, f"`{code}`", f"`{module}`") for text, code, module in reasons()),
            ),
            "Whatever hudi-rs itself reports as unsupported, or panics on, is left to Spark too, "
            "with hudi-rs's\nmessage as the reason.\n",
            "## Partition columns\n",
            "Spark shows the value that it reads from a partition's path, whatever the files hold; "
            "they differ in\nrecords that a global index keeps in their partition although a later "
            "version names another. So do\nqueries here:\n",
            _table(("type of the column", "value"), _values_of_partition_columns()),
        )
    )


def _values_of_partition_columns() -> Iterator[tuple[str, str]]:
    kinds = sorted(KINDS.values(), key=lambda each: each.value == REFUSED)
    for value, alike in groupby(kinds, key=lambda each: each.value):
        yield ", ".join(each.type for each in alike), value
    yield "timestamp_ntz, or another spelling of a value", REFUSED
    yield "any, in `__HIVE_DEFAULT_PARTITION__`", "NULL, also for rows written with an empty text"


def reasons() -> list[tuple[str, str, str]]:
    """The messages with which modules of ``hudi/`` leave a table or a file to Spark, each with its
    error code and module. Messages without words of their own are left out."""
    found = {
        (text, code, str(path.relative_to(PACKAGE)))
        for path in (PACKAGE / "hudi").rglob("*.py")
        for text, code in _reasons_in(ast.parse(path.read_text()))
        if len(re.findall(r"\w+", text)) > 2
    }
    return sorted(found, key=lambda each: (each[2], each))


def _reasons_in(tree: ast.AST) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id=name), args=[message, *_]) if name in _ERRORS:
                yield _shortened(_text(message)), _ERRORS[name]
            case ast.Assign(targets=[target], value=ast.JoinedStr() as message):
                if getattr(target, "attr", getattr(target, "id", "")) in _KEPT:
                    yield _shortened(_text(message)), TableFeatureUnsupported.code


def _text(message: ast.expr) -> str:
    """A message, with ``{}`` for each value filled in."""
    match message:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(map(_text, parts))
        case ast.FormattedValue(value=ast.IfExp()):  # additional words
            return ""
    return "{}"


def _shortened(text: str) -> str:
    return re.sub(r"\{.*?\}", "…", text)


def _values(properties: Mapping[str, Allowed]) -> str:
    rows = (
        (f"`{key}`", _short_names(allowed.values) or "none: the table must not have it")
        for key, allowed in properties.items()
    )
    return _table(("property", "native with"), rows)


def _short_names(values: Iterable[str]) -> str:
    """The values, with class names without their package."""
    return ", ".join(f"`{value.removeprefix('org.apache.hudi.')}`" for value in values)


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = (head, ("---",) * len(head), *rows)
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def _list(items: Iterable[str]) -> str:
    return ",\n".join(items) + ".\n"


if __name__ == "__main__":
    Path(PAGE).write_text(page_with(generated(), PAGE.read_text()))
