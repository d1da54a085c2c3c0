"""What errors tell somebody to do who writes SQL."""

import re
from collections.abc import Iterator

import pytest

from hudi_index_service import errors
from hudi_index_service.errors import IndexExists, IndexServiceError
from hudi_index_service.sql.remedies import remedies_in_sql

# What no statement can cause.
ELSEWHERE = {"CALLBACK_REFUSED", "STATEMENT_FAILED", "HISTORY_UNAVAILABLE", "CONFIG_INVALID"}


def kinds(above: type[IndexServiceError] = IndexServiceError) -> Iterator[type[IndexServiceError]]:
    yield above
    for kind in above.__subclasses__():
        if kind.__module__ == errors.__name__:
            yield from kinds(kind)


def in_sql(error: IndexServiceError) -> str:
    with pytest.raises(type(error)) as raised, remedies_in_sql():
        raise error
    assert raised.value is error
    return raised.value.remedy


@pytest.mark.parametrize("kind", sorted({*kinds()}, key=lambda kind: kind.code))
def test_no_remedy_speaks_python_or_the_command_line(kind: type[IndexServiceError]) -> None:
    if kind.code not in ELSEWHERE:
        said = in_sql(kind("Something is wrong."))
        assert not re.search(r"hudi-index |--\w|=True|=<|open_table|IndexedTable|IndexHook", said)


def test_a_better_remedy_stays() -> None:
    assert in_sql(IndexExists("It is there.", remedy="Look again.")) == "Look again."
    assert in_sql(IndexExists("It is there.")).endswith("or add IF NOT EXISTS.")
