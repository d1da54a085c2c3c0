"""`hudi-index sql`: the real command, with a Spark session of its own."""

import json
import os
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dev.jars import bundle_path
from hudi_index_service import open_table
from hudi_index_service.cli.output import Format, print_rows
from hudi_index_service.errors import StatementFailed
from hudi_index_service.row_formats import python_rows
from hudi_index_service.sql.command_line import (
    csv_lines,
    has_failed_builds,
    json_lines,
    spark_errors_named,
    table_lines,
)
from tests.golden.table import Golden

pytestmark = pytest.mark.slow


def test_statements_run_in_order(golden: Golden, tmp_path: Path) -> None:
    path = golden("two_hundred_rows").put(tmp_path / "table")
    statements = [
        f"CREATE INDEX by_id ON '{path}' USING lucene (id)",
        f"OPTIMIZE TABLE hudi.`{path}` STRATEGY ALL",
        f"CREATE TABLE numbered USING hudi LOCATION '{path}'",
        "EXPLAIN INDEX SELECT * FROM numbered WHERE id = '7'",
        "SELECT id, amount, current_timezone() FROM numbered WHERE id = '7';",
        "DROP INDEX ON numbered",
    ]

    done = subprocess.run(
        [
            *(sys.executable, "-m", "hudi_index_service", "sql", "--format", "json"),
            *("--conf", "spark.master=local[1]", "--conf", "spark.sql.session.timeZone=+09:00"),
            *("--conf", f"spark.sql.warehouse.dir={tmp_path}", *statements),
        ],
        cwd=tmp_path,
        env={**os.environ, "HUDI_INDEX_HUDI_JAR": bundle_path()},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )

    created, built, explained, found = map(json.loads, done.stdout.splitlines())
    assert (created["index_name"], created["created"][-6:]) == ("by_id", "+09:00")
    assert (built["status"], built["row_count"], built["error"]) == ("built", 200, None)
    assert (explained["reader"], explained["index_name"]) == ("driver", "by_id")
    assert found == {"id": "7", "amount": 21, "current_timezone()": "+09:00"}
    assert done.returncode == 1, "since the last statement lacks its columns"
    assert done.stderr.splitlines()[-1].startswith("STATEMENT_INVALID: ( expected at line 1, col")


@pytest.mark.parametrize(
    ("statement", "status", "failed"),
    [
        ("OPTIMIZE TABLE t", "failed", True),
        ("REFRESH INDEX i ON t", "failed", True),
        ("OPTIMIZE TABLE t", "built", False),
        ("SELECT 'failed' AS status", "failed", False),
    ],
)
def test_failed_builds_are_recognized_in_results(
    spark: SparkSession, statement: str, status: str, failed: bool
) -> None:
    result = spark.sql("SELECT 'present' AS status UNION ALL SELECT :status", {"status": status})
    assert has_failed_builds(statement, result) == failed


def test_results_are_printed_in_every_format(spark: SparkSession) -> None:
    frame = spark.sql(
        "SELECT * FROM VALUES (1, 'a,\"b\"', DATE'2026-01-02', NULL, array(1, NULL)), "
        "(2, '', NULL, 1.50BD, array()) AS t(n, n, day, price, list)"
    )
    assert list(csv_lines(frame)) == [
        "n,n,day,price,list",
        '1,"a,""b""",2026-01-02,,"[1, null]"',
        '2,"",,1.50,[]',
    ]
    assert list(json_lines(frame)) == [
        '{"n":1,"n":"a,\\"b\\"","day":"2026-01-02","price":null,"list":[1,null]}',
        '{"n":2,"n":"","day":null,"price":1.50,"list":[]}',
    ]
    (table,) = table_lines(frame)
    assert table.splitlines()[3:5] == [
        '|1  |a,"b"|2026-01-02|NULL |[1, NULL]|',
        "|2  |     |NULL      |1.50 |[]       |",
    ]
    nothing = spark.sql("CREATE OR REPLACE TEMP VIEW one AS SELECT 1 AS n")
    assert [*table_lines(nothing), *json_lines(nothing), *csv_lines(nothing)] == []
    many = spark.range(1_000).selectExpr("concat(id, repeat('x', 100)) AS text")
    (table,) = table_lines(many)
    assert len(table.splitlines()) == 1_004
    assert f"|999{'x' * 100}|" in table


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELEC 1", "[PARSE_SYNTAX_ERROR] Syntax error at or near 'SELEC'.(line 1, pos 0)"),
        ("SELECT raise_error('no\nway')", "java.lang.RuntimeException: no"),
    ],
)
def test_sparks_errors_become_one_line(spark: SparkSession, query: str, message: str) -> None:
    with pytest.raises(StatementFailed) as raised, spark_errors_named():
        list(table_lines(spark.sql(query)))
    assert message in raised.value.message
    assert "\n" not in raised.value.message


@pytest.mark.parametrize("name", ["awkward_clustered", "nested_types", "wall_clock_times"])
def test_query_prints_the_json_of_sql(
    spark: SparkSession,
    golden: Golden,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
) -> None:
    path = golden(name).put(tmp_path / name)
    with open_table(path) as table:
        scan = table.scan()
        print_rows(Format.JSON, scan.columns, python_rows(scan.to_batches()))
    printed = capsys.readouterr().out.splitlines()
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    try:
        by_spark = list(json_lines(spark.read.format("hudi").load(str(path))))
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)

    def parsed(lines: list[str]) -> list[dict[str, object]]:
        rows = [json.loads(line, parse_float=Decimal) for line in lines]
        return sorted(rows, key=lambda row: str(row["_hoodie_record_key"]))

    assert len(printed) > 10
    assert parsed(printed) == parsed(by_spark)
