"""Errors on the command line tell what to do there."""

import pytest

from hudi_index_service import errors
from hudi_index_service.cli.remedies import told
from hudi_index_service.errors import IndexExists, IndexServiceError, PredicateUnsupported
from hudi_index_service.indexed_table import _ASK_SPARK

KINDS = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, IndexServiceError)
]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.code)
def test_no_general_remedy_speaks_python(kind: type[IndexServiceError]) -> None:
    line = told(kind("Something is wrong."))
    assert line.startswith(f"{kind.code}: Something is wrong. ")
    # An instance of IndexHook is what write options come from; a daemon prints them as well.
    for python in ("=True", "spark=", "open_table", "IndexedTable.", "()"):
        assert python not in line.replace("score()", "")


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (
            IndexExists("The table has an index named i."),
            "INDEX_EXISTS: The table has an index named i. Choose another name, drop the index "
            "first, or give --if-not-exists.",
        ),
        (
            PredicateUnsupported("No upper.", remedy=f"Write it in small. {_ASK_SPARK}"),
            "PREDICATE_UNSUPPORTED: No upper. Write it in small. Or ask by `hudi-index sql`.",
        ),
        (
            PredicateUnsupported(
                "Not here.", remedy=f"{PredicateUnsupported.default_remedy} {_ASK_SPARK}"
            ),
            "PREDICATE_UNSUPPORTED: Not here. Rewrite it with the supported operators. Or ask by "
            "`hudi-index sql`.",
        ),
    ],
)
def test_what_a_remedy_for_python_becomes(error: IndexServiceError, line: str) -> None:
    assert told(error) == line


@pytest.mark.parametrize(
    ("message", "kept"),
    [("It failed: no file..", "It failed: no file."), ("And so on...", "And so on...")],
)
def test_a_message_ends_with_one_full_stop(message: str, kept: str) -> None:
    assert IndexServiceError(message).message == kept
