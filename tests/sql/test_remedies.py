"""Error messages name remedies in SQL to users of SQL."""

import re
from collections.abc import Iterator

import pytest

from hudi_index_service import errors
from hudi_index_service.errors import IndexExists, IndexServiceError
from hudi_index_service.sql.errors import remedies_in_sql

# Errors that no statement causes.
ELSEWHERE = {
    "CALLBACK_REFUSED",
    "CONFIG_INVALID",
    "HISTORY_UNAVAILABLE",
    "REQUEST_REFUSED",
    "STATEMENT_FAILED",
    "USAGE_INVALID",
}


def kinds(base: type[IndexServiceError] = IndexServiceError) -> Iterator[type[IndexServiceError]]:
    yield base
    for kind in base.__subclasses__():
        if kind.__module__ == errors.__name__:
            yield from kinds(kind)


def in_sql(error: IndexServiceError) -> str:
    with pytest.raises(type(error)) as raised, remedies_in_sql():
        raise error
    assert raised.value is error
    return raised.value.remedy


@pytest.mark.parametrize("kind", sorted({*kinds()}, key=lambda kind: (kind.code, kind.__name__)))
def test_remedies_mention_neither_python_nor_the_command_line(
    kind: type[IndexServiceError],
) -> None:
    if kind.code not in ELSEWHERE:
        remedy = in_sql(kind("Something is wrong."))
        assert not re.search(r"hudi-index |--\w|=True|=<|open_table|IndexedTable|IndexHook", remedy)


def test_specific_remedy_is_kept() -> None:
    assert in_sql(IndexExists("It is there.", remedy="Look again.")) == "Look again."
    assert in_sql(IndexExists("It is there.")).endswith("or add IF NOT EXISTS.")
