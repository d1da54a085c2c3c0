"""Reading rows by position from real Parquet files, compared with pyarrow reading whole files."""

from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hudi_index_parquet import (
    FileRows,
    Footer,
    ParquetReadError,
    ReadStats,
    read_files,
    read_rows,
    stripped_footer,
)

ROWS = 20_000
ROW_GROUP_ROWS = 7_000
PAGE_ROWS = 500


def positions(*rows: int) -> np.ndarray:
    return np.array(rows, np.int64)


@pytest.fixture(scope="module")
def table() -> pa.Table:
    """Every kind of column that a Hudi table may have, with NULLs in most."""
    random = np.random.default_rng(1)
    count = range(ROWS)
    structs = pa.list_(pa.struct([("a", pa.int64()), ("b", pa.string())]))
    integers = pa.array([None if i % 3 == 0 else i - 9_000 for i in count], pa.int64())
    return pa.table(
        {
            "word": [None if i % 7 == 0 else f"v{i * 37 % 997}" for i in count],
            "key": [f"{i:020d}-{i * 7919 % 100_003}-ü" for i in count],
            "empty": [["", None, " "][i % 3] for i in count],
            "blob": [None if i % 4 == 0 else bytes([i % 256]) * (i % 5) for i in count],
            "number": integers,
            "small": integers.cast(pa.int16()),
            "real": random.random(ROWS),
            "flag": random.random(ROWS) < 0.5,
            "day": pa.array([i % 40_000 for i in count], pa.int32()).cast(pa.date32()),
            "price": integers.cast(pa.decimal128(19, 0)).cast(pa.decimal128(25, 2)),
            "moment": pa.array(
                random.integers(-(10**15), 10**15, ROWS), pa.timestamp("us", tz="UTC")
            ),
            "nothing": pa.nulls(ROWS, pa.int32()),
            "list": pa.array(
                [
                    None if i % 11 == 0 else [{"a": j, "b": str(j)} for j in range(i % 4)]
                    for i in count
                ],
                structs,
            ),
            "map": pa.array(
                [None if i % 5 == 0 else [(f"k{j}", j * 1.5) for j in range(i % 3)] for i in count],
                pa.map_(pa.string(), pa.float64()),
            ),
            "struct": [
                {"x": {"y": [i, None], "w": None if i % 2 else "w"}, "z": i} if i % 9 else None
                for i in count
            ],
        }
    )


@pytest.fixture(scope="module")
def write(table: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Writes the table in three row groups with pages of 500 rows, unless the options differ."""

    def write(contents: pa.Table = table, **options: Any) -> Path:
        path = tmp_path_factory.mktemp("parquet") / "part.parquet"
        defaults = {
            "row_group_size": ROW_GROUP_ROWS,
            "max_rows_per_page": PAGE_ROWS,
            "write_page_index": True,
        }
        pq.write_table(contents, path, **(defaults | options))
        return path

    return write


@pytest.fixture(scope="module")
def file(write: Callable[..., Path]) -> Path:
    return write(compression="gzip")


class Ranges:
    """A callable source over a file that records the ranges it is called with."""

    def __init__(self, path: Path) -> None:
        self.contents = path.read_bytes()
        self.size = len(self.contents)
        self.calls: list[list[tuple[int, int]]] = []

    def __call__(self, ranges: list[tuple[int, int]]) -> list[bytes]:
        self.calls.append(ranges)
        return [self.contents[start:end] for start, end in ranges]


LAYOUTS: dict[str, dict[str, Any]] = {
    "snappy": {"compression": "snappy"},
    "gzip": {"compression": "gzip"},
    "zstd": {"compression": "zstd"},
    "lz4_raw": {"compression": "lz4"},
    "brotli": {"compression": "brotli"},
    "uncompressed": {"compression": "none"},
    "pages of version 2": {"data_page_version": "2.0"},
    "pages of version 2, zstd": {"data_page_version": "2.0", "compression": "zstd"},
    "no page index": {"write_page_index": False},
    "no dictionary": {"use_dictionary": False},
    "dictionary abandoned": {"dictionary_pagesize_limit": 4_000},
    "delta encodings": {
        "use_dictionary": False,
        "column_encoding": {
            "key": "DELTA_BYTE_ARRAY",
            "word": "DELTA_LENGTH_BYTE_ARRAY",
            "moment": "DELTA_BINARY_PACKED",
            "real": "BYTE_STREAM_SPLIT",
        },
    },
    "page checksums": {"write_page_checksum": True},
    "bloom filters": {"bloom_filter_options": {"key": {"ndv": ROWS, "fpp": 0.01}}},
    "no Arrow schema": {"store_schema": False},
    "one page per column": {"max_rows_per_page": ROWS, "row_group_size": ROWS},
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_random_rows_equal_those_of_pyarrow(write: Callable[..., Path], layout: str) -> None:
    path = write(**LAYOUTS[layout])
    whole = pq.ParquetFile(path).read()
    footer = stripped_footer(path)
    random = np.random.default_rng(2)

    for count in (1, 2, 17, 300):
        rows = np.sort(random.choice(ROWS, count, replace=False))
        expected = whole.take(rows)

        from_file, _ = read_rows(path, rows)
        from_footer, stats = read_rows(path, rows, metadata=footer)

        from_footer.validate(full=True)
        assert from_file.schema == expected.schema
        assert from_file.equals(expected)
        assert from_footer.schema == expected.schema
        assert from_footer.equals(expected)
        planned = Footer(footer).plan(rows).page_bytes
        if layout == "dictionary abandoned":
            assert stats.bytes <= planned, "of pages after it, the dictionary is not read"
        else:
            assert stats.bytes == planned


def test_columns_are_returned_in_the_requested_order(file: Path) -> None:
    columns = ["struct", "key", "list", "key"]

    answer, _ = read_rows(file, positions(5, 19_999), columns)

    assert answer.column_names == columns
    struct, key, array, key_again = (column.to_pylist() for column in answer.columns)
    assert struct[0] == {"x": {"y": [5, None], "w": None}, "z": 5}
    assert key == key_again == ["00000000000000000005-39595-ü", "00000000000000019999-67332-ü"]
    assert array[0] == [{"a": 0, "b": "0"}]


def test_reading_no_columns_keeps_the_row_count(file: Path) -> None:
    answer, stats = read_rows(file, positions(1, 2, 3), [], metadata=stripped_footer(file))

    assert (answer.num_rows, answer.num_columns) == (3, 0)
    assert stats.bytes == 0


@pytest.mark.parametrize("rows", [range(-1, 3), range(ROWS - 1, ROWS + 1)])
def test_ranges_must_be_within_the_file(file: Path, rows: range) -> None:
    with pytest.raises(ValueError, match=f"{rows.start}..{rows.stop} is not within"):
        read_rows(file, rows)
    assert read_rows(file, range(3, 3))[0].num_rows == 0
    with pytest.raises(ValueError, match="must have the step 1"):
        read_rows(file, range(0, 4, 2))


def test_rows_of_several_files_are_read_by_one_call(
    write: Callable[..., Path], table: pa.Table
) -> None:
    contents = [table, table.slice(5_000, 3_000), table.slice(0, 900)]
    paths = [write(each) for each in contents]
    footers = [Footer(stripped_footer(path)) for path in paths]
    rows = [positions(3, 7_500, 19_999), np.arange(100, 2_000), positions(0)]
    columns = ["key", "list", "number"]
    batch, counts, tested, did = read_files(
        [
            FileRows(footer, path, these, path.stat().st_size)
            for footer, path, these in zip(footers, paths, rows, strict=True)
        ],
        columns,
    ) or pytest.fail("the files are alike")
    alone = [
        footer.read(path, these, columns)
        for footer, path, these in zip(footers, paths, rows, strict=True)
    ]
    expected = pa.concat_tables(each for each, _ in alone).combine_chunks()
    assert pa.Table.from_batches([batch]).equals(expected)
    assert counts == tested == [3, 1_900, 1]
    assert did == [stats for _, stats in alone]
    some = [FileRows(footers[0], paths[0], rows[1])]
    nothing, _, _, did = read_files(some, []) or pytest.fail("no")
    assert (nothing.num_rows, nothing.num_columns, did[0].bytes) == (1_900, 0, 0)


def test_files_that_cannot_be_read_by_one_call(
    write: Callable[..., Path], table: pa.Table, tmp_path: Path
) -> None:
    path, wider = write(), write(table.set_column(0, "word", table["number"]))
    first, second = Footer(stripped_footer(path)), Footer(stripped_footer(wider))
    rows = positions(1)
    assert (
        read_files([FileRows(first, path, rows), FileRows(second, wider, rows)], ["word"]) is None
    )
    with pytest.raises(FileNotFoundError, match="gone"):
        read_files([FileRows(first, path, rows), FileRows(first, tmp_path / "gone", rows)])
    with pytest.raises(ParquetReadError, match="bytes, not 7"):
        read_files([FileRows(first, path, rows, 7)])
    with pytest.raises(ValueError, match="no file"):
        read_files([])


def test_floats_keep_every_bit(write: Callable[..., Path]) -> None:
    bits = np.array([0x7FF8000000000001, 0xFFF8000000000000, 0x8000000000000000, 0, 1], np.uint64)
    path = write(pa.table({"real": bits.view(np.float64)}))

    answer, _ = read_rows(path, positions(0, 1, 2, 4))

    assert answer["real"].to_numpy().view(np.uint64).tolist() == bits[[0, 1, 2, 4]].tolist()


def test_int96_timestamps_are_read_as_microseconds(write: Callable[..., Path]) -> None:
    moments = [
        datetime(1, 1, 1, tzinfo=UTC),
        datetime(1582, 10, 15, 12, 30, tzinfo=UTC),
        datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
        None,
        datetime(2262, 4, 12, tzinfo=UTC),
        datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    ]
    # INT96 as Java writers lay it out: nanoseconds of the day, then the Julian day.
    path = write(
        pa.table({"moment": pa.array([datetime(2000, 1, 1)] * 6, pa.timestamp("us"))}),
        use_deprecated_int96_timestamps=True,
        use_dictionary=False,
        compression="none",
        store_schema=False,
        write_statistics=False,
    )
    contents = path.read_bytes()
    placeholder = int96(datetime(2000, 1, 1, tzinfo=UTC))
    assert contents.count(placeholder) == 6
    for moment in moments:
        contents = contents.replace(placeholder, int96(moment or datetime(1, 1, 1, tzinfo=UTC)), 1)
    path.write_bytes(contents)

    answer, _ = read_rows(path, positions(0, 1, 2, 4, 5))

    assert answer.schema.field("moment").type == pa.timestamp("us")
    assert answer["moment"].to_pylist() == [
        moment.replace(tzinfo=None) for moment in moments if moment
    ]


def int96(moment: datetime) -> bytes:
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    nanoseconds = (since.seconds * 1_000_000 + since.microseconds) * 1_000
    return nanoseconds.to_bytes(8, "little") + (since.days + 2_440_588).to_bytes(4, "little")


def test_int96_inside_nested_columns(write: Callable[..., Path]) -> None:
    kind = pa.struct([("at", pa.list_(pa.timestamp("us"))), ("n", pa.int64())])
    moment = datetime(2024, 2, 29, 1, 2, 3, 4)
    contents = pa.table({"s": pa.array([{"at": [moment, None], "n": 1}, None], kind)})

    for store_schema in (True, False):
        path = write(contents, use_deprecated_int96_timestamps=True, store_schema=store_schema)
        answer, _ = read_rows(path, positions(0, 1))
        assert answer["s"].to_pylist() == [{"at": [moment, None], "n": 1}, None]
        assert answer.schema.field("s").type.field("at").type.value_type == pa.timestamp("us")


def test_files_without_rows(write: Callable[..., Path], table: pa.Table) -> None:
    path = write(table.slice(0, 0))
    footer = stripped_footer(path)

    answer, stats = read_rows(path, positions(), ["word", "list"], metadata=footer)

    assert Footer(footer).rows == 0
    assert answer.schema == table.select(["word", "list"]).schema
    assert answer.num_rows == 0
    assert stats == ReadStats(calls=0, ranges=0, bytes=0, pages=0)


def test_row_groups_without_rows(tmp_path: Path) -> None:
    path = tmp_path / "part.parquet"
    some = pa.table({"n": [1, 2, 3]})
    with pq.ParquetWriter(path, some.schema, write_page_index=True) as writer:
        for piece in (some.slice(0, 0), some, some.slice(0, 0), some):
            writer.write_table(piece)
    assert pq.read_metadata(path).num_row_groups == 4

    answer, _ = read_rows(path, positions(0, 2, 3, 5))

    assert answer["n"].to_pylist() == [1, 3, 1, 3]
    assert Footer(stripped_footer(path)).plan(positions(0, 5)).row_groups == 2


def test_struct_field_is_read_without_its_siblings(write: Callable[..., Path]) -> None:
    deep = [
        None if i % 5 == 0 else {"x": {"y": [i, None], "w": "w" * i}, "z": i} for i in range(90)
    ]
    path = write(pa.table({"a": list(range(90)), "s": deep, "t": deep, "z": list(range(90))}))
    rows = positions(0, 7, 89)

    whole, _ = read_rows(path, rows, ["s"])
    field, _ = read_rows(path, rows, ["z", "s.x.y", "a"])
    both, _ = read_rows(path, rows, ["t.z", "s.x.y", "t.x.y"])

    assert field.column_names == ["z", "s", "a"]
    assert [row and row["x"]["y"] for row in whole["s"].to_pylist()] == [
        None,
        [7, None],
        [89, None],
    ]
    assert field["s"].to_pylist() == [None, {"x": {"y": [7, None]}}, {"x": {"y": [89, None]}}]
    assert both.column_names == ["t", "s"]
    assert both["t"].to_pylist()[1] == {"x": {"y": [7, None]}, "z": 7}
    footer = stripped_footer(path)
    of = Footer(footer)
    assert of.plan(rows, ["s.z"]).total_bytes < of.plan(rows, ["s"]).total_bytes
    assert read_rows(path, positions(), ["s.z"], metadata=footer)[0].schema == pa.schema(
        [("s", pa.struct([("z", pa.int64())]))]
    )
    for unknown in ("s.q", "s.", "s.x.yy", "q.s", "a.b"):
        with pytest.raises(ValueError, match="no column"):
            read_rows(path, rows, [unknown])


def test_columns_with_the_same_name_cannot_be_selected(write: Callable[..., Path]) -> None:
    path = write(pa.table([[1, 2], ["a", "b"], [3, 4]], names=["x", "x", "y"]))

    answer, _ = read_rows(path, positions(1))

    assert answer.column_names == ["x", "x", "y"]
    assert [column.to_pylist() for column in answer.columns] == [[2], ["b"], [4]]
    assert read_rows(path, positions(1), ["y"])[0].to_pydict() == {"y": [4]}
    with pytest.raises(ValueError, match='column "x" is ambiguous'):
        read_rows(path, positions(1), ["x"])


def test_decimals_of_every_physical_type(write: Callable[..., Path]) -> None:
    values = [Decimal("-12.34"), None, Decimal("0.05")]
    contents = pa.table(
        {f"d{digits}": pa.array(values, pa.decimal128(digits, 2)) for digits in (5, 12, 38)}
    )

    for as_integer in (True, False):
        path = write(contents, store_decimal_as_integer=as_integer)
        assert read_rows(path, positions(0, 1, 2))[0].equals(contents)


def test_chunk_and_total_bytes_equal_those_in_the_footer(file: Path) -> None:
    metadata = pq.read_metadata(file)
    chunks = [
        sum(
            row_group.column(leaf).total_compressed_size
            for leaf in range(row_group.num_columns)
            if row_group.column(leaf).path_in_schema.split(".")[0] in ("key", "list")
        )
        for row_group in map(metadata.row_group, range(metadata.num_row_groups))
    ]

    plan = Footer(stripped_footer(file)).plan(positions(0, 1, 19_000), ["key", "list"])

    assert len(chunks) == 3
    assert plan.row_groups == 2
    assert plan.chunk_bytes == chunks[0] + chunks[2]
    assert plan.total_bytes == sum(chunks)


def test_stripped_footer_is_a_valid_footer_without_values(file: Path) -> None:
    footer = stripped_footer(file)

    read, own = pq.read_metadata(pa.BufferReader(footer)), pq.read_metadata(file)
    assert (read.num_rows, read.num_row_groups) == (ROWS, 3)
    assert not read.row_group(0).column(0).is_stats_set
    assert read.row_group(0).column(0).has_offset_index
    assert own.row_group(0).column(1).statistics.min[:20].encode() not in footer
    # The reference to the column index remains; the index itself is in the file.
    assert read.row_group(0).column(0).has_column_index


def test_callable_gets_the_ranges_of_all_row_groups_at_once(file: Path) -> None:
    footer = stripped_footer(file)
    fetch = Ranges(file)
    rows = positions(5, 3_000, 12_000)

    answer, stats = read_rows(fetch, rows, ["key", "word"], size=fetch.size, metadata=footer)

    assert answer.equals(read_rows(file, rows, ["key", "word"])[0])
    assert len(fetch.calls) == stats.calls == 1
    fetched = [pair for call in fetch.calls for pair in call]
    assert stats.ranges == len(fetched)
    assert stats.bytes == sum(end - start for start, end in fetched)
    wanted = Footer(footer).plan(rows, ["key", "word"]).page_bytes
    assert wanted <= stats.bytes <= 1.04 * wanted


def test_large_reads_are_fetched_row_group_by_row_group(write: Callable[..., Path]) -> None:
    random = np.random.default_rng(4)
    contents = pa.table({"blob": [random.bytes(1 << 20) for _ in range(40)]})
    path = write(
        contents,
        row_group_size=20,
        write_batch_size=1,
        compression="none",
        use_dictionary=False,
    )
    fetch = Ranges(path)
    footer = stripped_footer(path)

    answer, _ = read_rows(fetch, np.arange(1, 40), size=fetch.size, metadata=footer)
    assert answer.equals(contents.slice(1))
    assert len(fetch.calls) == 2

    fetch.calls.clear()
    answer, _ = read_rows(fetch, positions(2, 39), size=fetch.size, metadata=footer)
    assert answer.equals(contents.take([2, 39]))
    assert len(fetch.calls) == 1


def test_footer_is_not_read_when_metadata_is_given(file: Path) -> None:
    footer = stripped_footer(file)
    fetch = Ranges(file)
    data_end = fetch.size - 8 - pq.read_metadata(file).serialized_size

    read_rows(fetch, positions(1, 9_999), size=fetch.size, metadata=footer)
    touched = [pair for call in fetch.calls for pair in call]
    assert max(end for _, end in touched) < data_end

    fetch.calls.clear()
    answer, stats = read_rows(fetch, positions(), size=fetch.size, metadata=footer)
    assert (answer.num_rows, answer.num_columns) == (0, 15)
    assert fetch.calls == []
    assert stats == ReadStats(calls=0, ranges=0, bytes=0, pages=0)


def test_small_footer_is_read_in_one_call(file: Path) -> None:
    fetch = Ranges(file)

    footer = stripped_footer(fetch, size=fetch.size)

    assert footer == stripped_footer(file)
    assert fetch.calls == [[(fetch.size - 65_536, fetch.size)]]


@pytest.mark.parametrize(
    "wrap",
    [bytes, bytearray, memoryview, pa.py_buffer, lambda data: np.frombuffer(data, np.uint8)],
    ids=["bytes", "bytearray", "memoryview", "pyarrow buffer", "numpy array"],
)
def test_any_buffer_type_is_accepted(file: Path, wrap: Callable[[bytes], Any]) -> None:
    fetch = Ranges(file)

    answer, _ = read_rows(
        lambda ranges: (wrap(data) for data in fetch(ranges)),
        memoryview(positions(4)),
        ["number"],
        size=fetch.size,
        metadata=wrap(stripped_footer(file)),
    )

    assert answer["number"].to_pylist() == [-8_996]
