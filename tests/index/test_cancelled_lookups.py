"""Lucene ends a look-up that nobody waits for."""

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pytest
from hudi_index_parquet import is_wanted, raise_ended

from hudi_index_service import Cancellation
from hudi_index_service.errors import QueryCancelled
from hudi_index_service.index.contract import ColumnSpec, ManyReaders, Positions
from hudi_index_service.index.lucene import jvm
from hudi_index_service.index.routed import Routed
from hudi_index_service.predicate import parse_predicate
from hudi_index_service.predicate.expression import (
    BoundColumn,
    In,
    Match,
    MatchMode,
    Predicate,
)
from tests.index.conftest import BuildIndex, IndexedData

ROWS = 2_000
MANY = 64  # entries that Java's threads share


@pytest.fixture(scope="module")
def data(build_index: BuildIndex) -> IndexedData:
    texts = [f"{number:x} some words" for number in range(ROWS)]
    return build_index(
        pa.table({"text": texts, "number": range(ROWS)}),
        options={"text": {"analyzer": "standard", "ranked": "true"}},
    )


@pytest.fixture(autouse=True)
def asked_at_once() -> Iterator[None]:
    """Java asks whenever it could, not every 50 ms."""
    jvm.attach()
    from hudiindex import Effort

    Effort.askEvery(0)
    yield
    Effort.askEvery(50_000_000)


def leaf(data: IndexedData, where: str) -> Predicate:
    return parse_predicate(where, data.data.schema)


def many(data: IndexedData) -> tuple[ManyReaders, Positions]:
    readers = data.kind.together([data.reader] * MANY)
    assert readers is not None
    return readers, np.arange(MANY, dtype=np.int32)


def few_rows(data: IndexedData) -> object:
    readers, among = many(data)
    return readers.few_rows(leaf(data, "number = 7"), among, 10)


def listed_rows(data: IndexedData) -> object:
    readers, among = many(data)
    listed = leaf(data, "number IN (1, 2, 3)")
    assert isinstance(listed, In)
    ends = np.arange(3, 3 * MANY + 3, 3, dtype=np.int32)
    values = Routed(np.tile(np.arange(3, dtype=np.int32), MANY), ends - 3, ends)
    return readers.rows_of_values(listed, among, values, 10)


def best_rows(data: IndexedData) -> object:
    words = data.kind.analyzed_text(ColumnSpec("text", pa.string(), ("text:standard",)))
    assert words is not None
    match = Match(BoundColumn("text", pa.string()), MatchMode.ANY, "some words", words)
    ranked = data.reader.ranked(match)
    assert ranked is not None
    return ranked.best(3, ranked.statistics(), None)


LOOKUPS: dict[str, Callable[[IndexedData], object]] = {
    "a scan of terms": lambda data: data.reader.row_ids(leaf(data, "text LIKE '%1%f%'")),
    "a range of terms": lambda data: data.reader.row_ids(leaf(data, "text > '1'")),
    "a range of numbers": lambda data: data.reader.row_ids(leaf(data, "number > 7")),
    "entries with few rows": few_rows,
    "listed values": listed_rows,
    "the best rows": best_rows,
}


@pytest.mark.parametrize("look_up", LOOKUPS.values(), ids=LOOKUPS)
def test_a_lookup_ends(data: IndexedData, look_up: Callable[[IndexedData], object]) -> None:
    found = look_up(data)
    with Cancellation() as cancellation:
        assert look_up(data) == found
        cancellation.cancel()
        with pytest.raises(QueryCancelled):
            look_up(data)
    assert look_up(data) == found


def test_the_reason_is_raised_once() -> None:
    with Cancellation() as cancellation:
        assert is_wanted()
        cancellation.cancel()
        assert not is_wanted()
    with pytest.raises(QueryCancelled):
        raise_ended()
    raise_ended()
    assert is_wanted()
