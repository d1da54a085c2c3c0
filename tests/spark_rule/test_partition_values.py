"""Queries on partition columns, of every type and spelling, give Spark's rows, by `scan` and in a
session with the rule, or they are left to Spark by the column's name.

A record that stays in its partition, although a later version of it names another value, tells the
path's value from the file's.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from hudi_index_service import IndexedTable, open_table
from hudi_index_service.errors import TableFeatureUnsupported
from hudi_index_service.sql import last_queries
from hudi_index_service.sql.rule.uses import RelationUse
from tests.golden.recipes.shapes import HIVE_STYLE, STAYS, URL_ENCODED
from tests.hudi_tables import NO_METADATA_TABLE, hudi_options, write
from tests.indexed import indexed
from tests.partition_kinds import KINDS, REFUSED, Kind
from tests.spark_rule import needs
from tests.spark_rule.conftest import rows_of

CERTAIN = {name: kind for name, kind in KINDS.items() if kind.value != REFUSED}
UNCERTAIN = {name: kind for name, kind in KINDS.items() if kind.value == REFUSED}


def rows(spark: SparkSession, kinds: Mapping[str, Kind], count: int, version: int) -> DataFrame:
    """Rows in three partitions, one of them NULL in all columns."""
    columns = (
        f"CASE (id + {version}) % 3 WHEN 0 THEN cast({kind.one} AS {kind.type}) "
        f"WHEN 1 THEN cast({kind.other} AS {kind.type}) END AS {name}"
        for name, kind in kinds.items()
    )
    return spark.range(count).selectExpr(
        "cast(id AS string) AS id", "id AS n", f"cast({version} AS bigint) AS ts", *columns
    )


def written(
    spark: SparkSession,
    path: Path,
    kinds: Mapping[str, Kind],
    writer: str,
    table_type: str,
    layout: Mapping[str, str],
) -> IndexedTable:
    """An indexed table of six rows, the first of which a later version wants moved."""
    names = ",".join(kinds)
    # Hudi lists partitions from its metadata table, or from the storage.
    metadata = {} if writer == "upsert" else NO_METADATA_TABLE
    options = hudi_options("kinds", table_type, partition_column=names, **STAYS, **layout)
    options |= metadata
    if writer == "sql":
        types = ", ".join(f"{name} {kind.type}" for name, kind in kinds.items())
        properties = {
            "type": "mor" if table_type == "MERGE_ON_READ" else "cow",
            "primaryKey": "id",
            "preCombineField": "ts",
            "hoodie.datasource.write.hive_style_partitioning": "false",
            "hoodie.datasource.write.partitionpath.urlencode": "false",
            **layout,
            **metadata,
        }
        listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
        spark.sql(
            f"CREATE TABLE kinds (id string, n bigint, ts bigint, {types}) USING hudi "
            f"PARTITIONED BY ({names}) LOCATION '{path}' TBLPROPERTIES ({listed})"
        )
        rows(spark, kinds, 6, 0).createOrReplaceTempView("rows_of_kinds")
        spark.sql("INSERT INTO kinds SELECT * FROM rows_of_kinds")
        spark.sql("DROP TABLE kinds")
        # As SQL has set them.
        kept = ("hoodie.datasource.write.keygenerator", "hoodie.datasource.write.hive", *layout)
        options = {key: each for key, each in options.items() if not key.startswith(kept)}
        options |= {key: each for key, each in properties.items() if "datasource" in key}
    else:
        write(rows(spark, kinds, 6, 0), path, options, writer)
    write(rows(spark, kinds, 1, 1), path, options, "upsert")
    return indexed(path, ["n"], name="by_n")


Asked = Callable[[IndexedTable, str, Sequence[str]], tuple[bool, RelationUse]]


@pytest.fixture
def asked(spark: SparkSession, enabled: SparkSession, read_by_tasks: None) -> Asked:
    """Compares a query's rows in plain Spark with those of scans, if they are not left to Spark,
    and of a session with the rule. Returns whether `scan` answers the query, and how the session
    read the table."""

    @cache
    def frames(uri: str) -> list[DataFrame]:
        return [session.read.format("hudi").load(uri) for session in (spark, enabled)]

    def ask(table: IndexedTable, where: str, columns: Sequence[str]) -> tuple[bool, RelationUse]:
        plain, frame = (each.where(where).select(*columns) for each in frames(table.uri))
        expected = rows_of(plain)
        assert rows_of(frame) == expected, where
        (use,) = last_queries(enabled)[-1]
        for use_index in ("never", "auto"):
            scan = table.scan(where, columns=columns, use_index=use_index)  # type: ignore[arg-type]
            try:
                found = scan.to_arrow().to_pylist()
            except TableFeatureUnsupported:
                return False, use
            assert sorted(repr(Row(**each)) for each in found) == expected, where
            assert scan.count() == len(expected), where
        return True, use

    return ask


@pytest.mark.parametrize(
    ("writer", "table_type", "layout", "zone"),
    [
        ("bulk_insert", "COPY_ON_WRITE", {}, "UTC"),
        ("insert", "MERGE_ON_READ", HIVE_STYLE, "America/New_York"),
        # Not hive style and encoded at once: Hudi 1.2.0 then compares a NULL partition value, and
        # fails with a NullPointerException.
        ("upsert", "COPY_ON_WRITE", URL_ENCODED, "Asia/Tokyo"),
        pytest.param("sql", "COPY_ON_WRITE", HIVE_STYLE, "UTC", marks=needs.HIVE),
        pytest.param("sql", "MERGE_ON_READ", {}, "America/New_York", marks=needs.HIVE),
    ],
)
def test_values_are_those_of_the_path(
    spark: SparkSession,
    asked: Asked,
    settings_of_both: Callable[[str, str], None],
    tmp_path: Path,
    writer: str,
    table_type: str,
    layout: Mapping[str, str],
    zone: str,
) -> None:
    literals = {name: f"cast({each.one} AS {each.type})" for name, each in CERTAIN.items()}
    literals["day"] = CERTAIN["day"].one
    equal = [f"{name} = {value}" for name, value in literals.items()]
    table = written(spark, tmp_path, CERTAIN, writer, table_type, layout)
    columns = ["n", *CERTAIN]
    wheres = [
        "n < 4",
        " AND ".join(f"{name} IS NULL" for name in CERTAIN),
        " AND ".join(equal[::2]),
        " AND ".join(equal[1::2]),
    ]
    settings_of_both("spark.sql.session.timeZone", zone)
    for where in wheres:
        answered, use = asked(table, where, columns)
        assert answered, where
        assert use.by_index, (where, use.reason)


@pytest.mark.parametrize("name", UNCERTAIN)
@pytest.mark.parametrize(
    ("writer", "layout"), [("insert", {}), pytest.param("sql", HIVE_STYLE, marks=needs.HIVE)]
)
def test_uncertain_values_are_left_to_spark_by_the_columns_name(
    spark: SparkSession,
    asked: Asked,
    tmp_path: Path,
    name: str,
    writer: str,
    layout: Mapping[str, str],
) -> None:
    table = written(spark, tmp_path, {name: KINDS[name]}, writer, "COPY_ON_WRITE", layout)
    for where in (f"{name} IS NULL", "n = 3"):
        with pytest.raises(TableFeatureUnsupported, match=f"Column {name} has its values from"):
            table.scan(where).to_arrow()
    for where, columns, expected in ((f"{name} IS NULL", [name], False), ("n >= 3", ["n"], True)):
        answered, use = asked(table, where, columns)
        assert (answered, use.by_index) == (expected, expected), use.reason
        assert expected or f"Column {name}" in str(use.reason)


TEXTS = ("", "a", "a b", "%41", "a%2Fb", "%zz", "b/a", "2024/07/10", "Zürich", "null", ".a", "A%")
# Others that are looked for.
ASKED = ("A", "__HIVE_DEFAULT_PARTITION__", "./a", "a/", "..", "c")


@pytest.mark.parametrize(
    ("layout", "left"),
    [
        ({}, {"", "%41", "A", "__HIVE_DEFAULT_PARTITION__", "./a", "a/", ".."}),
        (HIVE_STYLE, {"", "%41", "A", "__HIVE_DEFAULT_PARTITION__", "./a", "a/", ".."}),
        (URL_ENCODED, {"", "__HIVE_DEFAULT_PARTITION__", "./a", "a/", ".."}),
    ],
)
def test_equality_on_odd_texts_gives_sparks_rows_or_is_left_to_spark(
    spark: SparkSession,
    asked: Asked,
    tmp_path: Path,
    layout: Mapping[str, str],
    left: set[str],
) -> None:
    """Spark makes the folder's name from the text if all partition columns are fixed, and then
    shows the text: ``p = ''`` finds the rows whose value is NULL in its other queries."""
    with_slashes = not layout
    texts = [each for each in TEXTS if with_slashes or layout == URL_ENCODED or "/" not in each]
    if layout != URL_ENCODED:  # Spark cannot read a column with slashes and %XX in its paths
        texts.remove("a%2Fb")
    listed = ", ".join(f"'{each}'" for each in texts)
    frame = spark.range(2 * len(texts)).selectExpr(
        "cast(id AS string) AS id",
        "id AS n",
        "0L AS ts",
        f"element_at(array({listed}), cast(id % {len(texts)} AS int) + 1) AS p",
    )
    options = hudi_options("t", partition_column="p", **NO_METADATA_TABLE, **layout)
    write(frame, tmp_path, options, "bulk_insert")
    table = indexed(tmp_path, ["n"])

    def is_answered(where: str) -> bool:
        answered, use = asked(table, where, ["n", "p"])
        assert use.by_index is answered, use.reason
        return answered

    assert {
        text for text in (*texts, *ASKED) if not is_answered(f"p = '{text}' AND n < 12")
    } == left
    assert not is_answered("p IN ('')")
    for where in ("p <=> ''", "p IN ('', '%41')", "p >= '%41' AND n < 12", "p IS NULL"):
        assert is_answered(where), where


def test_a_partition_within_another_is_left_to_spark(
    spark: SparkSession, asked: Asked, tmp_path: Path
) -> None:
    """Without the metadata table, Spark finds the inner one by ``p = 'a/b'`` alone."""
    frame = spark.sql(
        "SELECT * FROM VALUES ('1', 1, 0, 'a'), ('2', 2, 0, 'a/b') AS t(id, n, ts, p)"
    )
    write(frame, tmp_path, hudi_options("t", partition_column="p", **NO_METADATA_TABLE))
    table = open_table(tmp_path)
    table.create_index("by_n", ["n"])
    for where in ("n > 0", "p = 'a/b'"):
        answered, use = asked(table, where, ["n", "p"])
        assert (answered, use.by_index) == (False, False)
        assert "lies within partition a" in str(use.reason)
