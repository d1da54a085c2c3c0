"""Base files older than the table's schema: columns by name, inside structs too, as in Spark."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_index_service.errors import TableFeatureUnsupported
from hudi_index_service.storage import Storage
from hudi_index_service.table.base_file import align, present_columns, read_columns
from hudi_index_service.table.parquet_file import open_parquet

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


def test_fields_of_structs_are_columns(tmp_path: Path) -> None:
    columns = pa.schema([("s.b.c", pa.string()), ("n", pa.int64()), ("s.z", pa.int8())])
    assert read(tmp_path, columns).to_pydict() == {
        "s.b.c": ["x", None, None],
        "n": [1, 2, None],
        "s.z": [None, None, None],
    }


def test_structs_take_their_fields_by_name(tmp_path: Path) -> None:
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
def test_where_spark_would_find_another_value_the_file_is_sparks(
    tmp_path: Path, column: str, type: pa.DataType
) -> None:
    with pytest.raises(TableFeatureUnsupported, match=r"part\.parquet"):
        read(tmp_path, pa.schema([(column, type)]))


def test_only_what_the_file_has_is_asked_of_it() -> None:
    columns = pa.schema(
        [("s.b.c", pa.string()), ("q", pa.int64()), ("s.q", pa.int8()), ("n", pa.int8())]
    )
    assert present_columns(STORED.schema, columns, source="part.parquet") == ["s.b.c", "n"]


def test_a_value_that_cannot_be_converted_is_not_told() -> None:
    stored = pa.record_batch({"at": pa.array([1_234_567_891], pa.timestamp("ns"))})
    wanted = pa.schema({"at": pa.timestamp("us")})
    with pytest.raises(
        TableFeatureUnsupported, match=r"f\.parquet: column at cannot be"
    ) as refusal:
        align(stored, wanted, source="f.parquet")
    assert "1234567891" not in str(refusal.value)
