"""Scans of base files: what their own statistics rule out is not read, the rest is read once."""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hudi_index_parquet import Footer, stripped_footer

from hudi_index_service.config import Settings
from hudi_index_service.errors import StorageFailed
from hudi_index_service.optimizer.plan import Access
from hudi_index_service.predicate import keep, negation_normal_form, parse_predicate
from hudi_index_service.read.file_scan import FileScan
from hudi_index_service.read.row_reader import RowReader
from hudi_index_service.read.statistics import SliceStatistics
from hudi_index_service.storage import Storage
from hudi_index_service.table.protocol import BaseFile

ROWS, GROUP_ROWS, PAGE_ROWS = 60_000, 40_000, 1_000
WHERE = "number BETWEEN 10500 AND 12500 OR number = 45000"
TO_OPEN = 1_200_000  # bytes of a remote file: Arrow reads the last megabyte
MATCHING = [*range(10_500, 12_501), 45_000]
PAGES = [*range(10_000, 13_000), *range(45_000, 46_000)]  # the rows in the pages of these


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
def local(tmp_path_factory: pytest.TempPathFactory) -> Storage:
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


def scan(storage: Storage, columns: Sequence[str]) -> FileScan:
    path = "f.parquet"
    schema = contents().schema
    fields = pa.schema(
        [(name, pa.int64() if name == "place.zip" else schema.field(name).type) for name in columns]
    )
    base_file = BaseFile(path, "", "", "", storage.size(path))
    return FileScan(storage, base_file, fields, Settings(), SliceStatistics(path, Access.SCAN))


def footer(storage: Storage) -> Footer:
    return Footer(stripped_footer(str(storage.local_path("f.parquet"))))


def test_only_pages_that_may_match_are_read(local: Storage) -> None:
    predicate = parse_predicate(WHERE, contents().schema, time_zone="UTC")
    for columns in (["number", "text"], ["number", "place.zip", "name"]):
        asked = scan(local, columns)
        batches = list(asked.candidates(negation_normal_form(predicate)))
        numbers = [row for batch in batches for row in batch["number"].to_pylist()]
        assert numbers == PAGES
        kept = pa.Table.from_batches([keep(predicate, batch) for batch in batches])
        assert kept["number"].to_pylist() == MATCHING
        for name in set(columns) - {"place.zip"}:
            assert kept[name].combine_chunks() == contents()[name].take(MATCHING).combine_chunks()
        floor = footer(local).plan(np.array(PAGES), columns).page_bytes
        dictionaries = 2 * 1_000  # read once a portion
        assert floor <= asked.statistics.bytes_read <= 1.05 * floor + dictionaries


def test_where_nothing_can_match_no_page_is_read(local: Storage) -> None:
    for where in ("number < 0", "number = 7 AND number = 50000", "name IS NULL"):
        asked = scan(local, ["number", "name"])
        predicate = parse_predicate(where, contents().schema, time_zone="UTC")
        assert list(asked.candidates(negation_normal_form(predicate))) == []
        assert asked.statistics.bytes_read == 0, where


def test_a_whole_file_is_read_in_order_and_hardly_a_page_twice(local: Storage) -> None:
    columns = ["text", "number"]
    asked = scan(local, columns)
    found = pa.Table.from_batches(list(asked.everything()))
    assert found.equals(contents().select(columns))
    total = footer(local).plan(np.arange(1), columns).total_bytes
    dictionaries_and_borders = 0.03
    assert total <= asked.statistics.bytes_read <= (1 + dictionaries_and_borders) * total


@pytest.mark.parametrize("every", [2, 3, 5, 40])
def test_rows_near_each_other_are_read_together(local: Storage, every: int) -> None:
    columns = ["text", "number"]
    rows = np.flatnonzero(np.random.default_rng(every).integers(0, every, ROWS) == 0)
    asked = scan(local, columns)
    reader = RowReader(local, asked.base_file, footer(local), asked.columns)
    read = list(reader.batches(rows))
    found = pa.Table.from_batches([batch for each in read for batch in each.batches])
    assert found.equals(contents().select(columns).take(rows))
    assert sum(each.count for each in read) == len(rows)
    floor = footer(local).plan(rows, columns).page_bytes
    assert floor <= sum(each.did.bytes for each in read) <= 1.05 * floor


def test_what_the_row_reader_refuses_is_read_on_by_arrow(tmp_path: Path) -> None:
    text = [b"fine"] * 50_000 + [b"\xff\xfe"] + [b"fine"] * 9_999
    table = pa.table({"number": np.arange(ROWS), "text": pa.array(text, pa.binary())})
    # Text to its schema, whatever bytes there are.
    broken = pa.table(
        [table["number"], pa.chunked_array([table["text"].combine_chunks().view(pa.string())])],
        ["number", "text"],
    )
    pq.write_table(broken, tmp_path / "f.parquet", store_schema=False, row_group_size=GROUP_ROWS)
    asked = scan(Storage(tmp_path), ["number", "text"])
    batches = list(asked.everything())
    assert [row for batch in batches for row in batch["number"].to_pylist()] == list(range(ROWS))
    values = [value for batch in batches for value in batch["text"].cast(pa.binary()).to_pylist()]
    assert values == text


def test_a_damaged_page_is_an_error_if_it_is_read(local: Storage, tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    damaged = bytearray(local.local_path("f.parquet").read_bytes())
    chunk = pq.read_metadata(local.local_path("f.parquet")).row_group(1).column(1)
    assert chunk.path_in_schema == "text"
    end = chunk.data_page_offset + chunk.total_compressed_size
    damaged[end - 200 : end - 100] = bytes(100)
    path.write_bytes(damaged)
    storage = Storage(tmp_path)
    with pytest.raises(StorageFailed, match=r"f\.parquet"):
        list(scan(storage, ["number", "text"]).everything())
    predicate = parse_predicate(WHERE, contents().schema, time_zone="UTC")
    rows = scan(storage, ["number", "text"]).candidates(negation_normal_form(predicate))
    assert sum(batch.num_rows for batch in rows) == len(PAGES)


def remote_copy(name: str, local: Storage) -> Storage:
    storage = Storage(f"memory://{name}")
    storage.create("f.parquet", local.local_path("f.parquet").read_bytes())
    return storage


def test_of_a_small_remote_file_no_page_index_is_asked_for(local: Storage) -> None:
    storage = remote_copy("small-scan", local)
    asked = scan(storage, ["number", "name"])
    predicate = parse_predicate(WHERE, contents().schema, time_zone="UTC")
    rows = list(asked.candidates(negation_normal_form(predicate)))
    assert sum(batch.num_rows for batch in rows) == ROWS


def test_of_a_large_remote_file_pages_are_read_where_few_may_match(tmp_path: Path) -> None:
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
    base_file = BaseFile("f.parquet", "", "", "", storage.size("f.parquet"))
    for where, pages in (("number = 123456", 1), ("number < 50000", 5), ("noise > -1", 40)):
        statistics = SliceStatistics("f.parquet", Access.SCAN)
        asked = FileScan(storage, base_file, columns, Settings(), statistics)
        predicate = parse_predicate(where, columns, time_zone="UTC")
        before = storage.io.bytes_read
        batches = list(asked.candidates(negation_normal_form(predicate)))
        assert sum(batch.num_rows for batch in batches) == pages * 10_000
        kept = pa.Table.from_batches([keep(predicate, batch) for batch in batches])
        assert kept.num_rows == keep(predicate, table.to_batches()[0]).num_rows
        read = storage.io.bytes_read - before
        assert statistics.bytes_read <= read
        if pages < 40:  # else by Arrow, which fetches a row group anew for larger batches
            assert read < pages * 10_000 * 16 * 1.05 + TO_OPEN, where
