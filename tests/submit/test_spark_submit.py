"""spark-submit builds what is due, and reports an error in one line."""

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hudi_index_service.submit import APPLICATION
from hudi_index_service.submit.spark import main
from tests.hudi_tables import NO_METADATA_TABLE, hudi_options, write
from tests.indexed import covered
from tests.programs import ROOT, output_of


@pytest.mark.slow
def test_spark_submit_builds_and_cleans(clustered_table):
    command = [
        *(Path(sys.executable).with_name("spark-submit"), "--master", "local[1]"),
        *("--conf", "spark.ui.enabled=false", "--conf", "spark.driver.host=127.0.0.1"),
        *(APPLICATION, "--table", clustered_table, "--clean"),
    ]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(ROOT)}
    printed = output_of(command, environment)
    assert f"{clustered_table}: built 1 entry in " in printed
    assert "removed 0 files (0 bytes)" in printed
    assert covered(clustered_table) == 1


def test_running_session_is_used_and_not_stopped(spark, clustered_table, capsys):
    assert main(["--table", str(clustered_table), "--strategy", "all"]) == 0

    assert f"{clustered_table}: built 1 entry in " in capsys.readouterr().out
    assert spark.range(3).count() == 3


def test_running_session_is_used_by_another_thread(spark, clustered_table):
    with ThreadPoolExecutor(1) as thread:
        built = thread.submit(main, ["--table", str(clustered_table), "--strategy", "all"])

        assert built.result() == 0
    assert spark.range(3).count() == 3


def test_error_is_one_line_with_code_and_remedy(spark, tmp_path, capsys):
    assert main(["--table", str(tmp_path / "none")]) == 1

    assert capsys.readouterr().err == (
        f"TABLE_NOT_FOUND: Nothing is stored at {tmp_path / 'none'}. "
        "Check the path: it is the folder that holds .hoodie.\n"
    )


def test_wrong_strategy_is_a_wrong_argument(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--table", "/data", "--strategy", "some"])

    assert ended.value.code == 2
    assert "invalid choice: 'some'" in capsys.readouterr().err


def test_one_failing_table_does_not_stop_the_others(spark, tmp_path, capsys):
    partitioned = hudi_options("messages", partition_column="sender", **NO_METADATA_TABLE)
    path = tmp_path / "messages"
    rows = spark.range(300).selectExpr(
        "cast(id AS string) AS id", "id AS ts", "concat('User', id % 10) AS sender"
    )
    write(rows, path, partitioned)
    properties = tmp_path / "hudi-write.properties"
    properties.write_text("hoodie.index.columns=ts\nhoodie.index.strategy=incremental\n")
    tables = ["--table", str(tmp_path / "none"), "--table", str(path)]
    keys = ["--props", str(properties), "--hoodie-conf", "hoodie.index.strategy=all"]

    assert main([*tables, *keys, "--partition", "User[1-3]", "--max-files", "2"]) == 1

    captured = capsys.readouterr()
    assert captured.err.startswith(f"TABLE_NOT_FOUND: Nothing is stored at {tmp_path / 'none'}.")
    assert f"{path}: built 2 entries in " in captured.out
    assert "1 left (budget spent: files)" in captured.out
    assert main([*tables[2:], *keys, "--partition", "User[1-3]", "--max-files", "2"]) == 0
    assert f"{path}: built 1 entry in " in capsys.readouterr().out
    assert covered(path) == 3


def test_wrong_keys_are_reported_with_code_and_remedy(spark, clustered_table, capsys):
    key = "hoodie.index.colums=a"

    assert main(["--table", str(clustered_table), "--hoodie-conf", key]) == 1

    captured = capsys.readouterr().err
    assert captured.startswith("CONFIG_INVALID: hoodie.index.colums is neither a key of the index")
    # The index defined before is built nevertheless.
    assert covered(clustered_table) == 1


def test_table_without_an_index_is_an_error_where_one_is_required(spark, golden, tmp_path, capsys):
    path = golden("messages_of_users").put(tmp_path / "messages", "written")

    assert main(["--table", str(path), "--require-index"]) == 1
    assert capsys.readouterr().err.startswith(f"INDEX_NOT_FOUND: The table {path} has no index.")
    key = "hoodie.index.columns=ts"
    assert main(["--table", str(path), "--require-index", "--hoodie-conf", key]) == 0


@pytest.mark.parametrize("options", ["", "hoodie.clustering.plan.strategy.sort.columns=sender"])
def test_table_service_runs_first_and_what_it_writes_is_indexed(
    spark, indexed_table, options, capsys
):
    arguments = ["--table", str(indexed_table), "--table-service", "clustering"]

    assert main([*arguments, "--service-options", options]) == 0

    printed = capsys.readouterr().out
    assert f"{indexed_table}: clustering of 1 instant" in printed
    assert f"{indexed_table}: built 1 entry in " in printed
    assert covered(indexed_table) == 1
