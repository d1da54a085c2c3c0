"""Hudi's own types in the table's schema. Spark 3.5 cannot write each of them: schemas are Avro as
Hudi 1.2.0 writes it, made by hand."""

import json
import re
import struct
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_index_service import open_table
from hudi_index_service.columns import hudi_type, hudi_types
from hudi_index_service.errors import NeedsSpark, StorageFailed, TableFeatureUnsupported
from hudi_index_service.hudi.avro_schema import (
    UnknownAvroType,
    arrow_schema,
    unreadable_column,
)
from hudi_index_service.hudi.files.base_file import align
from hudi_index_service.hudi.gate import unsupported_columns
from tests.golden.table import Golden

BYTES = {"FLOAT": 4, "DOUBLE": 8, "INT8": 1}
BLOB = {
    "type": "record",
    "name": "blob",
    "logicalType": "blob",
    "fields": [
        {"name": "type", "type": {"type": "enum", "name": "kind", "symbols": ["INLINE"]}},
        {"name": "data", "type": ["null", "bytes"]},
    ],
}
VARIANT = {
    "type": "record",
    "name": "variant",
    "logicalType": "variant",
    "fields": [{"name": "metadata", "type": "bytes"}, {"name": "value", "type": "bytes"}],
}


def vector(dimension: int, element: str = "FLOAT") -> dict[str, object]:
    return {
        "type": "fixed",
        "name": f"vector_{element.lower()}_{dimension}",
        "size": dimension * BYTES.get(element, 2),
        "logicalType": "vector",
        "dimension": dimension,
        "elementType": element,
        "storageBacking": "FIXED_BYTES",
    }


def record(**columns: object) -> str:
    fields = [{"name": name, "type": ["null", kind]} for name, kind in columns.items()]
    return json.dumps({"type": "record", "name": "row", "fields": fields})


@pytest.mark.parametrize(
    ("element", "arrow", "shown"),
    [
        ("FLOAT", pa.float32(), "VECTOR(3)"),
        ("DOUBLE", pa.float64(), "VECTOR(3, DOUBLE)"),
        ("INT8", pa.int8(), "VECTOR(3, INT8)"),
    ],
)
def test_vectors_are_arrays_as_in_spark(element: str, arrow: pa.DataType, shown: str) -> None:
    avro = record(first=vector(3, element), second=f"vector_{element.lower()}_3")
    schema = arrow_schema(avro)
    assert schema.types == [pa.list_(arrow)] * 2
    assert [hudi_type(schema, name) for name in ("first", "SECOND")] == [shown] * 2


@pytest.mark.parametrize(
    "other", [vector(3, "HALF"), {**vector(3), "storageBacking": "FIXED_SIZE_LIST"}]
)
def test_unknown_vectors_are_refused(other: dict[str, object]) -> None:
    with pytest.raises(UnknownAvroType, match="a vector"):
        arrow_schema(record(column=other))


def test_the_type_of_a_column_is_that_of_its_fields() -> None:
    within = {"type": "record", "name": "s", "fields": [{"name": "b", "type": BLOB}]}
    schema = arrow_schema(record(id="string", s=within, blobs={"type": "array", "items": "blob"}))
    assert hudi_type(schema, "id") is None
    assert hudi_type(schema, "s") is None
    assert hudi_type(schema, "s.b") == hudi_type(schema, "s.b.type") == "BLOB"
    assert hudi_types(schema.field("s")) == hudi_types(schema.field("blobs")) == {"BLOB"}


def test_columns_with_a_variant_are_left_to_spark_by_name() -> None:
    shredded = {**VARIANT, "name": "shredded"}
    shredded["fields"] = [*VARIANT["fields"], {"name": "typed_value", "type": "long"}]
    schema = arrow_schema(
        record(
            id="string",
            v=VARIANT,
            shredded=shredded,
            values={"type": "map", "values": {"type": "array", "items": "variant"}},
            picture=BLOB,
            floats=vector(2),
        )
    )
    reasons = unsupported_columns(schema)
    assert list(reasons) == ["v", "shredded", "values"]
    assert reasons["values"] == (
        "Column values has or holds the type VARIANT, whose values only Spark reads."
    )


def without_schema(path: Path, instead: str | None = None) -> Path:
    """A table of one commit, without the schema in that commit, as no writer here leaves it."""
    (commit,) = (path / ".hoodie").glob("*.deltacommit")
    metadata = json.loads(commit.read_text())
    metadata["extraMetadata"]["schema"] = instead
    commit.write_text(json.dumps(metadata))
    return path


def test_a_schema_that_only_base_files_hold(golden: Golden, tmp_path: Path) -> None:
    path = golden("version_6").put(tmp_path, "written")
    schema = open_table(path).hudi_table.schema()
    without = open_table(without_schema(path))
    assert without.hudi_table.schema().equals(schema)
    assert without.scan("amount = 12").count() == 1


@pytest.mark.parametrize("schema", ["{", "7", '{"type": "record", "name": "r"}'])
def test_a_damaged_schema_is_named(golden: Golden, tmp_path: Path, schema: str) -> None:
    path = without_schema(golden("version_6").put(tmp_path, "written"), schema)
    with pytest.raises(StorageFailed, match="is no Avro schema"):
        open_table(path).scan("amount = 12").count()


def test_base_files_do_not_tell_vectors_from_bytes(golden: Golden, tmp_path: Path) -> None:
    path = without_schema(golden("version_6").put(tmp_path, "written"))
    for file in path.rglob("*.parquet"):
        rows = pq.read_table(file)
        vectors = pa.array([bytes(12)] * len(rows), pa.binary(12))
        pq.write_table(rows.append_column("v", vectors), file)
    with pytest.raises(TableFeatureUnsupported, match="whether column v holds vectors"):
        open_table(path).scan("amount = 12").count()


def test_hudi_rs_does_not_merge_blobs() -> None:
    assert unreadable_column(record(id="string", b=BLOB)) == "column b holds a BLOB"
    assert unreadable_column(record(id="string", f=vector(2), v=VARIANT)) is None


@pytest.mark.parametrize(
    ("element", "code", "values"),
    [
        (pa.float32(), "<2f", [(1.5, float("-inf")), (-0.0, 3.0), (4.0, 5.0)]),
        (pa.float64(), "<2d", [(1 / 3, 1e300), (-0.0, 3.0), (4.0, 5.0)]),
        (pa.int8(), "<2b", [(-128, 127), (0, -1), (4, 5)]),
    ],
)
def test_stored_vectors_become_arrays(
    element: pa.DataType, code: str, values: list[tuple[float, float]]
) -> None:
    stored = pa.array(
        [struct.pack(code, *values[0]), None, *(struct.pack(code, *each) for each in values[1:])],
        pa.binary(struct.calcsize(code)),
    )
    expected = [list(values[0]), None, *map(list, values[1:])]
    column = pa.schema([pa.field("v", pa.list_(pa.field("element", element)))])
    for start in range(5):
        batch = pa.record_batch([stored.slice(start)], names=["v"])
        aligned = align(batch, column, source="f.parquet")
        aligned.validate(full=True)
        assert aligned.to_pylist() == [{"v": each} for each in expected[start:]]
        assert str(aligned.to_pylist()) == str([{"v": each} for each in expected[start:]])


def test_bytes_that_are_no_vectors_are_refused() -> None:
    batch = pa.record_batch([pa.array([b"12345"], pa.binary(5))], names=["v"])
    for target in (pa.list_(pa.float32()), pa.list_(pa.string()), pa.list_(pa.int64())):
        with pytest.raises(NeedsSpark, match="column v"):
            align(batch, pa.schema([("v", target)]), source="f.parquet")


@pytest.mark.parametrize("whole", [True, False], ids=["the table's format", "one file"])
def test_tables_with_lance_files_are_refused(golden: Golden, tmp_path: Path, whole: bool) -> None:
    """Lance files take a jar that is not here: a table is made to look as if it had one."""
    path = golden("names_of_cities").put(tmp_path)
    if whole:
        properties = path / ".hoodie" / "hoodie.properties"
        text = properties.read_text().replace("file.format=PARQUET", "file.format=LANCE")
        properties.write_text(text)
        reason = (
            "The table's base files are not Parquet files (hoodie.table.base.file.format=LANCE)"
        )
    else:
        (file,) = path.glob("*.parquet")
        file.rename(file.with_suffix(".lance"))
        reason = f"{file.with_suffix('.lance').name} is a data file, but not a Parquet file"
    with open_table(path) as table:
        if whole:
            with pytest.raises(TableFeatureUnsupported, match=re.escape(reason)):
                table.create_index("by_name", ["name"])
        for refused in (
            lambda: table.scan("name = 'name1'").to_arrow(),
            lambda: table.scan("name = 'name1'").count(),
            lambda: table.build(strategy="all"),
        ):
            with pytest.raises(TableFeatureUnsupported, match=re.escape(reason)) as raised:
                refused()
            assert "spark=" in raised.value.remedy
