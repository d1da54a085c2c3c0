"""Footers parsed once: reads by several threads, and the bounds of pages."""

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hudi_index_parquet import Bounds, Footer, ParquetReadError, stripped_footer

ROWS = 30_000


def positions(*rows: int) -> np.ndarray:
    return np.array(rows, np.int64)


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def write(contents: pa.Table, **options: Any) -> Path:
        path = tmp_path / "part.parquet"
        defaults = {"max_rows_per_page": 4, "row_group_size": 10, "write_page_index": True}
        # Writing single values lets pages end anywhere, not only between batches of values.
        pq.write_table(contents, path, write_batch_size=1, **(defaults | options))
        return path

    return write


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Columns of very different sizes, with and without dictionaries, in row groups of pages."""
    random = np.random.default_rng(7)
    path = tmp_path_factory.mktemp("large") / "part.parquet"
    contents = pa.table(
        {
            "number": random.integers(0, 1 << 60, ROWS),
            "text": [random.bytes(60).hex() if i % 7 else None for i in range(ROWS)],
            "name": [f"name {i % 300}" for i in range(ROWS)],
            "list": [[i, None] if i % 5 else [] for i in range(ROWS)],
        }
    )
    pq.write_table(
        contents,
        path,
        compression="gzip",
        row_group_size=12_000,
        max_rows_per_page=1_000,
        use_dictionary=["name"],
        write_page_index=True,
    )
    return path


def test_any_number_of_threads_reads_the_same_rows(large: Path) -> None:
    footer = Footer(stripped_footer(large))
    whole = pq.read_table(large)
    for step in (1, 3, 500, 9_999):
        rows = np.arange(0, ROWS, step)
        expected = whole.take(rows)
        for threads in (1, 2, 5, 64):
            answer, stats = footer.read(large, rows, threads=threads)
            assert answer.equals(expected)
            assert stats.bytes == footer.plan(rows).page_bytes, "no page is read twice"
            assert stats.pages == footer.plan(rows).pages


def test_concurrent_reads_share_one_footer(large: Path) -> None:
    footer = Footer(stripped_footer(large))
    whole = pq.read_table(large, columns=["text", "number"])

    def read(start: int) -> bool:
        rows = np.arange(start, ROWS, 997)
        return footer.read(large, rows, ["text", "number"])[0].equals(whole.take(rows))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(read, range(40)))


def test_footer_has_the_schema_and_the_number_of_rows(large: Path) -> None:
    footer = Footer(stripped_footer(large))
    assert footer.rows == ROWS
    assert footer.schema == pq.read_schema(large).remove_metadata()
    assert footer.schema is footer.schema


def test_page_starts_are_those_of_the_largest_column(write: Callable[..., Path]) -> None:
    contents = pa.table({"n": range(20), "text": ["some text"] * 20, "longer": ["t" * 99] * 20})
    footer = Footer(stripped_footer(write(contents, use_dictionary=False)))
    assert footer.page_starts() == [0, 4, 8, 10, 14, 18]
    assert footer.page_starts(["n"]) == [0, 4, 8, 10, 14, 18]
    assert footer.page_starts([]) == [0, 10], "the starts of the row groups"
    bare = Footer(stripped_footer(write(contents, write_page_index=False)))
    assert bare.page_starts(["text"]) == [0, 10]
    with pytest.raises(ValueError, match="unknown"):
        footer.page_starts(["unknown"])


def test_error_in_a_thread_is_raised_to_the_caller(large: Path) -> None:
    contents = bytearray(large.read_bytes())
    footer = Footer(stripped_footer(large))
    chunk = pq.read_metadata(large).row_group(1).column(1)
    middle = chunk.data_page_offset + chunk.total_compressed_size // 2
    contents[middle : middle + 50] = bytes(50)

    def fetch(ranges: list[tuple[int, int]]) -> list[bytes]:
        return [bytes(contents[start:end]) for start, end in ranges]

    with pytest.raises(ParquetReadError):
        footer.read(fetch, np.arange(0, ROWS, 5), size=len(contents), threads=4)


def bounds(path: Path, *name: str) -> list[Bounds] | None:
    return Footer(stripped_footer(path)).bounds(path, name)


def test_bounds_of_pages(write: Callable[..., Path]) -> None:
    path = write(
        pa.table(
            {
                "i": pa.array([3, 1, None, 2, 9, 8, 7, 7, None, None, None, 5], pa.int32()),
                "s": ["b", "a", "c", None, *["é"] * 6, "z", None],
            }
        )
    )
    assert bounds(path, "i") == [
        Bounds(0, 4, 1, (1, 3)),
        Bounds(4, 8, 0, (7, 9)),
        Bounds(8, 10, 2, None),
        Bounds(10, 12, 1, (5, 5)),
    ]
    assert bounds(path, "s") == [
        Bounds(0, 4, 1, (b"a", b"c")),
        Bounds(4, 8, 0, ("é".encode(), "é".encode())),
        Bounds(8, 10, 0, ("é".encode(), "é".encode())),
        Bounds(10, 12, 1, (b"z", b"z")),
    ]


@pytest.mark.parametrize(
    ("values", "type", "expected"),
    [
        ([True, False], pa.bool_(), (False, True)),
        ([-5, 5], pa.int8(), (-5, 5)),
        ([-(2**63), 2**63 - 1], pa.int64(), (-(2**63), 2**63 - 1)),
        ([1.5, -0.5], pa.float32(), (-0.5, 1.5)),
        ([math.inf, -1e300], pa.float64(), (-1e300, math.inf)),
        ([date(1969, 12, 31), date(1970, 1, 3)], pa.date32(), (-1, 2)),
        ([7, -7], pa.timestamp("us", "UTC"), (-7, 7)),
        ([Decimal("-1.23"), Decimal("4.56")], pa.decimal128(10, 2), (-123, 456)),
        ([b"\xff", b"\x00"], pa.binary(), (b"\x00", b"\xff")),
    ],
    ids=str,
)
def test_bounds_of_every_type(
    write: Callable[..., Path], values: list[Any], type: pa.DataType, expected: tuple[Any, Any]
) -> None:
    path = write(pa.table({"c": pa.array(values, type)}), store_decimal_as_integer=True)
    assert bounds(path, "c") == [Bounds(0, 2, 0, expected)]


def test_columns_without_reliable_bounds_have_none(write: Callable[..., Path]) -> None:
    contents = pa.table(
        {
            "wide": pa.array([Decimal(1)], pa.decimal128(30, 2)),
            "list": [[1, 2]],
            "map": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())),
            "unsigned": pa.array([1], pa.uint32()),
            "s": [{"x": 1, "y.z": 2}],
            "a.b": [1],
        }
    )
    path = write(contents)
    for name in (("wide",), ("list",), ("list", "list", "element"), ("map",), ("unsigned",)):
        assert bounds(path, *name) is None, name
    for name in (("s",), ("absent",), ("S", "x"), ("s", "y"), ("a", "b")):
        assert bounds(path, *name) is None, name
    assert bounds(path, "s", "x") == [Bounds(0, 1, 0, (1, 1))]
    assert bounds(path, "a.b") == [Bounds(0, 1, 0, (1, 1))]
    moments = pa.table({"at": pa.array([1], pa.timestamp("us"))})
    assert bounds(write(moments, use_deprecated_int96_timestamps=True), "at") is None
    path = write(pa.table({"i": [1, 2, 3]}), write_page_index=False)
    assert bounds(path, "i") == [Bounds(0, 3, None, None)]


def test_files_of_an_unknown_writer_have_no_bounds(write: Callable[..., Path]) -> None:
    path = write(pa.table({"i": [1, 2, 3]}))
    contents = path.read_bytes()
    path.write_bytes(contents.replace(b"parquet-cpp-arrow", b"parquet-old-arrow"))
    assert bounds(path, "i") is None


def test_long_text_has_truncated_bounds(write: Callable[..., Path]) -> None:
    values = ["a" * 500, "b" * 500]
    (found,) = bounds(write(pa.table({"s": values})), "s") or []
    assert found.range is not None
    least, greatest = found.range
    assert least <= values[0].encode()
    assert values[1].encode() <= greatest


def test_bounds_read_the_column_index_of_one_column(large: Path) -> None:
    footer = Footer(stripped_footer(large))
    contents = large.read_bytes()
    calls = []

    def fetch(ranges: list[tuple[int, int]]) -> list[bytes]:
        calls.append(ranges)
        return [contents[start:end] for start, end in ranges]

    assert len(footer.bounds(fetch, ["number"], size=len(contents)) or []) == 30
    assert len(calls) == 1
    assert sum(end - start for start, end in calls[0]) < 3_000


def test_damaged_column_index_raises(large: Path) -> None:
    footer = Footer(stripped_footer(large))
    contents = large.read_bytes()
    with pytest.raises(ParquetReadError):
        footer.bounds(
            lambda ranges: [bytes(end - start) for start, end in ranges],
            ["number"],
            size=len(contents),
        )
    with pytest.raises(ParquetReadError, match="points at bytes"):
        footer.bounds(lambda ranges: [], ["number"], size=1_000)
