"""The schema of the last commit gives a column one type, its base file another that is stored the
same way. What is answered is what Spark 3.5 with Hudi 1.2.0 reads (tried, pair by pair); other
pairs are left to Spark by the column's name."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_index_service import Column, open_table
from hudi_index_service.errors import IndexServiceError, NeedsSpark, RowIdsUnavailable
from hudi_index_service.optimizer.plan import Access
from tests.edited_tables import ROWS, commit_again, put_with_columns
from tests.golden.table import Golden
from tests.indexed import indexed

MS = 1_720_569_600_123  # 2024-07-10
EPOCH = datetime(1970, 1, 1)
IN_2024 = EPOCH + timedelta(milliseconds=MS)
IN_1970 = EPOCH + timedelta(microseconds=MS)
TEXT = "123e4567-e89b-12d3-a456-426614174000"


def logical(avro: str, kind: str, **more: object) -> dict[str, object]:
    return {"type": avro, "logicalType": kind, **more}


def decimal(precision: int, scale: int) -> dict[str, object]:
    return logical("bytes", "decimal", precision=precision, scale=scale)


FILES = {
    "long": pa.array([MS], pa.int64()),
    "int": pa.array([20_000], pa.int32()),
    "millis": pa.array([MS], pa.timestamp("ms", "UTC")),
    "micros": pa.array([MS], pa.timestamp("us", "UTC")),
    "local_millis": pa.array([MS], pa.timestamp("ms")),
    "local_micros": pa.array([MS], pa.timestamp("us")),
    "date": pa.array([20_000], pa.date32()),
    "decimal_9_2": pa.array([Decimal("1.25")], pa.decimal128(9, 2)),
    "decimal_9_4": pa.array([Decimal("1.2345")], pa.decimal128(9, 4)),
    "decimal_18_2": pa.array([Decimal("1.25")], pa.decimal128(18, 2)),
    "decimal_18_4": pa.array([Decimal("1.2345")], pa.decimal128(18, 4)),
    "string": pa.array([TEXT], pa.string()),
    "bytes": pa.array([b"0123456789abcdef"], pa.binary(16)),
}
COMMITS = {
    "long": "long",
    "int": "int",
    "millis": logical("long", "timestamp-millis"),
    "micros": logical("long", "timestamp-micros"),
    "nanos": logical("long", "timestamp-nanos"),
    "local_millis": logical("long", "local-timestamp-millis"),
    "local_micros": logical("long", "local-timestamp-micros"),
    "date": logical("int", "date"),
    "time_millis": logical("int", "time-millis"),
    "time_micros": logical("long", "time-micros"),
    "decimal_9_2": decimal(9, 2),
    "decimal_9_4": decimal(9, 4),
    "decimal_18_2": decimal(18, 2),
    "decimal_18_4": decimal(18, 4),
    "string": "string",
    "uuid": logical("string", "uuid"),
    "bytes": "bytes",
}
ANSWERED: dict[str, dict[str, object]] = {
    "long": {
        **dict.fromkeys(("long", "nanos", "time_micros"), MS),
        **dict.fromkeys(("string", "uuid"), str(MS)),
    },
    "int": {
        **dict.fromkeys(("int", "long", "nanos", "time_millis", "time_micros"), 20_000),
        **dict.fromkeys(("string", "uuid"), "20000"),
    },
    "millis": dict.fromkeys(("millis", "micros"), IN_2024.replace(tzinfo=UTC)),
    "micros": {
        "micros": IN_1970.replace(tzinfo=UTC),
        "local_millis": IN_1970,
        "local_micros": IN_1970,
        # Not millis: 2024 in Hudi 1.1 and later, 1970 before.
    },
    "local_millis": dict.fromkeys(("local_millis", "local_micros"), IN_2024),
    "local_micros": dict.fromkeys(("local_millis", "local_micros"), IN_1970),
    "date": {"date": date(2024, 10, 4)},
    "decimal_9_2": dict.fromkeys(("decimal_9_2", "decimal_18_2", "decimal_18_4"), Decimal("1.25")),
    "decimal_9_4": dict.fromkeys(("decimal_9_4", "decimal_18_4"), Decimal("1.2345")),
    "decimal_18_2": {"decimal_18_2": Decimal("1.25")},
    "decimal_18_4": {"decimal_18_4": Decimal("1.2345")},
    "string": dict.fromkeys(("string", "uuid"), TEXT),
    "bytes": {"bytes": b"0123456789abcdef"},
}
SPARK_FAILS = {("local_micros", "millis"), ("local_micros", "micros")}
"""Such a column is answered as the file states it. Files with INT96 have the same Arrow type."""


@pytest.mark.parametrize("stored", FILES)
def test_a_column_is_read_as_spark_reads_it_or_left_to_spark_by_name(golden, tmp_path, stored):
    values = pa.concat_arrays([FILES[stored]] * ROWS)
    put_with_columns(golden, tmp_path, {name: (values, avro) for name, avro in COMMITS.items()})
    table = open_table(tmp_path)
    for name in COMMITS:
        scan = table.scan("id IS NOT NULL", columns=[name])
        if name in ANSWERED[stored]:
            expected = [ANSWERED[stored][name]] * ROWS
            assert scan.to_arrow().column(name).to_pylist() == expected, name
        elif (stored, name) not in SPARK_FAILS:
            with pytest.raises(NeedsSpark, match=rf"column {name} (as|in) "):
                scan.to_arrow()


MICROS = pa.timestamp("us", "UTC")
MILLIS = pa.timestamp("ms", "UTC")


def record(unit: object) -> dict[str, object]:
    return {"type": "record", "name": "s_record", "fields": [{"name": "at", "type": unit}]}


def types(unit: str) -> dict[str, object]:
    at = COMMITS[unit]
    return {"at": at, "nested": record(at), "many": {"type": "array", "items": at}}


def times(unit: pa.DataType) -> dict[str, pa.Array]:
    numbers = [MS + row for row in range(ROWS)]
    return {
        "at": pa.array(numbers, unit),
        "nested": pa.array([{"at": each} for each in numbers], pa.struct([("at", unit)])),
        "many": pa.array([[each] for each in numbers], pa.list_(unit)),
    }


def put(golden: Golden, path: Path, file_unit: pa.DataType, commit_unit: str) -> None:
    own, values = types(commit_unit), times(file_unit)
    put_with_columns(golden, path, {name: (values[name], own[name]) for name in own})


LEFT_TO_SPARK = (NeedsSpark, RowIdsUnavailable)
IN_RANGE = {
    "at": "at > '2024-01-01'",
    "nested.at": "nested.at > '2024-01-01'",
    "many": "array_contains(many, TIMESTAMP '2024-07-10 00:00:00.123')",
}


@pytest.mark.parametrize("index_type", ["btree", "lucene"])
def test_an_entry_from_before_the_schema_counted_milliseconds_answers_nothing(
    golden, tmp_path, index_type
):
    put(golden, tmp_path, MICROS, "micros")
    table = indexed(tmp_path, [*IN_RANGE, "id"], using=index_type)
    assert all(table.scan(where).count() == 0 for where in IN_RANGE.values())
    commit_again(tmp_path, types("millis"))
    for again in (table, open_table(tmp_path)):
        for column, where in IN_RANGE.items():
            root = column.split(".")[0]
            for use_index in ("auto", "never"):
                scan = again.scan(where, columns=["id"], use_index=use_index)
                for answer in (scan.count, scan.exists, scan.row_ids, scan.to_arrow):
                    with pytest.raises(LEFT_TO_SPARK, match=f"column {root}.* in microseconds"):
                        answer()
        by_id = again.scan("id = '7'", columns=["id"])
        plan = by_id.explain().plan
        assert plan.count(Access.INDEX) == 1
        assert by_id.to_arrow().to_pylist() == [{"id": "7"}]


def test_milliseconds_in_schema_and_file_are_indexed(golden, tmp_path):
    put(golden, tmp_path, MILLIS, "millis")
    table = open_table(tmp_path)
    stored = [Column(name=name, options={"stored": "true"}) for name in ("at", "many", "id")]
    indexed(table, [*stored, "nested.at"])
    again = open_table(tmp_path)
    for where, rows in zip(IN_RANGE.values(), (ROWS, ROWS, 1), strict=True):
        for scan in (again.scan(where), again.scan(where, use_index="never")):
            found = scan.to_arrow()
            assert scan.count() == found.num_rows == rows
            assert found.column("at").type == MICROS
        plan = again.scan(where, use_index="require").explain().plan
        assert plan.count(Access.INDEX) == 1
    moment = IN_2024.replace(tzinfo=UTC)
    by_stored = again.scan("at < '2024-07-10 00:00:00.124'", columns=["at", "many", "id"])
    (row,) = by_stored.to_arrow().to_pylist()
    assert row == {"at": moment, "many": [moment], "id": "0"}
    assert [each.stored for each in by_stored.statistics.slices] == [True]
    assert again.scan("at < '1971-01-01'").count() == 0


def test_relabelled_times_are_not_indexed(golden, tmp_path):
    put(golden, tmp_path, MICROS, "millis")
    table = open_table(tmp_path)
    table.create_index("by_time", ["at"])
    with pytest.raises(IndexServiceError, match="column at in microseconds"):
        table.build(strategy="all").raise_for_failures()
    with pytest.raises(NeedsSpark, match="column at in microseconds"):
        table.scan("at > '2024-01-01'").count()
