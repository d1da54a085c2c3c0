"""Bad requests, failing storage and damaged bytes: one clear error, never a crash."""

import base64
import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest
from hudi_index_parquet import (
    Fetch,
    Footer,
    ParquetReadError,
    polynomials,
    read_rows,
    stripped_footer,
)

ROWS = 3_000
SAMPLE = np.arange(0, ROWS, 50)


@pytest.fixture(scope="module")
def table() -> pa.Table:
    random = np.random.default_rng(1)
    return pa.table(
        {
            "word": [None if i % 7 == 0 else f"v{i * 37 % 997}" for i in range(ROWS)],
            "number": random.integers(0, 1 << 60, ROWS),
            "list": [None if i % 11 == 0 else [str(j) for j in range(i % 4)] for i in range(ROWS)],
            "flag": random.random(ROWS) < 0.5,
            "moment": pa.array(random.integers(0, 10**15, ROWS), pa.timestamp("us")),
        }
    )


@pytest.fixture(scope="module")
def file(table: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("parquet") / "part.parquet"
    pq.write_table(table, path, row_group_size=1_700, max_rows_per_page=100, write_page_index=True)
    return path


def positions(*rows: int) -> np.ndarray:
    return np.array(rows, np.int64)


def serve(contents: bytes) -> Fetch:
    return lambda ranges: [contents[start:end] for start, end in ranges]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([3, 5, 5], "5 at position 2 is there twice"),
        ([3, 7, 5], "5 at position 2 is out of order, after 7"),
        ([-1, 2], "-1 at position 0 is negative"),
        ([0, 3_000], "3000 at position 1 is beyond the 3000 rows of the file"),
    ],
)
def test_invalid_rows_are_refused(file: Path, rows: list[int], message: str) -> None:
    footer = stripped_footer(file)

    for call in (
        lambda: read_rows(file, positions(*rows)),
        lambda: read_rows(file, positions(*rows), metadata=footer),
        lambda: Footer(footer).plan(positions(*rows)),
    ):
        with pytest.raises(ValueError, match=message) as caught:
            call()
        assert not isinstance(caught.value, ParquetReadError)


@pytest.mark.parametrize(
    "rows",
    [[1, 2], np.array([1.0]), np.array([1], np.int32), np.array([[1], [2]]), b"12345678", None],
    ids=["list", "floats", "32 bits", "two dimensions", "bytes", "None"],
)
def test_rows_must_be_64_bit_integers(file: Path, rows: object) -> None:
    with pytest.raises(TypeError, match="one-dimensional array of 64-bit signed integers"):
        read_rows(file, rows)  # type: ignore[arg-type]


def test_unknown_columns_are_refused(file: Path) -> None:
    message = 'no column "wort" in the file, which has word, number, list, flag, moment'
    with pytest.raises(ValueError, match=message):
        read_rows(file, positions(1), ["word", "wort"])
    with pytest.raises(ValueError, match=message):
        Footer(stripped_footer(file)).plan(positions(1), ["wort"])
    with pytest.raises(ValueError, match=r'no column "list\.element"'):
        read_rows(file, positions(1), ["list.element"])


def test_missing_file_raises_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="No such file or directory") as caught:
        read_rows(tmp_path / "gone.parquet", positions(1))
    assert caught.value.filename == str(tmp_path / "gone.parquet")
    with pytest.raises(IsADirectoryError):
        stripped_footer(tmp_path)


def test_file_of_another_size_is_refused(file: Path) -> None:
    size = file.stat().st_size
    assert read_rows(file, positions(1), size=size)[0].num_rows == 1
    with pytest.raises(ParquetReadError, match=f"has {size} bytes, not {size + 1}"):
        read_rows(file, positions(1), size=size + 1)


class StorageGone(Exception):
    """Raised by a test's storage."""


def test_errors_of_a_callable_are_raised_unchanged(file: Path) -> None:
    contents = file.read_bytes()
    failure = StorageGone("bucket", 503)

    def fail(ranges: list[tuple[int, int]]) -> list[bytes]:
        raise failure

    with pytest.raises(StorageGone) as caught:
        read_rows(fail, positions(1), size=len(contents))
    assert caught.value is failure
    with pytest.raises(StorageGone) as caught:
        read_rows(fail, positions(1), size=len(contents), metadata=stripped_footer(file))
    assert caught.value is failure
    with pytest.raises(StorageGone) as caught:
        stripped_footer(fail, size=len(contents))
    assert caught.value is failure


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        (lambda ranges: [], ValueError, "0 buffers for 1 ranges"),
        (lambda ranges: [b"", b""], ValueError, "2 buffers for 1 ranges"),
        (lambda ranges: [b"short"], ValueError, r"5 bytes for the range 0\.\.100"),
        (lambda ranges: ["text"], TypeError, "must return buffers of bytes, not <class 'str'>"),
        (lambda ranges: None, TypeError, "not iterable"),
    ],
    ids=["too few", "too many", "too short", "text", "nothing"],
)
def test_callable_with_a_wrong_answer_raises(
    answer: Fetch, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        read_rows(answer, positions(1), size=100)


def test_callable_needs_a_size(file: Path) -> None:
    with pytest.raises(TypeError, match="size, the length of the file in bytes, is needed"):
        read_rows(serve(file.read_bytes()), positions(1))
    with pytest.raises(TypeError, match="source must be a path or a callable, not <class 'int'>"):
        read_rows(7, positions(1))  # type: ignore[arg-type]


@pytest.mark.parametrize("contents", [b"", b"PAR1", b"PAR1PAR1", b"\0" * 100, b"PAR1" * 50])
def test_bytes_that_are_not_parquet_raise(contents: bytes) -> None:
    with pytest.raises(ParquetReadError):
        Footer(contents)
    with pytest.raises(ParquetReadError):
        stripped_footer(serve(contents), size=len(contents))
    with pytest.raises(ParquetReadError):
        read_rows(serve(contents), positions(0), size=len(contents))


def test_error_can_be_pickled(file: Path) -> None:
    with pytest.raises(ParquetReadError) as caught:
        Footer(b"no footer here")

    copy = pickle.loads(pickle.dumps(caught.value))  # noqa: S301

    assert type(copy) is ParquetReadError
    assert issubclass(ParquetReadError, ValueError)
    assert str(copy) == str(caught.value)


def test_metadata_of_another_file_never_reads_beyond_the_file(file: Path, tmp_path: Path) -> None:
    other = tmp_path / "short.parquet"
    pq.write_table(pa.table({"word": ["a"]}), other)

    with pytest.raises(ParquetReadError, match=r"points at bytes \d+\.\.\d+ of a file of"):
        read_rows(other, positions(2_999), ["word"], metadata=stripped_footer(file))


def test_truncated_file_raises(file: Path) -> None:
    contents = file.read_bytes()
    for length in range(0, len(contents), 997):
        with pytest.raises(ParquetReadError):
            read_rows(serve(contents[:length]), positions(1), size=length)


def test_page_with_a_wrong_checksum_raises(table: pa.Table, tmp_path: Path) -> None:
    path = tmp_path / "part.parquet"
    pq.write_table(
        table.select(["number"]),
        path,
        compression="none",
        use_dictionary=False,
        write_page_index=True,
        write_page_checksum=True,
    )
    contents = bytearray(path.read_bytes())
    where = contents.index(int(table["number"][1_234].as_py()).to_bytes(8, "little"))
    contents[where] ^= 1
    path.write_bytes(contents)

    with pytest.raises(ParquetReadError, match="CRC"):
        read_rows(path, positions(1_234))


def test_encrypted_file_is_refused(table: pa.Table, tmp_path: Path) -> None:
    class OpenKeys(pe.KmsClient):
        def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> bytes:
            return base64.b64encode(key_bytes)

    factory = pe.CryptoFactory(lambda _: OpenKeys())
    properties = factory.file_encryption_properties(
        pe.KmsConnectionConfig(),
        pe.EncryptionConfiguration(footer_key="k", uniform_encryption=True),
    )
    path = tmp_path / "part.parquet"
    pq.write_table(table, path, encryption_properties=properties)

    with pytest.raises(ParquetReadError, match="the footer is encrypted"):
        read_rows(path, positions(1))


LAYOUTS = [
    {"compression": codec, "data_page_version": version, **layout}
    for codec in ("none", "snappy", "gzip", "zstd", "lz4")
    for version in ("1.0", "2.0")
    for layout in (
        {"write_page_index": True},
        {"write_page_index": False, "use_deprecated_int96_timestamps": True},
        {
            "write_page_index": True,
            "use_dictionary": False,
            "column_encoding": {"word": "DELTA_BYTE_ARRAY", "number": "DELTA_BINARY_PACKED"},
        },
    )
]


def flip(contents: bytes, first: int, random: np.random.Generator) -> bytes:
    """Damages one to five bytes from `first` on, each by one bit or entirely."""
    damaged = bytearray(contents)
    for _ in range(random.integers(1, 6)):
        position = random.integers(first, len(damaged))
        if random.random() < 0.5:
            damaged[position] ^= 1 << random.integers(8)
        else:
            damaged[position] = random.integers(256)
    return bytes(damaged)


def outcome(source: Fetch, size: int, metadata: bytes | None = None) -> str:
    try:
        answer, _ = read_rows(source, SAMPLE, size=size, metadata=metadata)
    except ParquetReadError:
        return "error"
    assert answer.num_rows == len(SAMPLE)
    return "answer"


@pytest.mark.parametrize("part", ["pages", "footer", "stripped footer"])
def test_damaged_bytes_raise_or_give_an_answer_of_the_right_shape(
    table: pa.Table, part: str
) -> None:
    seen = set()
    for number, layout in enumerate(LAYOUTS):
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink, row_group_size=1_700, max_rows_per_page=500, **layout)
        contents = sink.getvalue().to_pybytes()
        size = len(contents)
        footer = stripped_footer(serve(contents), size=size)
        footer_start = size - 8 - int.from_bytes(contents[-8:-4], "little")
        for seed in range(15):
            random = np.random.default_rng([number, seed])
            if part == "stripped footer":
                seen.add(outcome(serve(contents), size, flip(footer, 0, random)))
            else:
                first = footer_start if part == "footer" else 0
                seen.add(outcome(serve(flip(contents, first, random)), size))
    assert seen == {"error", "answer"}


def test_only_binary_values_have_polynomials() -> None:
    assert len(polynomials(pa.array([b"ab", None, b""]))) == 3 * 8
    with pytest.raises(ValueError, match="values must be binary, not Int64"):
        polynomials(pa.array([1]))
