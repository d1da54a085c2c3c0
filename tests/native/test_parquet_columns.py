"""Whole columns of many files by one call, and footers with Hudi's Bloom filter."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hudi_index_parquet import (
    Footer,
    ParquetReadError,
    file_footer,
    read_columns,
    stripped_footer,
)

FILTER = "A" * 400_000
KEYS = {"hoodie_min_record_key": "k0", "hoodie_max_record_key": "k9"}

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(rows: pa.Table, key_values: dict[str, str], name: str = "part") -> Path:
        path = tmp_path / f"{name}.parquet"
        with pq.ParquetWriter(path, rows.schema, write_page_index=True) as writer:
            writer.write_table(rows, row_group_size=700)
            writer.add_key_value_metadata(key_values)
        return path

    return write


def keys(first: int, count: int) -> pa.Table:
    numbers = range(first, first + count)
    texts = pa.array([f"k{n}" if n % 7 else None for n in numbers], pa.string())
    return pa.table({"number": pa.array(numbers, pa.int64()), "key": texts})


def part(number: int) -> pa.Table:
    return keys(1_000 * number, 0 if number == 3 else 900 + number)


@pytest.mark.parametrize("threads", [1, 4])
def test_whole_columns_of_many_files_are_read_by_one_call(write: Write, threads: int) -> None:
    parts = [part(number) for number in range(40)]
    paths = [
        write(rows, KEYS | {"org.apache.hudi.bloomfilter": FILTER}, f"part-{number}")
        for number, rows in enumerate(parts)
    ]
    batch, counts = read_columns(
        [(path, path.stat().st_size) for path in paths], ["key", "number"], threads=threads
    ) or pytest.fail("the files are alike")
    assert counts == [rows.num_rows for rows in parts]
    whole = pa.concat_tables(parts).select(["key", "number"])
    assert pa.Table.from_batches([batch]).equals(whole)


def test_files_whose_columns_cannot_be_read_by_one_call(write: Write, tmp_path: Path) -> None:
    path = write(keys(0, 10), KEYS)
    other = write(keys(0, 10).rename_columns(["key", "number"]), KEYS, "other")
    assert read_columns([(path, None), (other, None)], ["key"]) is None
    with pytest.raises(FileNotFoundError, match="gone"):
        read_columns([(path, None), (tmp_path / "gone", None)], ["key"])
    with pytest.raises(ParquetReadError, match="bytes, not 7"):
        read_columns([(path, 7)], ["key"])
    with pytest.raises(ValueError, match="absent"):
        read_columns([(path, None)], ["absent"])
    with pytest.raises(ValueError, match="no file"):
        read_columns([], ["key"])


@pytest.mark.parametrize(
    "key_values",
    [
        {"org.apache.hudi.bloomfilter": FILTER, **KEYS},
        {**KEYS, "org.apache.hudi.bloomfilter": FILTER},
        {"other": "B" * 100_000, "org.apache.hudi.bloomfilter": FILTER, **KEYS},
        {"org.apache.hudi.bloomfilter": FILTER, "other": "B" * 100_000},
        {"other": FILTER},
        {"org.apache.hudi.bloomfilter": "A"},
    ],
)
@pytest.mark.parametrize("columns", [1, 3, 1_000])
def test_a_footer_is_the_same_with_and_without_bloom_filter(
    write: Write, key_values: dict[str, str], columns: int
) -> None:
    rows = pa.table({f"column {number}": range(5) for number in range(columns)})
    stripped = stripped_footer(write(rows, key_values))
    path = write(rows, {})
    assert Footer(stripped).read(path, range(5))[0].equals(rows)
    assert Footer(stripped).plan(range(5)) == Footer(stripped_footer(path)).plan(range(5))


@pytest.mark.parametrize(
    "filters", [{}, {"org.apache.hudi.bloomfilter": FILTER}], ids=["plain", "bloom filter"]
)
def test_a_footer_tells_the_values_of_some_keys(write: Write, filters: dict[str, str]) -> None:
    path = write(keys(0, 100), {"a": "1", **filters, "b": "", "c": "3"})
    footer, values = file_footer(path, ["a", "b", "absent"])
    assert values == {"a": "1", "b": ""}
    assert footer.schema.equals(Footer(stripped_footer(path)).schema)
    assert footer.read(path, range(100))[0].equals(keys(0, 100))


def test_a_bloom_filter_is_not_read(write: Write) -> None:
    path = write(keys(0, 100), {"org.apache.hudi.bloomfilter": FILTER, **KEYS})
    footer = stripped_footer(path)
    content = path.read_bytes()
    path.write_bytes(content.replace(FILTER.encode(), b"\xff" * len(FILTER)))  # no text
    assert stripped_footer(path) == footer
    # A length beyond the end of the footer.
    path.write_bytes(content.replace(b"\x80\xb5\x18AAA", b"\x80\xb5\x78AAA"))
    with pytest.raises(ParquetReadError):
        stripped_footer(path)
