"""Scans of base files skip what Parquet statistics rule out, and read the rest once."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_index_service.errors import StorageFailed
from hudi_index_service.predicate import keep, negation_normal_form, parse_predicate
from hudi_index_service.predicate.expression import Predicate
from hudi_index_service.read.base_file.file_scan import FileScan
from hudi_index_service.read.base_file.kept_pages import forget_pages
from hudi_index_service.read.base_file.page_bounds import PageBounds
from hudi_index_service.read.base_file.row_reader import NumberedRows, RowReader
from hudi_index_service.storage.store import Storage
from tests.read.file_scans import footer_of, scan_of

ROWS, GROUP_ROWS, PAGE_ROWS = 60_000, 40_000, 1_000
WHERE = "number BETWEEN 10500 AND 12500 OR number = 45000"
TO_OPEN = 1_200_000  # bytes to open a remote file: Arrow reads the last megabyte
MATCHING = [*range(10_500, 12_501), 45_000]
PAGES = [*range(10_000, 13_000), *range(45_000, 46_000)]  # all rows of their pages


@lru_cache
def contents() -> pa.Table:
    dice = np.random.default_rng(5)
    return pa.table(
        {
            "number": np.arange(ROWS),
            "text": [dice.bytes(20).hex() if row % 7 else None for row in range(ROWS)],
            "name": [f"name{row % 50}" for row in range(ROWS)],
            "place": [{"zip": row % 90, "city": "c"} if row % 5 else None for row in range(ROWS)],
        }
    )


@pytest.fixture(scope="module")
def local(tmp_path_factory) -> Storage:
    folder = tmp_path_factory.mktemp("scan")
    pq.write_table(
        contents(),
        folder / "f.parquet",
        compression="gzip",
        row_group_size=GROUP_ROWS,
        max_rows_per_page=PAGE_ROWS,
        write_page_index=True,
        use_dictionary=["name"],
        write_page_checksum=True,
    )
    return Storage(folder)


def scan(folder: Path | Storage, columns: Sequence[str]) -> FileScan:
    schema = contents().schema
    types = {"place.zip": pa.int64()}
    return scan_of(
        folder, pa.schema([(each, types.get(each) or schema.field(each).type) for each in columns])
    )


def normal(where: str) -> Predicate:
    """The normal form of a predicate on the file's columns."""
    return negation_normal_form(parse_predicate(where, contents().schema, time_zone="UTC"))


def checked(rows: Iterable[NumberedRows]) -> list[pa.RecordBatch]:
    """The batches; checks that their row ids are those of the file, which `number` holds."""
    batches = []
    for row_ids, batch, _ in rows:
        assert batch["number"].to_pylist() == list(row_ids)
        batches.append(batch)
    return batches


def test_only_pages_that_may_match_are_read(local):
    for columns in (["number", "text"], ["number", "place.zip", "name"]):
        file_scan = scan(local, columns)
        batches = checked(file_scan.candidates(normal(WHERE)))
        numbers = [row for batch in batches for row in batch["number"].to_pylist()]
        assert numbers == MATCHING
        kept = pa.Table.from_batches(batches)
        for name in set(columns) - {"place.zip"}:
            assert kept[name].combine_chunks() == contents()[name].take(MATCHING).combine_chunks()
        floor = footer_of(file_scan).plan(np.array(PAGES), columns).page_bytes
        dictionaries = 2 * 1_000  # read once per portion
        assert floor <= file_scan.statistics.bytes_read <= 1.05 * floor + dictionaries


def test_no_page_is_read_when_nothing_can_match(local):
    for where in ("number < 0", "number = 7 AND number = 50000", "name IS NULL"):
        file_scan = scan(local, ["number", "name"])
        assert list(file_scan.candidates(normal(where))) == []
        assert file_scan.statistics.bytes_read == 0, where


def test_bounds_are_compared_only_if_a_page_has_to_be_read(local, recorded):
    forget_pages()
    text = contents()["text"][ROWS // 2 + 1].as_py()
    compared = recorded(PageBounds, "rows", lambda _, leaf: leaf)
    calls = []
    for _ in range(3):  # a scan keeps pages that are read again
        before = len(compared)
        batches = checked(scan(local, ["number", "text"]).candidates(normal(f"text = '{text}'")))
        assert [batch["text"].to_pylist() for batch in batches] == [[text]]
        calls.append(len(compared) - before)
    assert calls == [1, 1, 0]
    forget_pages()


def test_a_predicate_that_is_never_true_may_name_a_column_that_the_file_lacks(local):
    columns = pa.schema([("number", pa.int64()), ("late", pa.int64())])
    where = parse_predicate("late NOT IN (1, NULL)", columns, time_zone="UTC")
    assert list(scan_of(local, columns).candidates(negation_normal_form(where))) == []


def test_a_full_scan_keeps_the_order_and_rereads_few_pages(local):
    columns = ["text", "number"]
    file_scan = scan(local, columns)
    found = pa.Table.from_batches(checked(file_scan.candidates(None)))
    assert found.equals(contents().select(columns))
    total = footer_of(file_scan).plan(np.arange(1), columns).total_bytes
    dictionaries_and_borders = 0.03
    assert total <= file_scan.statistics.bytes_read <= (1 + dictionaries_and_borders) * total


@pytest.mark.parametrize("where", [None, WHERE, "name = 'name7'"])
@pytest.mark.parametrize("known", [True, False], ids=["footer known", "file opened"])
def test_parts_of_a_file_have_its_rows(local, where, *, known):
    normal_form = where and normal(where)
    columns = ["number", "name"]
    whole = scan(local, columns)
    whole = replace(whole, footer=footer_of(whole) if known else None)
    parts = [range(GROUP_ROWS), range(GROUP_ROWS, ROWS)]

    def numbers(file_scan):
        batches = checked(file_scan.candidates(normal_form))
        return [row for batch in batches for row in batch["number"].to_pylist()]

    by_part = [numbers(replace(whole, within=part)) for part in parts]

    assert [row for rows in by_part for row in rows] == numbers(whole)
    for rows, part in zip(by_part, parts, strict=True):
        assert set(rows) <= set(part)


@pytest.mark.parametrize("every", [2, 3, 5, 40])
def test_rows_near_each_other_are_read_together(local, every):
    columns = ["text", "number"]
    rows = np.flatnonzero(np.random.default_rng(every).integers(0, every, ROWS) == 0)
    file_scan = scan(local, columns)
    reader = RowReader(local, file_scan.base_file, footer_of(file_scan), file_scan.columns)
    read = list(reader.batches(rows))
    found = pa.Table.from_batches([batch for each in read for batch in each.batches])
    assert found.equals(contents().select(columns).take(rows))
    assert sum(each.count for each in read) == len(rows)
    floor = footer_of(file_scan).plan(rows, columns).page_bytes
    assert floor <= sum(each.did.bytes for each in read) <= 1.05 * floor


def test_arrow_reads_on_where_the_row_reader_fails(tmp_path):
    text = [b"fine"] * 50_000 + [b"\xff\xfe"] + [b"fine"] * 9_999
    table = pa.table({"number": np.arange(ROWS), "text": pa.array(text, pa.binary())})
    # The schema says text, whatever the bytes are.
    broken = pa.table(
        [table["number"], pa.chunked_array([table["text"].combine_chunks().view(pa.string())])],
        ["number", "text"],
    )
    pq.write_table(broken, tmp_path / "f.parquet", store_schema=False, row_group_size=GROUP_ROWS)
    file_scan = scan(tmp_path, ["number", "text"])
    batches = checked(file_scan.candidates(None))
    assert [row for batch in batches for row in batch["number"].to_pylist()] == list(range(ROWS))
    values = [value for batch in batches for value in batch["text"].cast(pa.binary()).to_pylist()]
    assert values == text


def test_a_damaged_page_is_an_error_only_if_it_is_read(local, tmp_path):
    path = tmp_path / "f.parquet"
    damaged = bytearray(local.local_path("f.parquet").read_bytes())
    chunk = pq.read_metadata(local.local_path("f.parquet")).row_group(1).column(1)
    assert chunk.path_in_schema == "text"
    end = chunk.data_page_offset + chunk.total_compressed_size
    damaged[end - 200 : end - 100] = bytes(100)
    path.write_bytes(damaged)
    with pytest.raises(StorageFailed, match=r"f\.parquet"):
        checked(scan(tmp_path, ["number", "text"]).candidates(None))
    rows = scan(tmp_path, ["number", "text"]).candidates(normal(WHERE))
    assert sum(batch.num_rows for batch in checked(rows)) == len(MATCHING)


def remote_copy(name: str, local: Storage) -> Storage:
    storage = Storage(f"memory://{name}")
    storage.create("f.parquet", local.local_path("f.parquet").read_bytes())
    return storage


def test_a_small_remote_file_is_read_without_its_page_index(local):
    storage = remote_copy("small-scan", local)
    file_scan = scan(storage, ["number", "name"])
    rows = checked(file_scan.candidates(normal(WHERE)))
    assert sum(batch.num_rows for batch in rows) == ROWS


def test_a_large_remote_file_is_read_by_page_if_few_may_match(tmp_path):
    dice = np.random.default_rng(6)
    rows = 400_000
    table = pa.table({"number": np.arange(rows), "noise": dice.integers(0, 1 << 60, rows)})
    pq.write_table(
        table,
        tmp_path / "f.parquet",
        compression="none",
        max_rows_per_page=10_000,
        write_page_index=True,
        use_dictionary=False,
    )
    storage = remote_copy("large-scan", Storage(tmp_path))
    columns = pa.schema([("number", pa.int64()), ("noise", pa.int64())])
    for where, pages in (("number = 123456", 1), ("number < 50000", 5), ("noise > -1", 40)):
        file_scan = scan_of(storage, columns)
        predicate = parse_predicate(where, columns, time_zone="UTC")
        before = storage.io.bytes_read
        batches = checked(file_scan.candidates(negation_normal_form(predicate)))
        assert sum(batch.num_rows for batch in batches) == pages * 10_000
        kept = pa.Table.from_batches([keep(predicate, batch) for batch in batches])
        assert kept.num_rows == keep(predicate, table.to_batches()[0]).num_rows
        read = storage.io.bytes_read - before
        assert file_scan.statistics.bytes_read <= read
        if pages < 40:  # otherwise by Arrow, which refetches a row group for larger batches
            assert read < pages * 10_000 * 16 * 1.05 + TO_OPEN, where
