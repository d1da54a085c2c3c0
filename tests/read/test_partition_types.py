"""Partition columns of every type: what Spark reads from the path, or a refusal by name.

A record that stays in its partition, although a later version of it names another value, tells the
path's value from the file's.
"""

from pathlib import Path
from typing import Any

import pytest

from hudi_index_service import open_table
from hudi_index_service.errors import TableFeatureUnsupported
from hudi_index_service.hudi.spark import SparkHudiReader
from tests.golden.recipes.shapes import HIVE_STYLE, STAYS, URL_ENCODED
from tests.hudi_tables import hudi_options, write
from tests.same_rows import assert_same_rows

pytestmark = [pytest.mark.slow, pytest.mark.spark]

# Column → its type and two values.
CERTAIN = {
    "flag": ("boolean", "true", "false"),
    "number": ("int", "7", "-8"),
    "large": ("bigint", "3000000000", "5"),
    "single": ("float", "0.1f", "1e10f"),
    "double": ("double", "0.1", "-1e-20"),
    "price": ("decimal(10, 2)", "1.50", "-20.00"),
    "day": ("date", "date'2024-02-29'", "date'1969-12-31'"),
    "name": ("string", "'a'", "'B c'"),
}
SLASHES = {"dated": ("string", "'2024/07/10'", "'2024/07/11'")}
TIMES = {"seen": ("timestamp", "timestamp'2024-07-10 12:34:56.789'", "timestamp'1969-12-31 23:59'")}
BYTES = {"raw": ("binary", "X'6162'", "X'63'")}

Kinds = dict[str, tuple[str, str, str]]


def written(
    spark: Any, path: Path, kinds: Kinds, operation: str, table_type: str, **extra: str
) -> None:
    """Six rows in three partitions, one of them NULL; then a row that names another partition."""

    def rows(stop: int, shift: int) -> Any:
        columns = (
            f"CASE (id + {shift}) % 3 WHEN 0 THEN cast({one} AS {kind}) "
            f"WHEN 1 THEN cast({other} AS {kind}) END AS {name}"
            for name, (kind, one, other) in kinds.items()
        )
        return spark.range(stop).selectExpr(
            "cast(id AS string) AS id", "id AS n", f"cast({shift} AS bigint) AS ts", *columns
        )

    options = hudi_options("t", table_type, partition_column=",".join(kinds), **STAYS, **extra)
    write(rows(6, 0), path, options, operation)
    write(rows(1, 1), path, options, "upsert")


@pytest.mark.parametrize(
    ("operation", "table_type", "extra"),
    [
        ("bulk_insert", "COPY_ON_WRITE", {}),
        ("insert", "MERGE_ON_READ", HIVE_STYLE),
        # Not hive style and encoded at once: Hudi 1.2.0 then compares a NULL partition value, and
        # fails with a NullPointerException.
        ("upsert", "COPY_ON_WRITE", URL_ENCODED),
    ],
)
def test_values_are_those_of_the_path(
    spark: Any, tmp_path: Path, operation: str, table_type: str, extra: dict[str, str]
) -> None:
    written(spark, tmp_path, CERTAIN, operation, table_type, **extra)
    sparks = SparkHudiReader(spark, tmp_path)
    table = open_table(tmp_path)
    table.create_index("by_n", ["n", *(each for each in CERTAIN if each != "price")])
    table.build(strategy="all").raise_for_failures()
    wheres = ["n < 4"]
    for name, (kind, one, _) in CERTAIN.items():
        value = one if kind == "date" else f"cast({one} AS {kind})"
        wheres += [f"{name} IS NULL", f"{name} = {value}", f"n < 4 AND {name} >= {value}"]
    for where in wheres:
        for use_index in ("never", "auto"):
            scan = table.scan(where, use_index=use_index)  # type: ignore[arg-type]
            found = scan.to_arrow()
            assert_same_rows(found, sparks.read(found.column_names, where))
            assert scan.count() == found.num_rows, where


def test_a_value_with_slashes_is_that_of_the_path(spark: Any, tmp_path: Path) -> None:
    written(spark, tmp_path, SLASHES, "bulk_insert", "COPY_ON_WRITE")
    sparks = SparkHudiReader(spark, tmp_path)
    for where in ("dated = '2024/07/10'", "dated IS NULL", "n < 3"):
        found = open_table(tmp_path).scan(where).to_arrow()
        assert_same_rows(found, sparks.read(found.column_names, where))


@pytest.mark.parametrize(("kinds", "name"), [(TIMES, "seen"), (BYTES, "raw")])
def test_uncertain_values_are_refused_by_name(
    spark: Any, tmp_path: Path, kinds: Kinds, name: str
) -> None:
    written(spark, tmp_path, kinds, "insert", "COPY_ON_WRITE")
    sparks = SparkHudiReader(spark, tmp_path)
    table = open_table(tmp_path)
    with pytest.raises(TableFeatureUnsupported, match=f"Column {name} has its values from"):
        table.scan(f"{name} IS NULL").count()
    with pytest.raises(TableFeatureUnsupported, match=f"Column {name} has its values from"):
        table.scan("n = 3").to_arrow()
    found = table.scan("n >= 3", columns=["id", "n"]).to_arrow()
    assert_same_rows(found, sparks.read(["id", "n"], "n >= 3"))
