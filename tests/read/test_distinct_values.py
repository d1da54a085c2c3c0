"""A scan checks conditions on text once for each distinct value that the file stores."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hudi_index_parquet import Footer, stripped_footer

from hudi_index_service.config import Settings
from hudi_index_service.errors import StorageFailed
from hudi_index_service.hudi.snapshot import BaseFile
from hudi_index_service.optimizer.plan import Access
from hudi_index_service.predicate import keep, negation_normal_form, parse_predicate
from hudi_index_service.predicate.expression import Predicate
from hudi_index_service.read.base_file import distinct_values
from hudi_index_service.read.base_file.distinct_values import DistinctValues
from hudi_index_service.read.base_file.file_scan import FileScan
from hudi_index_service.read.statistics import SliceStatistics
from hudi_index_service.storage.store import Storage

ROWS, GROUP_ROWS, PAGE_ROWS = 120_000, 50_000, 2_000
CITIES = 500

Scanned = Callable[[list[str]], FileScan]


@pytest.fixture(scope="module")
def table() -> pa.Table:
    dice = np.random.default_rng(7)
    cities, notes = dice.integers(0, CITIES, ROWS), dice.integers(0, 90, ROWS)
    return pa.table(
        {
            "number": np.arange(ROWS),
            "city": [None if each % 50 == 7 else f"city{each}" for each in cities],
            "note": [f"note {each}" for each in notes],
            "skewed": ["most" if each % 100 else f"rare {each}" for each in cities],
            "late": [f"city{row % 40}" for row in range(GROUP_ROWS)]
            + [f"unique text {row}" for row in range(GROUP_ROWS, ROWS)],
            "noise": dice.integers(0, 2**60, ROWS),
        }
    )


@pytest.fixture(scope="module")
def scanned(table: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> Scanned:
    """Scans of the table as a file whose text columns are dictionaries; `late` is one in its
    first row group only."""
    folder = tmp_path_factory.mktemp("texts")
    pq.write_table(
        table,
        folder / "f.parquet",
        version="1.0",
        compression="gzip",
        row_group_size=GROUP_ROWS,
        max_rows_per_page=PAGE_ROWS,
        write_page_index=True,
        use_dictionary=["city", "note", "late", "skewed"],
        dictionary_pagesize_limit=100_000,
    )

    def scan(columns: list[str]) -> FileScan:
        return scan_of(folder, pa.schema([table.schema.field(name) for name in columns]))

    return scan


def scan_of(folder: Path, schema: pa.Schema) -> FileScan:
    """A scan of the only file of a folder."""
    storage = Storage(folder)
    base_file = BaseFile("f.parquet", "", "", "", storage.size("f.parquet"))
    statistics = SliceStatistics("f.parquet", Access.SCAN)
    return FileScan(storage, base_file, schema, Settings(), statistics)


def parsed(where: str, table: pa.Table) -> Predicate:
    return parse_predicate(where, table.schema, time_zone="UTC")


@pytest.mark.parametrize(
    "where",
    [
        "city = 'city123'",
        "city = 'nowhere'",
        "city IN ('city3', 'city4', 'none')",
        "city IS NULL",
        "city <=> NULL",
        "city <=> 'city9'",
        "city LIKE 'city1_'",
        "city LIKE '%99'",
        "city RLIKE 'y4[0-3]$'",
        "city > 'city98'",
        "city < 'city100' OR city = 'city7'",
        "NOT (city > 'city1' OR city IS NULL)",
        "city NOT LIKE 'city%'",
        "city <> 'city1'",
        "city IS NOT NULL",
        "city = 'city5' AND note = 'note 3'",
        "note = 'note 4' AND number BETWEEN 30000 AND 90000",
        "city = 'city5' OR note = 'note 3'",
        "number > 119000 OR city = 'city1'",
        "skewed = 'most'",
        "skewed = 'rare 300'",
        "late = 'city5'",
        "late = 'unique text 77777' AND note LIKE 'note _'",
    ],
)
def test_rows_are_those_of_the_predicate(where: str, table: pa.Table, scanned: Scanned) -> None:
    assert_same_rows(where, table, scanned, "noise")


@pytest.mark.parametrize("most", [10, 2_000])
def test_values_of_many_rows_are_read_again(
    most: int, table: pa.Table, scanned: Scanned, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(distinct_values, "KEPT_VALUES", most)
    assert_same_rows("city IN ('city1', 'city2') AND note <= 'note 3'", table, scanned, "noise")
    assert_same_rows("city IS NULL AND note <= 'note 3'", table, scanned, "noise")


def test_a_column_whose_values_are_known_is_not_read_again(
    table: pa.Table, scanned: Scanned
) -> None:
    predicate = parsed("city = 'city123'", table)
    file_scan = scanned(["city"])
    (batch,) = (batch for _, batch in file_scan.candidates(predicate))
    assert set(batch["city"].to_pylist()) == {"city123"}
    footer = Footer(stripped_footer(file_scan.storage.local_path("f.parquet")))
    texts = footer.plan(np.arange(ROWS), ["city"]).page_bytes
    probe = footer.plan(np.arange(1), ["city"]).page_bytes
    assert file_scan.statistics.bytes_read == texts + probe


def assert_same_rows(where: str, table: pa.Table, scanned: Scanned, other: str) -> None:
    """A scan returns the matching rows, with the columns of the predicate and another one."""
    predicate = parsed(where, table)
    columns = [*sorted(predicate.columns()), other]
    file_scan = scanned(columns)
    found = []
    for row_ids, batch in file_scan.candidates(negation_normal_form(predicate)):
        assert batch[other].equals(table[other].take(np.array(row_ids)).combine_chunks())
        found.append(keep(predicate, batch))
    expected = keep(predicate, table).select(columns)
    assert pa.Table.from_batches(found, expected.schema).equals(expected)


def test_other_columns_are_read_only_where_a_value_matches(
    table: pa.Table, scanned: Scanned
) -> None:
    where = "city = 'city123'"
    predicate = parsed(where, table)
    file_scan = scanned(["city", "noise"])
    rows = [row for row_ids, _ in file_scan.candidates(predicate) for row in row_ids]
    assert rows == table["number"].filter(pa.compute.equal(table["city"], "city123")).to_pylist()
    footer = Footer(stripped_footer(file_scan.storage.local_path("f.parquet")))
    pages = footer.plan(np.array(rows), ["noise"]).page_bytes
    texts = footer.plan(np.arange(ROWS), ["city"]).page_bytes
    probe = footer.plan(np.arange(1), ["city"]).page_bytes
    assert file_scan.statistics.bytes_read <= pages + probe + 1.1 * texts
    assert file_scan.statistics.rows_checked == ROWS - len(rows)


@pytest.mark.parametrize(
    "where", ["city <> 'city1'", "late LIKE '%77'", "number = 70000", "skewed = 'most'"]
)
def test_texts_are_not_read_for_nothing(where: str, table: pa.Table, scanned: Scanned) -> None:
    """Nearly all values match, or nearly all rows; not all values are in a dictionary; or pages
    leave too few rows."""
    predicate = parsed(where, table)
    file_scan = scanned([*predicate.columns(), "noise"])
    rows = sum(batch.num_rows for _, batch in file_scan.candidates(predicate))
    assert file_scan.statistics.rows_checked == 0
    assert rows == (PAGE_ROWS if where.startswith("number") else ROWS)


def test_a_short_last_row_group_decides_nothing(tmp_path: Path) -> None:
    """Its dictionary has few values, of which more match."""
    cities = [f"city{row % 50}" for row in range(90_000)] + ["city1", "city2"] * 1_000
    table = pa.table({"city": cities})
    pq.write_table(table, tmp_path / "f.parquet", version="1.0", row_group_size=90_000)
    file_scan = scan_of(tmp_path, table.schema)
    predicate = parsed("city = 'city1'", table)
    found = [row for rows, _ in file_scan.candidates(predicate) for row in rows]
    assert found == [row for row, city in enumerate(cities) if city == "city1"]


def test_bytes_annotated_as_json_are_text_without_a_dictionary_of_text(tmp_path: Path) -> None:
    texts = pa.array(['{"a": 1}', "[]", '{"a": 2}', "{}"] * 15_000)
    table = pa.table({"json": texts.cast(pa.json_(pa.string()))})
    pq.write_table(table, tmp_path / "f.parquet", version="1.0", store_schema=False)
    assert "JSON" in str(pq.read_metadata(tmp_path / "f.parquet").schema)
    schema = pa.schema([("json", pa.string())])
    file_scan = scan_of(tmp_path, schema)
    predicate = parse_predicate("json = '[]'", schema, time_zone="UTC")
    found = [keep(predicate, batch) for _, batch in file_scan.candidates(predicate)]
    assert sum(batch.num_rows for batch in found) == 15_000


def test_a_disk_that_fails_is_named(table: pa.Table, scanned: Scanned, tmp_path: Path) -> None:
    file_scan = scanned(["city"])
    (tmp_path / "f.parquet").symlink_to("f.parquet")  # leads nowhere but to itself
    footer = Footer(stripped_footer(file_scan.storage.local_path("f.parquet")))
    values = DistinctValues(
        Storage(tmp_path), file_scan.base_file, footer, file_scan.columns, file_scan.statistics
    )
    with pytest.raises(StorageFailed, match=r"^STORAGE_FAILED: f\.parquet is not a readable"):
        values.rows(parsed("city = 'city123'", table), range(ROWS))


def test_a_limit_reads_the_first_portions(table: pa.Table, scanned: Scanned) -> None:
    predicate = parsed("city = 'city123'", table)
    file_scan = replace(scanned(["city", "noise"]), limit=1)
    _, first = next(iter(file_scan.candidates(predicate)))
    assert first.num_rows < ROWS
    assert file_scan.statistics.rows_checked == 0


def test_text_that_is_not_utf8_is_left_to_arrow(tmp_path: Path) -> None:
    texts = [b"fine", b"\xff\xfe", b"other", b"more", b"and more"] * 20_000
    table = pa.table({"number": np.arange(len(texts)), "city": pa.array(texts, pa.binary())})
    city = table["city"].combine_chunks().view(pa.string())  # text, whatever the bytes are
    pq.write_table(
        pa.table([table["number"], city], ["number", "city"]),
        tmp_path / "f.parquet",
        version="1.0",
        store_schema=False,
    )
    schema = pa.schema([("number", pa.int64()), ("city", pa.string())])
    file_scan = scan_of(tmp_path, schema)
    predicate = parse_predicate("city = 'other'", schema, time_zone="UTC")
    found = [keep(predicate, batch) for _, batch in file_scan.candidates(predicate)]
    assert sum(batch.num_rows for batch in found) == 20_000
