"""Pages that stay opened: rows read again come from memory, unless the file has changed."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hudi_index_parquet import Footer, PageCache, ParquetReadError, stripped_footer

from tests.forked_child import status_of_child

ROWS, PAGE_ROWS = 10_000, 1_000
COLUMNS = ["number", "word"]
SOME = np.array([3, 4, 1_700, 9_999])
PAGES = 3 * len(COLUMNS)  # that hold these rows
A_TICK = 20_000_000  # nanoseconds in which two writes may leave the same times


def contents(first: int) -> pa.Table:
    numbers = np.arange(first, first + ROWS)
    return pa.table({"number": numbers, "word": [f"w{number % 7}" for number in numbers]})


def write(path: Path, table: pa.Table, compression: str = "gzip") -> Path:
    """Writes the table, and waits until a later write would leave other times."""
    pq.write_table(
        table,
        path,
        compression=compression,
        max_rows_per_page=PAGE_ROWS,
        write_page_index=True,
        use_dictionary=["word"],
    )
    while time.time_ns() - path.stat().st_ctime_ns <= A_TICK:
        pass
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write(tmp_path / "f.parquet", contents(0))


@pytest.fixture
def pages() -> Iterator[PageCache]:
    cache = PageCache(2**24)
    yield cache
    assert cache.bytes <= 2**24


def test_rows_that_are_read_again_come_from_memory(path: Path, pages: PageCache) -> None:
    footer = Footer(stripped_footer(path))
    expected = contents(0).take(SOME).combine_chunks()
    for kept in (0, PAGES, PAGES):
        table, stats = footer.read(path, SOME, COLUMNS, pages=pages)
        assert table.combine_chunks() == expected
        assert (stats.pages, stats.kept) == (PAGES, kept)
        assert (stats.bytes == 0) == (stats.kept == PAGES)
    _, stats = footer.read(path, np.array([5, 2_500]), COLUMNS, pages=pages)
    assert (stats.pages, stats.kept) == (4, 2), "others on the same pages, too"
    assert pages.bytes > 0
    pages.clear()
    assert pages.bytes == 0


def test_the_bytes_that_are_not_kept_are_told(path: Path, pages: PageCache) -> None:
    footer, chunks = Footer(stripped_footer(path)), pq.read_metadata(path).row_group(0)
    whole, plain = zip(
        *(
            (chunk.total_compressed_size, chunk.total_uncompressed_size)
            for chunk in (chunks.column(0), chunks.column(1))
        ),
        strict=True,
    )

    def to_read(*columns: str) -> list[int]:
        told = footer.column_bytes(path, columns, pages=pages)
        assert [each for _, each in told] == [plain[COLUMNS.index(name)] for name in columns]
        return [each for each, _ in told]

    assert footer.column_bytes(path, COLUMNS) == list(zip(whole, plain, strict=True))
    assert to_read(*COLUMNS) == list(whole)
    first_page = footer.read(path, SOME[:1], ["number"], pages=pages)[1].bytes
    assert to_read(*COLUMNS) == [whole[0] - first_page, whole[1]]
    footer.read(path, np.arange(ROWS), COLUMNS, pages=pages)
    assert to_read("word", "number") == [0, 0]
    assert to_read() == []
    write(path, contents(1))
    assert to_read(*COLUMNS) == list(whole), "of the file as it was"
    with pytest.raises(ParquetReadError, match="bytes"):
        footer.column_bytes(path, COLUMNS, size=1)
    with pytest.raises(ValueError, match="no column"):
        footer.column_bytes(path, ["other"])


def test_times_that_are_set_back_do_not_hide_a_write(path: Path, pages: PageCache) -> None:
    footer = Footer(stripped_footer(write(path, contents(0), "none")))
    before = path.stat()
    footer.read(path, SOME, COLUMNS, pages=pages)
    write(path, contents(1), "none")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    table, stats = footer.read(path, SOME, COLUMNS, pages=pages)
    assert (table["number"].to_pylist(), stats.kept) == (list(SOME + 1), 0)


def test_a_forked_child_reads_without_the_cache_of_its_parent(path: Path, pages: PageCache) -> None:
    footer = Footer(stripped_footer(path))
    footer.read(path, SOME, COLUMNS, pages=pages)

    def in_child() -> None:
        table, stats = footer.read(path, SOME, COLUMNS, pages=pages)
        assert table["number"].to_pylist() == list(SOME)
        assert (stats.kept, pages.bytes) == (0, 0)

    assert status_of_child(in_child) == 0
    assert footer.read(path, SOME, COLUMNS, pages=pages)[1].kept == PAGES


def test_a_cache_needs_room() -> None:
    with pytest.raises(ValueError, match="room"):
        PageCache(0)
