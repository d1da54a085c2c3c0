"""Errors contain remedies in terms of the command line, and of SQL."""

import pickle
import re

import pytest

from hudi_index_service import errors
from hudi_index_service.build.scope import BY_PATH
from hudi_index_service.cli.console import error_line
from hudi_index_service.errors import (
    IndexExists,
    IndexServiceError,
    NeedsSpark,
    PredicateUnsupported,
    Remedy,
)
from hudi_index_service.read.base_file.record_keys import SEARCH
from hudi_index_service.read.queries import USE_SPARK
from hudi_index_service.read.spark.slice_task import LATE_REMEDY
from hudi_index_service.sql.errors import remedies_in_sql

KINDS = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, IndexServiceError)
]


# Errors that no statement causes.
ELSEWHERE = {
    "CALLBACK_REFUSED",
    "CONFIG_INVALID",
    "FLEET_FILE_INVALID",
    "HISTORY_UNAVAILABLE",
    "REQUEST_REFUSED",
    "STATEMENT_FAILED",
    "USAGE_INVALID",
}


def in_sql(error: IndexServiceError) -> str:
    with pytest.raises(type(error)) as raised, remedies_in_sql():
        raise error
    assert raised.value is error
    return raised.value.remedy


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.code)
def test_default_remedies_are_not_those_of_other_interfaces(kind: type[IndexServiceError]) -> None:
    line = error_line(kind("Something is wrong."))
    assert line.startswith(f"{kind.code}: Something is wrong. ")
    # Write options can only come from an instance of IndexHook; a daemon prints them too.
    for python in ("=True", "spark=", "open_table", "IndexedTable.", "()"):
        assert python not in line.replace("score()", "")
    if kind.code not in ELSEWHERE:
        remedy = in_sql(kind("Something is wrong."))
        assert not re.search(r"hudi-index |--\w|=True|=<|open_table|IndexedTable|IndexHook", remedy)


def test_specific_remedy_is_kept_in_sql() -> None:
    assert in_sql(IndexExists("It is there.", remedy="Look again.")) == "Look again."
    assert in_sql(IndexExists("It is there.")).endswith("or add IF NOT EXISTS.")


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (
            IndexExists("The table has an index named i."),
            "INDEX_EXISTS: The table has an index named i. Choose another name, drop the index "
            "first, or give --if-not-exists.",
        ),
        (
            PredicateUnsupported("No upper.", remedy=Remedy("Write it in small.") + USE_SPARK),
            "PREDICATE_UNSUPPORTED: No upper. Write it in small. Or use `hudi-index sql`.",
        ),
        (
            PredicateUnsupported(
                "Not here.", remedy=PredicateUnsupported.default_remedy + USE_SPARK
            ),
            "PREDICATE_UNSUPPORTED: Not here. Rewrite it with the supported operators. Or use "
            "`hudi-index sql`.",
        ),
        (
            PredicateUnsupported("No value.", remedy=BY_PATH),
            "PREDICATE_UNSUPPORTED: No value. Name partitions by path or pattern: `hudi-index "
            "build --partition`.",
        ),
        (
            NeedsSpark("No keys.", remedy=SEARCH),
            "NEEDS_SPARK: No keys. Search the column itself with `hudi-index query`.",
        ),
        (
            NeedsSpark("Too late.", remedy=LATE_REMEDY),
            "NEEDS_SPARK: Too late. Use `hudi-index sql`.",
        ),
    ],
)
def test_a_python_remedy_is_translated_for_the_command_line(
    error: IndexServiceError, line: str
) -> None:
    assert error_line(error) == line
    assert error_line(pickle.loads(pickle.dumps(error))) == line  # noqa: S301 - of this test
    assert error_line(error.reworded(error.message)) == line


def test_a_remedy_without_another_form_is_the_same_everywhere() -> None:
    remedy = Remedy("Wait.") + Remedy("Call stop().", command="Press Ctrl-C.")
    assert (remedy.python, remedy.command, remedy.sql) == (
        "Wait. Call stop().",
        "Wait. Press Ctrl-C.",
        "Wait. Call stop().",
    )


@pytest.mark.parametrize(
    ("message", "kept"),
    [("It failed: no file..", "It failed: no file."), ("And so on...", "And so on...")],
)
def test_a_message_ends_with_one_full_stop(message: str, kept: str) -> None:
    assert IndexServiceError(message).message == kept
