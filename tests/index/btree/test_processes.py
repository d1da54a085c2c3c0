"""A reader used by several threads, and by processes forked from the one that opened it."""

import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from pyroaring import BitMap

from hudi_index_service.errors import EntryInvalid
from hudi_index_service.index.contract import IndexReader
from hudi_index_service.predicate.expression import BoundColumn, Compare, Operator
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


def in_a_fork(reader: IndexReader) -> str:
    """What a forked process reports: "well" if the reader gives the same answer there as here."""
    expected = rows_below(reader, 5_000)
    into, out = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            with ThreadPoolExecutor(4) as threads:
                found = list(threads.map(lambda _: rows_below(reader, 5_000), range(8)))
            report = "" if found == [expected] * 8 else "another answer"
            reader.close()
        except BaseException as error:  # noqa: BLE001 - the child must not go on as pytest
            report = repr(error)
        os.write(out, report.encode() or b"well")
        os._exit(0)
    os.close(out)
    with os.fdopen(into) as answer:
        report = answer.read()
    assert os.waitpid(child, 0)[1] == 0
    return report


def test_a_forked_process_opens_its_own_environment(indexed: IndexedData) -> None:
    assert in_a_fork(indexed.reader) == "well"
    assert len(rows_below(indexed.reader, 100)) == 100  # the child closed only its own
    assert in_a_fork(indexed.reader) == "well"


def test_closing_one_reader_of_a_file_leaves_the_other_open(indexed: IndexedData) -> None:
    other = indexed.kind.open(indexed.index, indexed.columns)
    assert rows_below(other, 70) == rows_below(indexed.reader, 70)
    indexed.reader.close()
    assert len(rows_below(other, 70)) == 70


def test_the_unpacked_tree_is_an_unlinked_file(
    indexed: IndexedData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    reader = indexed.kind.open(indexed.index, indexed.columns)
    assert len(rows_below(reader, 10)) == 10
    assert list(tmp_path.iterdir()) == []


def test_an_open_reader_works_after_its_file_is_deleted(indexed: IndexedData) -> None:
    indexed.index.path.unlink()
    assert len(rows_below(indexed.reader, 100)) == 100


def test_a_closed_reader_refuses_look_ups(indexed: IndexedData) -> None:
    indexed.reader.close()
    indexed.reader.close()
    with pytest.raises(EntryInvalid):
        rows_below(indexed.reader, 10)


def test_threads_can_open_and_close_readers_concurrently(indexed: IndexedData) -> None:
    kind, index, columns = indexed.kind, indexed.index, indexed.columns

    def open_and_close(_: int) -> int:
        reader = kind.open(index, columns)
        found = len(rows_below(reader, 50))
        reader.close()
        return found

    with ThreadPoolExecutor(4) as threads:
        assert set(threads.map(open_and_close, range(1000))) == {50}
