"""Values that Python or the row reader cannot represent are still compared."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_index_service.build.entry.task import TaskStatus, run_task
from hudi_index_service.config import Settings
from hudi_index_service.hudi.snapshot import BaseFile
from hudi_index_service.index.factory import index_type
from hudi_index_service.index.files.local_copy import packed_index
from hudi_index_service.index.lucene.check import without_terms
from hudi_index_service.index.metadata.entry import EntryListing
from hudi_index_service.maintain.row_sample import RowSample
from hudi_index_service.storage.store import Storage
from tests.build.base_files import build_task, write_base_file

FAR = 3_700_007  # days after 1970: beyond the year 9999, the last that Python's dates know


def mismatches_of(storage: Storage, rows: pa.Table, *, indexed: list[str]) -> list[str]:
    """Builds an entry for the rows and compares every row with it."""
    base_file = write_base_file(storage, rows)
    return mismatches(storage, base_file, rows.schema, indexed)


def mismatches(
    storage: Storage, base_file: BaseFile, schema: pa.Schema, indexed: list[str]
) -> list[str]:
    columns = pa.schema([schema.field(name) for name in indexed])
    outcome = run_task(build_task(storage, base_file, columns))
    assert outcome.status is TaskStatus.BUILT, outcome.error
    entry = EntryListing(storage, "lucene").find(base_file)
    stored = entry.manifest.columns
    with packed_index(storage, entry, Settings()) as index:
        sample = RowSample(storage, base_file, index, schema, stored, 100)
        assert sample.positions == list(range(index.rows))
        return list(sample.compare(index_type("lucene")))


def test_dates_and_timestamps_beyond_the_year_9999(tmp_path: Path) -> None:
    days = pa.array([0, FAR, None], pa.int32()).cast(pa.date32())
    moments = pa.array([0, FAR * 86_400_000_000, None], pa.int64()).cast(pa.timestamp("us", "UTC"))
    rows = pa.table({"id": ["a", "b", "c"], "day": days, "at": moments})
    assert mismatches_of(Storage(tmp_path), rows, indexed=["id", "day", "at"]) == []


def test_dates_in_structs_arrays_and_maps(tmp_path: Path) -> None:
    far = pa.array([0, FAR, None], pa.int32()).cast(pa.date32())
    inner = pa.StructArray.from_arrays([far, pa.array(["x", "y", "z"])], ["day", "name"])
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 3, 3], pa.int32()), far)
    maps = pa.MapArray.from_arrays(pa.array([0, 1, 2, 3]), pa.array(["k", "l", "m"]), far)
    home = pa.StructArray.from_arrays([inner, lists, maps], ["inner", "days", "by_name"])
    rows = pa.table({"id": ["a", "b", "c"], "home": home, "days": lists})
    schema = rows.schema.append(pa.field("home.inner.name", pa.string()))
    base_file = write_base_file(Storage(tmp_path), rows)
    assert mismatches(Storage(tmp_path), base_file, schema, ["id", "home.inner.name", "days"]) == []


def test_a_different_date_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The entry's footer leads to other rows, whose dates Python cannot represent either."""

    def other_days(self: RowSample, metadata: bytes | None) -> pa.RecordBatch:
        days = [FAR, FAR + (metadata is not None)]
        return pa.record_batch({"day": pa.array(days, pa.int32()).cast(pa.date32())})

    monkeypatch.setattr(RowSample, "rows_with", other_days)
    rows = pa.table({"day": pa.array([FAR, FAR], pa.int32()).cast(pa.date32())})
    (wrong,) = mismatches_of(Storage(tmp_path), rows, indexed=["day"])
    assert wrong == "its copy of the base file's footer leads to other rows."


def broken_text(storage: Storage) -> tuple[BaseFile, pa.Schema]:
    """A base file with a string that is not UTF-8, as Spark's CAST(X'61FF' AS STRING) writes it."""
    schema = pa.schema({"id": pa.string(), "s": pa.string()})
    texts = pa.array([b"a\xff", b"ab", b"", None, b"\xed\xa0\x80"], pa.binary())
    (validity, offsets, data) = texts.buffers()
    as_text = pa.StringArray.from_buffers(len(texts), offsets, data, validity)
    rows = pa.table({"id": ["a", "b", "c", "d", "e"], "s": as_text}, schema=schema)
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, write_page_index=True)
    content = sink.getvalue().to_pybytes()
    path = "f1_0-1-2_20260101000000000.parquet"
    storage.create(path, content)
    return BaseFile(path, "", "f1", "20260101000000000", len(content)), schema


def test_text_that_is_not_utf8_is_not_damage(tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    base_file, schema = broken_text(storage)
    assert mismatches(storage, base_file, schema, ["id", "s"]) == []


def test_a_wrong_row_is_reported_next_to_text_that_is_not_utf8(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = Storage(tmp_path)
    base_file, schema = broken_text(storage)
    scanned = RowSample.scanned

    def others(self: RowSample) -> pa.RecordBatch:
        return scanned(self).set_column(0, "id", pa.array(["b", "a", "c", "d", "e"]))

    monkeypatch.setattr(RowSample, "scanned", others)
    wrong = mismatches(storage, base_file, schema, ["id", "s"])
    assert wrong == ["column id: row 0 is not indexed under its value."]


def test_checkindex_output_is_stripped_of_values() -> None:
    for line, expected in (
        ("ERROR: field f term [4d 65 69 65 72]: bad", "ERROR: field f term …: bad"),
        ("ERROR: packed value [-128, 77, 4] is low", "ERROR: packed value … is low"),
        ("ERROR: out of order: lastTerm=Meier, Anna term=A", "ERROR: out of order: last…"),
        ("ERROR: 3 != 4", "ERROR: 3 != 4"),
    ):
        assert without_terms(line) == expected
