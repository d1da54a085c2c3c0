"""The DAG runs whole on a real table: it waits, builds by spark-submit and cleans."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hudi_index_service import open_table
from tests.hudi_tables import hudi_options, run_clustering, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[2]

# Each command of a test may take almost as long as a test is given elsewhere.
pytestmark = pytest.mark.timeout(900)


@pytest.fixture
def airflow_environment(tmp_path: Path) -> dict[str, str]:
    """An Airflow of its own, with a local Spark connection; its database is not made yet."""
    return {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "AIRFLOW_HOME": str(tmp_path / "airflow"),
        "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "false",
        "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": "local[1]"}),
        "HUDI_INDEX_CLEAN__GRACE_SECONDS": "0",
    }


def run(command: list[str], environment: dict[str, str]) -> str:
    """Standard output of a command that has to succeed."""
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


@pytest.fixture
def indexed_table(spark: "SparkSession", tmp_path: Path) -> Path:
    """A table with one commit and an index definition."""
    path = tmp_path / "messages"
    rows = spark.range(300).selectExpr(
        "cast(id AS string) AS id", "id AS ts", "concat('User', id % 10) AS sender"
    )
    write(rows, path, hudi_options("messages"))
    open_table(path).create_index("by_sender", ["sender"])
    return path


def test_dag_waits_builds_and_cleans(spark, indexed_table, airflow_environment):
    run_clustering(spark, indexed_table)
    clustered = open_table(indexed_table).build(dry_run=True).due[0].base_file
    orphan = indexed_table / ".hoodie/.index/lucene/20000101000000000/gone-0/x/manifest-0001.json"
    orphan.parent.mkdir(parents=True)
    orphan.write_text("{}")
    run([sys.executable, "-m", "airflow", "db", "migrate"], airflow_environment)

    report = json.loads(
        run(
            [
                sys.executable,
                str(ROOT / "tests" / "airflow" / "run_dag.py"),
                str(ROOT / "dags"),
                str(indexed_table),
            ],
            airflow_environment,
        ).splitlines()[-1]
    )

    assert report == {
        "import_errors": {},
        "spark_at_parsing": False,
        "state": "success",
        "tasks": {
            "wait_for_table_service": "success",
            "build_index": "success",
            "clean_index": "success",
        },
        "instant": clustered.instant,
    }
    assert not orphan.exists()
    by_sender, by_keys = open_table(indexed_table).status()
    assert (by_sender.base_files, by_sender.indexed) == (1, 1)
    assert [column.name for column in by_keys.definition.columns] == ["ts", "id"]
    found = open_table(indexed_table).scan("sender = 'User3'", columns=["id"], use_index="require")
    assert found.count() == 30


def test_sensor_and_tasks_without_a_table_service(indexed_table, airflow_environment):
    program = """
import json, sys
from hudi_index_service.airflow.sensor import TableServiceSensor
from hudi_index_service.airflow.tasks import build_index

table = sys.argv[1]

def is_due(strategy):
    return TableServiceSensor(task_id="wait", table=table, strategy=strategy).poke({}).is_done

before = is_due("incremental"), is_due("all")
built = build_index.function(table, "all", max_files=5)
keys = {"hoodie.index.columns": "ts", "hoodie.index.strategy": "all"}
by_keys = TableServiceSensor(task_id="wait", table=table, hoodie_conf=keys).poke({}).is_done
built_by_keys = build_index.function(table, hoodie_conf=keys)
print(json.dumps([*before, built, by_keys, built_by_keys, is_due("all")]))
"""

    said = run([sys.executable, "-c", program, str(indexed_table)], airflow_environment)

    assert json.loads(said.splitlines()[-1]) == [False, True, 1, True, 1, False]
