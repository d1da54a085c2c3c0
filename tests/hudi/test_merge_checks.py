"""Which slices are left to Spark: decided by their files alone, or by the error of hudi-rs."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_index_service.columns import column_field
from hudi_index_service.errors import NeedsSpark, StorageFailed, TableFeatureUnsupported
from hudi_index_service.hudi import BaseFile, FileSlice
from hudi_index_service.hudi.avro_schema import arrow_schema
from hudi_index_service.hudi.files.log_file import BlockType, HeaderKey
from hudi_index_service.hudi.hudi_rs import hudi_rs_errors_named
from hudi_index_service.hudi.hudi_rs.slice_merger import SliceMerger
from hudi_index_service.storage.store import Storage
from tests.hudi.log_blocks import block

WITH_POSITIONS = block(BlockType.AVRO_DATA, b"records", {HeaderKey.RECORD_POSITIONS: b"bitmap"})
WITHOUT_POSITIONS = block(BlockType.AVRO_DATA, b"records")
KEYS_IN_ROWS: dict[str, str] = {}
VIRTUAL_KEY = {"hoodie.populate.meta.fields": "false", "hoodie.table.recordkey.fields": "id"}
SEVERAL = {**VIRTUAL_KEY, "hoodie.table.recordkey.fields": "id, place.city"}


@pytest.fixture
def storage(tmp_path):
    return Storage(tmp_path)


def check(checks, storage, rows, properties, *log_files, columns=()):
    """Checks a slice with these rows in the base file and these bytes in the log files."""
    path = storage.local_path("base.parquet")
    pq.write_table(pa.table(rows), path)
    for number, data in enumerate(log_files):
        storage.local_path(f"log.{number}").write_bytes(data)
    base = BaseFile("base.parquet", "", "base", "20260101000000000", path.stat().st_size)
    logs = tuple(f"log.{number}" for number in range(len(log_files)))
    with pq.ParquetFile(path) as file:
        checks.check(FileSlice("", "base", base, logs), file, pa.schema(columns), properties)


@pytest.mark.parametrize(
    ("rows", "properties", "repeated"),
    [
        ({"_hoodie_record_key": ["a", "b", "a", "a"]}, KEYS_IN_ROWS, 2),
        ({"_hoodie_record_key": ["a", "b"], "id": [1, 1]}, KEYS_IN_ROWS, 0),
        ({"id": [1, 2, 1]}, VIRTUAL_KEY, 1),
        ({"id": [1, 1], "place": [{"city": "x"}, {"city": "y"}]}, SEVERAL, 0),
        ({"id": [1, 1], "place": [{"city": "x"}, {"city": "x"}]}, SEVERAL, 1),
        ({"id": [1, 1], "place": [{"city": None}, None]}, SEVERAL, 1),
    ],
)
def test_duplicate_keys_below_record_positions_are_refused(storage, rows, properties, repeated):
    if repeated:
        with pytest.raises(
            NeedsSpark, match=f"base.parquet holds {repeated} rows whose record key"
        ):
            check(SliceMerger(storage), storage, rows, properties, WITH_POSITIONS)
    else:
        check(SliceMerger(storage), storage, rows, properties, WITH_POSITIONS)
    check(SliceMerger(storage), storage, rows, properties, WITHOUT_POSITIONS)
    check(SliceMerger(storage), storage, rows, properties)


def test_base_file_without_its_key_column_is_refused(storage):
    with pytest.raises(NeedsSpark, match=r"base\.parquet has log files above it, but no column id"):
        check(SliceMerger(storage), storage, {"msg": ["x"]}, VIRTUAL_KEY, WITH_POSITIONS)


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (block(BlockType.CORRUPTED), "CORRUPTED"),
        (block(BlockType.HFILE_DATA), "HFILE_DATA"),
        (block(BlockType.CDC_DATA), "CDC_DATA"),
        (block(BlockType.COMMAND, header={HeaderKey.COMMAND_BLOCK_TYPE: b"1"}), "COMMAND"),
        (block(BlockType.COMMAND), "COMMAND"),
        (block(BlockType.AVRO_DATA, header={HeaderKey.IS_PARTIAL: b"true"}), "partial updates"),
        (b"something else", "no block begins there"),
    ],
)
def test_log_blocks_of_other_kinds_are_refused(storage, data, what):
    rows = {"_hoodie_record_key": ["a"]}
    with pytest.raises(NeedsSpark, match=rf"Log file log\.1 .*{what}"):
        check(SliceMerger(storage), storage, rows, {}, WITHOUT_POSITIONS, data)


def test_checked_files_are_not_read_again_until_they_grow(storage):
    checks, rows = SliceMerger(storage), {"_hoodie_record_key": ["a", "b"]}
    rollback = block(BlockType.COMMAND, header={HeaderKey.COMMAND_BLOCK_TYPE: b"0"})
    check(checks, storage, rows, {}, WITH_POSITIONS, rollback)
    before = storage.io.bytes_read
    check(checks, storage, rows, {}, WITH_POSITIONS, rollback)
    assert storage.io.bytes_read == before
    check(checks, storage, rows, {}, WITH_POSITIONS, rollback + WITHOUT_POSITIONS)
    assert storage.io.bytes_read == before + len(rollback + WITHOUT_POSITIONS)


def schema_in(unit):
    """A schema in Avro that counts times in that unit, in a column and in a struct."""
    at = {"type": "long", "logicalType": f"timestamp-{unit}"}
    inner = {"type": "record", "name": "s", "fields": [{"name": "at", "type": at}]}
    fields = [{"name": "at", "type": ["null", at]}, {"name": "s", "type": inner}]
    return json.dumps({"type": "record", "name": "row", "fields": fields})


@pytest.mark.parametrize("name", ["at", "s", "s.at"])
@pytest.mark.parametrize(("table", "written"), [("millis", "micros"), ("micros", "millis")])
def test_log_blocks_with_times_of_another_unit_are_refused(storage, table, written, name):
    column, number = column_field(arrow_schema(schema_in(table)), name), pa.field("n", pa.int64())

    def check_block(unit, column):
        data = block(BlockType.AVRO_DATA, header={HeaderKey.SCHEMA: schema_in(unit).encode()})
        rows = {"_hoodie_record_key": ["a"]}
        check(SliceMerger(storage), storage, rows, {}, data, columns=[column])

    check_block(table, column)
    check_block(written, number)
    with pytest.raises(NeedsSpark, match=rf"log\.0 counts the times of column {name} in another"):
        check_block(written, column)


class PanicException(BaseException):
    """Named as pyo3 names a panic in Rust code."""


@pytest.mark.parametrize(
    ("raised", "kind"),
    [
        (RuntimeError("Record merge strategy is not supported"), NeedsSpark),
        (
            RuntimeError(
                "partial-update column 'amount' has type Int32 but the table schema expects Int64"
            ),
            NeedsSpark,
        ),
        (PanicException("index out of bounds"), NeedsSpark),
        (RuntimeError("connection refused"), StorageFailed),
    ],
)
def test_hudi_rs_errors_are_mapped(raised: BaseException, kind: type[Exception]) -> None:
    with pytest.raises(kind, match="Slice s") as found, hudi_rs_errors_named("Slice s"):
        raise raised
    assert found.value.__cause__ is raised


def test_needs_spark_is_an_unsupported_feature() -> None:
    with pytest.raises(TableFeatureUnsupported, match="NEEDS_SPARK: Slice s") as found:
        raise NeedsSpark("Slice s cannot be merged.")
    assert "spark=" in found.value.remedy
