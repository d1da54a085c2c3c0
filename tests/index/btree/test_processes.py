"""A reader used by several threads, and by processes forked from the one that opened it."""

from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest
from pyroaring import BitMap

from hudi_index_service.errors import EntryInvalid
from hudi_index_service.index.contract import IndexReader
from hudi_index_service.predicate.expression import BoundColumn, Compare, Operator
from tests.forked_child import status_of_child
from tests.index.conftest import BuildIndex, IndexedData

ROWS = 60_000
COLUMN = BoundColumn("n", pa.int64())


@pytest.fixture
def indexed(build_btree: BuildIndex) -> IndexedData:
    return build_btree(pa.table({"n": [(i * 7919) % ROWS for i in range(ROWS)]}), batch_rows=20_000)


def rows_below(reader: IndexReader, value: int) -> BitMap:
    return reader.row_ids(Compare(COLUMN, Operator.LT, pa.scalar(value)))


def test_concurrent_threads_get_correct_answers(indexed: IndexedData) -> None:
    def is_correct(value: int) -> bool:
        expected = {row for row in range(ROWS) if (row * 7919) % ROWS < value}
        return {*rows_below(indexed.reader, value)} == expected

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(is_correct, [1, 50, 2_047, 2_048, 5_000, 30_000, ROWS] * 6))


def test_a_forked_process_uses_the_reader_of_its_parent(indexed: IndexedData) -> None:
    expected = rows_below(indexed.reader, 5_000)

    def in_child() -> None:
        with ThreadPoolExecutor(4) as threads:
            found = threads.map(lambda _: rows_below(indexed.reader, 5_000), range(8))
            assert list(found) == [expected] * 8
        indexed.reader.close()

    assert status_of_child(in_child) == 0
    assert len(rows_below(indexed.reader, 100)) == 100  # the child closed only its own
    assert status_of_child(in_child) == 0


def test_an_open_reader_works_after_its_file_is_deleted(indexed: IndexedData) -> None:
    indexed.index.path.unlink()
    assert len(rows_below(indexed.reader, 100)) == 100


def test_a_closed_reader_refuses_look_ups(indexed: IndexedData) -> None:
    indexed.reader.close()
    indexed.reader.close()
    with pytest.raises(EntryInvalid):
        rows_below(indexed.reader, 10)
