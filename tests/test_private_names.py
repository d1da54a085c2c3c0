"""Tests use public names only: what they test is then what others may use, and what is private can
change. The exceptions are listed here, with the reason."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parent

FOREIGN = {
    # PySpark's and Py4J's, for which there is no public name.
    *("_jdf", "_jvm", "_jsc", "_jsparkSession", "_gateway", "_collect_as_arrow", "_1", "_2"),
    # Public in spite of their names: named tuples, notebooks, the end of a forked process.
    *("_replace", "_fields", "_repr_html_", "_exit"),
    # The one place through which each request of boto3 goes, and Hypothesis' reading of sources.
    *("_make_api_call", "_get_local_constants"),
}
"""Private by their form, and no names of this project."""

ENGINE = "re-made with the engine"

EXCEPTIONS: dict[str, dict[str, set[str]]] = {
    ENGINE: {
        "cli/test_operating.py": {"_queries"},
        "hbase/test_with_others.py": {"_answering", "_queries"},
        "index/segments/test_exclusion.py": {"_runs"},
        "read/key_locations.py": {"_queries", "_settings"},
        "read/test_btree.py": {"_answering", "_queries"},
        "read/test_lookups_of_many.py": {"_among", "_collect_within"},
        "read/test_entry_estimates.py": {"_queries", "_start_of"},
        "read/test_explain.py": {"_binding", "_queries"},
        "read/test_faults.py": {"_queries"},
        "read/test_index_folder.py": {"_ONE_BY_ONE", "_plan"},
        "read/test_log_rows.py": {"_MOST_PAIRS", "_bytes", "_log_rows", "_most_bytes", "_queries"},
        "read/test_reader_pool.py": {"_most_bytes", "_reader"},
        "read/test_task_reports.py": {"_slices"},
    },
    "builds with the settings that the table was opened with, by an executor of the test": {
        "faults/operations.py": {"_settings"},
        "faults/test_intruders.py": {"_settings"},
    },
    "puts a daemon in the place of the process that answers a session": {
        "spark_rule/daemons.py": {"_extensions"},
    },
}
"""Reason → file → private names of this project that it patches or reads."""

_PATCHES = {
    *("setattr", "getattr", "delattr", "hasattr", "setitem", "patch", "object"),
    "recorded",  # a fixture of tests/read
}


def private_names(text: str) -> Iterator[str]:
    """The private names that a file uses of others: as attributes of anything but ``self`` and
    ``cls``, in imports, and as texts where something is patched."""
    nodes = list(ast.walk(ast.parse(text)))
    own = set(_own_names(nodes))
    for node in nodes:
        if isinstance(node, ast.Attribute) and not _is_self(node.value):
            found = {node.attr}
        elif isinstance(node, ast.ImportFrom):
            found = {alias.name for alias in node.names}
        elif isinstance(node, ast.Call) and _called(node) in _PATCHES:
            texts = [each.value for each in node.args[:2] if isinstance(each, ast.Constant)]
            found = {part for each in texts if isinstance(each, str) for part in each.split(".")}
        else:
            continue
        yield from (name for name in found - own - FOREIGN if _is_private(name))


def _own_names(nodes: list[ast.AST]) -> Iterator[str]:
    """What the file itself defines."""
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id
        elif isinstance(node, ast.Attribute) and _is_self(node.value):
            yield node.attr


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def _called(call: ast.Call) -> str:
    called = call.func
    return getattr(called, "attr", None) or getattr(called, "id", "")


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name != "_"


def test_tests_use_no_other_private_names() -> None:
    """A new one needs a public name, or an exception with its reason; an exception that is no
    longer needed goes."""
    found = {
        (path.relative_to(TESTS).as_posix(), name)
        for path in TESTS.rglob("*.py")
        for name in private_names(path.read_text())
    }
    listed = [
        (file, name)
        for files in EXCEPTIONS.values()
        for file, names in files.items()
        for name in names
    ]
    assert sorted(found - set(listed)) == [], "a new one"
    assert sorted(set(listed) - found) == [], "no longer needed"
    assert len(listed) == len(set(listed)), "listed twice"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("table._queries.planner", {"_queries"}),
        ("from hudi_index_service.x import _now, y", {"_now"}),
        ("monkeypatch.setattr('hudi_index_service.x._now', f)", {"_now"}),
        ("monkeypatch.setattr(entry, '_now', f)", {"_now"}),
        ("getattr(entry, '_now')", {"_now"}),
        ("patch.object(Entry, '_now')", {"_now"}),
        (
            "class A:\n    _a: int = 3\n    def f(self):\n        self._b = other._a + other._b",
            set(),
        ),
        ("frame._jdf; pair._replace(a=1); module.__name__; _mine(_other)", set()),
    ],
)
def test_what_counts_as_the_use_of_a_private_name(text: str, names: set[str]) -> None:
    assert set(private_names(text)) == names
