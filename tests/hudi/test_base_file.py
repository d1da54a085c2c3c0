"""Base files older than the table's schema: columns are matched by name as in Spark, in structs
too. An unknown name is an error with similar ones."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_index_service.columns import find_column
from hudi_index_service.errors import ColumnNotFound, TableFeatureUnsupported
from hudi_index_service.hudi.files.base_file import align, present_columns, read_columns
from hudi_index_service.hudi.files.parquet_file import open_parquet
from hudi_index_service.storage.store import Storage

STORED = pa.table(
    {
        "n": pa.array([1, 2, None], pa.int32()),
        "s": [{"a": 1, "b": {"c": "x"}}, {"a": 2, "b": None}, None],
    }
)


def read(folder: Path, columns: pa.Schema) -> pa.Table:
    pq.write_table(STORED, folder / "part.parquet")
    with open_parquet(Storage(str(folder)), "part.parquet") as file:
        return pa.Table.from_batches(
            read_columns(file, columns, batch_rows=2, source="part.parquet"), columns
        )


def test_struct_fields_are_read_as_columns(tmp_path: Path) -> None:
    columns = pa.schema([("s.b.c", pa.string()), ("n", pa.int64()), ("s.z", pa.int8())])
    assert read(tmp_path, columns).to_pydict() == {
        "s.b.c": ["x", None, None],
        "n": [1, 2, None],
        "s.z": [None, None, None],
    }


def test_struct_fields_are_matched_by_name(tmp_path: Path) -> None:
    inner = pa.struct([("new", pa.string()), ("c", pa.string())])
    columns = pa.schema([("s", pa.struct([("b", inner), ("a", pa.float64())]))])
    assert read(tmp_path, columns)["s"].to_pylist() == [
        {"b": {"new": None, "c": "x"}, "a": 1.0},
        {"b": None, "a": 2.0},
        None,
    ]


@pytest.mark.parametrize(
    ("column", "type"),
    [
        ("N", pa.int32()),
        ("s.A", pa.int64()),
        ("s", pa.struct([("A", pa.int64()), ("b", pa.struct([("c", pa.string())]))])),
        ("s", pa.struct([("new", pa.int64())])),
        ("s.b", pa.struct([("new", pa.string())])),
        ("s.a", pa.string()),
    ],
    ids=str,
)
def test_file_is_left_to_spark_where_spark_reads_other_values(
    tmp_path: Path, column: str, type: pa.DataType
) -> None:
    with pytest.raises(TableFeatureUnsupported, match=r"part\.parquet"):
        read(tmp_path, pa.schema([(column, type)]))


def test_only_columns_in_the_file_are_requested() -> None:
    columns = pa.schema(
        [("s.b.c", pa.string()), ("q", pa.int64()), ("s.q", pa.int8()), ("n", pa.int8())]
    )
    assert present_columns(STORED.schema, columns, source="part.parquet") == ["s.b.c", "n"]


def test_conversion_error_does_not_contain_the_value() -> None:
    stored = pa.record_batch({"at": pa.array([1_234_567_891], pa.timestamp("ns"))})
    wanted = pa.schema({"at": pa.timestamp("us")})
    with pytest.raises(
        TableFeatureUnsupported, match=r"f\.parquet: column at cannot be"
    ) as refusal:
        align(stored, wanted, source="f.parquet")
    assert "1234567891" not in str(refusal.value)


MANY = pa.schema(
    [
        ("_hoodie_record_key", pa.string()),
        *((f"measured_{number:02}", pa.int64()) for number in range(20)),
        ("Sender", pa.string()),
        ("place", pa.struct([("city", pa.string()), ("zip", pa.string())])),
    ]
)


@pytest.mark.parametrize(
    ("path", "remedy"),
    [
        (["sendr"], "Use one of its columns: Sender, and 22 others."),
        (["PLACE", "ctiy"], "Use one of its fields: place.city, and 1 other."),
        (["place", "street"], "Use one of its fields: place.city, place.zip."),
        (
            ["x"],
            "Use one of its columns: "
            f"{', '.join(f'measured_{number:02}' for number in range(10))}, and 13 others.",
        ),
    ],
)
def test_unknown_column_suggests_similar_names(path: list[str], remedy: str) -> None:
    with pytest.raises(ColumnNotFound) as raised:
        find_column(MANY, path)
    assert raised.value.remedy == remedy
