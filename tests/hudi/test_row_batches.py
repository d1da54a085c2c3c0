"""Ranges of rows of a Parquet file, in batches bounded by rows and by bytes."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_index_service.hudi.files.parquet_file import BATCH_BYTES, row_batches

ROWS = 20_000


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Row groups of 6,000 rows, the last one shorter, with pages of 1,000 rows."""
    path = tmp_path_factory.mktemp("rows") / "f.parquet"
    table = pa.table({"id": range(ROWS), "text": [f"row {i}" for i in range(ROWS)]})
    pq.write_table(table, path, row_group_size=6_000, max_rows_per_page=1_000)
    return path


def ids(path: Path, rows: range, batch_rows: int) -> tuple[list[int], int]:
    with pq.ParquetFile(path) as opened:
        batches = list(row_batches(opened, ["id"], rows=rows, batch_rows=batch_rows))
    found = [number for batch in batches for number in batch.column("id").to_pylist()]
    return found, max((batch.num_rows for batch in batches), default=0)


@pytest.mark.parametrize("batch_rows", [1, 7, 1_000, 65_536])
@pytest.mark.parametrize(
    "rows",
    [
        range(0, 0),
        range(0, 1),
        range(5_999, 6_001),
        range(6_000, 12_000),
        range(4_095, 4_097),
        range(11_111, 19_999),
        range(19_999, 20_000),
    ],
    ids=str,
)
def test_ranges_of_rows(file: Path, rows: range, batch_rows: int) -> None:
    if batch_rows == 1:
        rows = range(rows.start, min(rows.stop, rows.start + 50))
    found, largest = ids(file, rows, batch_rows)
    assert found == list(rows)
    assert largest <= batch_rows


def test_all_rows(file: Path) -> None:
    found, largest = ids(file, range(ROWS), 65_536)
    assert found == list(range(ROWS))
    assert largest == 6_000, "a batch ends with its row group"


def test_long_values_make_small_batches(tmp_path: Path) -> None:
    """Also where their repetition hides them from the file size, and where they come late."""
    short, long = "x", "y" * 30_000
    values = [short] * 30_000 + [long] * 3_000 + [short] * 1_000
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({"text": values}), path)
    assert path.stat().st_size < 1_000_000

    with pq.ParquetFile(path) as opened:
        batches = list(row_batches(opened, ["text"], rows=range(len(values)), batch_rows=8_192))

    assert sum(batch.num_rows for batch in batches) == len(values)
    assert pa.Table.from_batches(batches).column("text").to_pylist() == values
    too_large = [batch for batch in batches if batch.nbytes > 2 * BATCH_BYTES]
    assert len(too_large) == 1, "only the first such batch, before the size of its rows is known"
