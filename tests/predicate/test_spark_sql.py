"""The SQL text of literals with unusual values."""

import math
from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from hudi_index_service.predicate.values import identifier_sql, literal_sql, string_sql

pytestmark = pytest.mark.fast

LITERALS = [
    (pa.scalar(-5, pa.int8()), "-5Y"),
    (pa.scalar(7, pa.int16()), "7S"),
    (pa.scalar(7, pa.int32()), "7"),
    (pa.scalar(-(2**63), pa.int64()), "-9223372036854775808L"),
    (pa.scalar(0.1, pa.float32()), "0.1F"),
    (pa.scalar(1e-45, pa.float32()), "1e-45F"),
    (pa.scalar(1e300), "1e+300D"),
    (pa.scalar(math.nan), "CAST('NaN' AS DOUBLE)"),
    (pa.scalar(-math.inf, pa.float32()), "CAST('-Infinity' AS FLOAT)"),
    (pa.scalar(Decimal("1.50"), pa.decimal128(10, 2)), "1.50BD"),
    (pa.scalar(Decimal("0E-10"), pa.decimal128(38, 10)), "0.0000000000BD"),
    (pa.scalar(True), "TRUE"),
    (pa.scalar(b"\x00\xff"), "X'00FF'"),
    (pa.scalar(0, pa.date32()), "DATE'1970-01-01'"),
    (pa.scalar(2_932_897, pa.date32()), "DATE'+10000-01-01'"),
    (pa.scalar(-719_893, pa.date32()), "DATE'-0001-01-01'"),
    (pa.scalar(-1, pa.timestamp("us", "UTC")), "TIMESTAMP'1969-12-31 23:59:59.999999Z'"),
    (pa.scalar(datetime(2024, 1, 1), pa.timestamp("us")), "TIMESTAMP_NTZ'2024-01-01 00:00:00'"),
    (
        pa.scalar(datetime(2024, 1, 1, tzinfo=UTC), pa.timestamp("ms", "UTC")),
        "TIMESTAMP'2024-01-01 00:00:00Z'",
    ),
    (pa.scalar("it's\n\\%\0" + "1", pa.large_string()), r"'it\'s\n\\%\0001'"),
]


@pytest.mark.parametrize(("value", "text"), LITERALS, ids=[text for _, text in LITERALS])
def test_text_of_literals(value, text):
    assert literal_sql(value) == text


def test_spark_reads_the_text_of_literals_as_the_same_values(spark):
    row = spark.sql("SELECT " + ", ".join(f"{text}" for _, text in LITERALS)).schema
    names = [field.dataType.simpleString() for field in row]
    assert names[:4] == ["tinyint", "smallint", "int", "bigint"]
    assert names[-1] == "string"
    casts = ", ".join(f"CAST({text} AS STRING)" for _, text in LITERALS if text[0] in "DT'-")
    printed = spark.sql(f"SELECT {casts}").collect()[0]
    assert list(printed) == [
        "-5",
        "-9223372036854775808",
        "true",
        "1970-01-01",
        "+10000-01-01",
        "-0001-01-01",
        "1969-12-31 23:59:59.999999",
        "2024-01-01 00:00:00",
        "2024-01-01 00:00:00",
        "it's\n\\%\x001",
    ]


def test_names_are_back_quoted():
    assert identifier_sql("a`b c") == "`a``b c`"
    assert string_sql("") == "''"


def test_type_without_literals_raises_a_type_error():
    with pytest.raises(TypeError, match="list"):
        literal_sql(pa.scalar([1]))
