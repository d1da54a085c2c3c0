"""The examples of docs/columns.md, docs/index_types.md and docs/sql.md run as they stand."""

import ast
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dev.jars import bundle_path
from hudi_index_service import Column, IndexedTable, open_table
from hudi_index_service.read.scan import Scan
from hudi_index_service.sql import IndexSession, last_queries
from tests.docs.markdown import only_block
from tests.hudi_tables import NO_METADATA_TABLE, hudi_options, write
from tests.programs import lines_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

ROWS = """
    SELECT CAST(id AS string) AS id,
        concat('User', substr('ABCD', CAST(id % 4 AS int) + 1, 1), IF(id < 20, '', '2')) AS sender,
        IF(id % 3 = 0, 'Buying a new car', 'Selling an old home') AS msg,
        id * 10 AS amount,
        IF(id % 2 = 0, 'Berlin', 'Oslo') AS city,
        timestamp'2026-11-01 00:00:00' + make_interval(0, 0, 0, CAST(id AS int)) AS event_ts,
        timestamp'2026-11-01 00:00:00' + make_interval(0, 0, 0, CAST(id AS int)) AS sent,
        named_struct('city', IF(id % 2 = 0, 'Berlin', 'Oslo'),
            'geo', named_struct('lat', CAST(id AS double))) AS place,
        array(IF(id % 5 = 0, 'new', 'used'), 'all') AS tags
    FROM range(40)
"""


@pytest.fixture(scope="module")
def written(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("written") / "messages"
    options = hudi_options("messages", ordering_column=None, **NO_METADATA_TABLE)
    write(spark.sql(ROWS).coalesce(1), path, options, "bulk_insert")
    return path


@pytest.fixture
def messages_folder(written: Path, tmp_path: Path) -> Path:
    """A table with every column that the pages name, without an index."""
    return shutil.copytree(written, tmp_path / "messages")


@pytest.fixture
def table(messages_folder: Path) -> Iterator[IndexedTable]:
    with open_table(messages_folder) as table:
        yield table


@pytest.fixture
def by_name(spark: "SparkSession", messages_folder: Path) -> Iterator[str]:
    """The same table in the session's catalog."""
    spark.sql(f"CREATE TABLE messages USING hudi LOCATION '{messages_folder}'")
    yield "messages"
    spark.sql("DROP TABLE messages")


def values(code: str, names: dict[str, Any]) -> list[Any]:
    """Runs a block of code; returns the values of its lines that are expressions."""
    results = []
    for line in ast.parse(code).body:
        if isinstance(line, ast.Expr):
            results.append(eval(compile(ast.Expression(line.value), "page", "eval"), names))
        else:
            exec(compile(ast.Module([line], []), "page", "exec"), names)
    return results


@pytest.mark.parametrize(
    ("page", "containing", "rows"),
    [
        ("docs/columns.md", "by_place", 4),
        ("docs/columns.md", "covering", 5),
        ("docs/index_types.md", "in_order", 0),
    ],
)
def test_indexes_and_the_scans_they_serve(
    spark: "SparkSession", table: IndexedTable, page: str, containing: str, rows: int
) -> None:
    code = only_block(page, "python", containing)
    scans = [each for each in values(code, {"table": table}) if isinstance(each, Scan)]
    table.build(strategy="all").raise_for_failures()
    (scan,) = scans
    assert scan.explain().uses_index
    where = str(scan.explain().plan.predicate)  # type: ignore[union-attr]
    frame = spark.read.format("hudi").load(table.uri).where(where)
    assert scan.count() == frame.count() == rows
    if containing == "covering":
        scan.to_arrow()
        assert all(each.stored for each in scan.statistics.slices)


def test_several_types(table: IndexedTable) -> None:
    code = only_block("docs/index_types.md", "python", "both_ways")
    values(code, {"table": table, "Column": Column})
    table.build(strategy="all").raise_for_failures()
    built = Path(table.uri.removeprefix("file://"), ".hoodie/.index").iterdir()
    assert {"lucene", "btree"} <= {path.name for path in built}
    assert table.scan("amount BETWEEN 100 AND 120", use_index="require").count() == 3
    assert table.scan("match(msg, 'CAR')", use_index="require").count() == 14


def test_ranked_search(table: IndexedTable) -> None:
    table.create_index("by_words", ["msg"])
    *_, found = values(only_block("docs/columns.md", "python", "by_words"), {"table": table})
    assert found.num_rows == 10
    assert set(found["msg"].to_pylist()) == {"Buying a new car"}
    assert min(map(int, found["id"].to_pylist())) > 10


def test_composite_key(spark: "SparkSession", table: IndexedTable, by_name: str) -> None:
    IndexSession(spark).sql(only_block("docs/columns.md", "sql", "key = 'composite'"))
    table.build(strategy="all").raise_for_failures()
    for where, rows in (
        ("city = 'Berlin' AND sent >= TIMESTAMP'2026-11-21'", 10),
        ("city = 'Berlin'", 20),
    ):
        assert table.scan(where, use_index="require").count() == rows
    assert not table.scan("sent >= TIMESTAMP'2026-11-21'").explain().uses_index


@pytest.mark.usefixtures("by_name", "reads_by_index")
def test_statements_and_queries_of_a_session(
    spark: "SparkSession", capsys: pytest.CaptureFixture[str]
) -> None:
    page, names = "docs/sql.md", {"spark": spark}
    values(only_block(page, "python", "IndexSession(spark)"), names)
    assert capsys.readouterr().out.count("UserA|") == 5

    names["users"] = spark.createDataFrame([("UserA", "Ann")], "sender string, name string")
    *_, last = values(only_block(page, "python", "join(users"), names)
    assert [use.by_index for use in last] == [True]
    assert capsys.readouterr().out.count(" Ann|") == 5

    users = spark.createDataFrame([("UserD", "Dan")], "name string, first string")
    users.createOrReplaceTempView("users")
    hinted = spark.sql(only_block(page, "sql", "NO_INDEX"))
    assert [row.id for row in hinted.collect()] == ["7"]
    (left,) = last_queries(spark)[-1]
    assert (left.by_index, "NO_INDEX" in left.reason) == (False, True)

    names["session"].sql(
        "ALTER INDEX by_sender ON messages "
        "SET (msg OPTIONS(analyzer = 'standard', ranked = 'true'))"
    )
    names["session"].sql("REFRESH INDEX by_sender ON messages")
    found = spark.sql(only_block(page, "sql", "score()")).collect()
    assert sorted(row.id for row in found) == ["0", "12"]
    assert all(row.s > 0 for row in found)


def test_statements_in_plain_spark_sql(messages_folder: Path) -> None:
    code = only_block("docs/sql.md", "python", "spark.sql.extensions")
    start, end = code.split("enable(spark)\n")
    script = (
        "from pyspark.sql import SparkSession\n"
        "from hudi_index_service.sql import enable\n"
        f"hudi_bundle = {str(bundle_path())!r}\n"
        f"{start}"
        f"spark.sql(\"CREATE TABLE messages USING hudi LOCATION '{messages_folder}'\")\n"
        f"enable(spark)\n{end}"
    )
    lines_of(script)
    with open_table(messages_folder) as table:
        (status,) = table.status()
    assert (status.definition.name, status.covered) == ("by_sender", 1)
