"""The whole DAG on a real table: it waits, builds by spark-submit and cleans. Its operator fails at
once with an unusable connection, and where nothing can build."""

import json
import sys
from pathlib import Path

import pytest

from hudi_index_service import open_table
from tests.programs import ROOT, output_of

# Each command of a test may take almost as long as the usual limit for a whole test.
pytestmark = pytest.mark.timeout(900)


LOCAL_SPARK = json.dumps({"conn_type": "spark", "host": "local[1]"})
YARN = json.dumps({"conn_type": "spark", "host": "yarn"})

# Airflow reads its environment when it is imported.
RUN_DAG = """
import json, sys
from airflow.dag_processing.dagbag import DagBag

bag = DagBag(sys.argv[1])
spark_at_parsing = "pyspark" in sys.modules
keys = {"hoodie.index.columns": "ts;id", "hoodie.index.wait": "1"}
run = bag.dags["hudi_index"].test(run_conf={"table": sys.argv[2], "hoodie_conf": keys})
waited = run.get_task_instance("wait_for_table_service")
report = {
    "import_errors": bag.import_errors,
    "spark_at_parsing": spark_at_parsing,
    "state": str(run.state),
    "tasks": {each.task_id: str(each.state) for each in run.get_task_instances()},
    # Read outside a task, a value of digits only comes back as a number.
    "instant": str(waited.xcom_pull(task_ids="wait_for_table_service")),
}
print(json.dumps(report))
"""

EXECUTE = """
import sys
from hudi_index_service.airflow.build_operator import BuildIndexOperator

operator = BuildIndexOperator(task_id="build", table=sys.argv[1], strategy="all")
try:
    operator.execute({})
except Exception as error:
    print(type(error).__name__, error)
"""


@pytest.mark.slow
def test_dag_waits_builds_and_cleans(clustered_table, airflow_environment, tmp_path):
    clustered = open_table(clustered_table).build(dry_run=True).due[0].base_file
    orphan = clustered_table / ".hoodie/.index/lucene/20000101000000000/gone-0/x/manifest-0001.json"
    orphan.parent.mkdir(parents=True)
    orphan.write_text("{}")
    output_of([sys.executable, "-m", "airflow", "db", "migrate"], airflow_environment)

    # Without a connection, the worker builds by itself (test_fresh_airflow.py), if it has Java.
    refused = run_operator(clustered_table, airflow_environment | {"JAVA_HOME": str(tmp_path)})
    assert refused.startswith("AirflowFailException NATIVE_MODULE_MISSING: lucene needs ")

    airflow_environment["AIRFLOW_CONN_SPARK_DEFAULT"] = LOCAL_SPARK
    command = [sys.executable, "-c", RUN_DAG, ROOT / "dags", clustered_table]
    output = output_of(command, airflow_environment)
    report = json.loads(output.splitlines()[-1])

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
    by_sender, by_keys = open_table(clustered_table).status()
    assert (by_sender.base_files, by_sender.covered) == (1, 1)
    assert [column.name for column in by_keys.definition.columns] == ["ts", "id"]
    found = open_table(clustered_table).scan(
        "sender = 'User3'", columns=["id"], use_index="require"
    )
    assert found.count() == 30


WITHOUT_A_TABLE_SERVICE = """
import json, logging, sys
from hudi_index_service.airflow.sensor import TableServiceSensor
from hudi_index_service.airflow.tasks import build_index

logging.basicConfig(stream=sys.stdout, level="INFO", format="%(message)s")
table, undefined = sys.argv[1:]

def poke(table, when_idle):
    sensor = TableServiceSensor(
        task_id="wait", table=table, when_idle=when_idle, timeout=21_600, soft_fail=True
    )
    try:
        sensor.execute({}) if when_idle == "fail" else sensor.poke({})
    except Exception as error:
        print(type(error).__name__, error)

def is_due(**options):
    return TableServiceSensor(task_id="wait", table=table, **options).poke({}).is_done

poke(undefined, "fail")
poke(table, "fail")
poke(table, "wait")
before = is_due(strategy="incremental"), is_due(strategy="all")
built = build_index.function(table, "all", max_files=5)
keys = {"hoodie.index.columns": "ts", "hoodie.index.strategy": "all"}
by_keys = is_due(hoodie_conf=keys)
built_by_keys = build_index.function(table, hoodie_conf=keys)
print(json.dumps([*before, built, by_keys, built_by_keys, is_due(strategy="all")]))
"""


def test_sensor_and_tasks_without_a_table_service(
    golden, indexed_table, tmp_path, airflow_environment
):
    """The sensor fails at once, or says how long it waits."""
    undefined = golden("messages_of_users").put(tmp_path / "undefined", "written")
    program = [sys.executable, "-c", WITHOUT_A_TABLE_SERVICE, indexed_table, undefined]

    lines = output_of(program, airflow_environment).splitlines()

    no_index, unindexed = (line for line in lines if line.startswith("AirflowFailException "))
    assert f"{undefined}: The table has no index: `hudi-index create {undefined} NAM" in no_index
    assert f"`hudi-index build {indexed_table} --strategy all` indexes them." in unindexed
    waiting = f"Nothing is due for {indexed_table}. Waiting up to 6:00:00 for a table service."
    assert any(waiting in line for line in lines)
    assert json.loads(lines[-1]) == [False, True, 1, True, 1, False]


def run_operator(table: Path, environment: dict[str, str]) -> str:
    """The error of the operator's task: its type and text."""
    return output_of([sys.executable, "-c", EXECUTE, table], environment).splitlines()[-1]


@pytest.mark.slow
def test_unusable_connection_fails_at_once_and_is_named(
    indexed_table: Path, airflow_environment: dict[str, str], tmp_path: Path
) -> None:
    for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR"):
        airflow_environment.pop(name, None)

    no_hadoop = {**airflow_environment, "AIRFLOW_CONN_SPARK_DEFAULT": YARN}
    assert run_operator(indexed_table, no_hadoop).startswith(
        "AirflowFailException The connection spark_default names the master yarn, and neither "
        "HADOOP_CONF_DIR nor YARN_CONF_DIR is set on this worker."
    )

    local = {**airflow_environment, "AIRFLOW_CONN_SPARK_DEFAULT": LOCAL_SPARK}
    no_spark_submit = {**local, "PATH": str(tmp_path)}
    assert run_operator(indexed_table, no_spark_submit).startswith(
        "AirflowFailException The connection spark_default needs Spark, but spark-submit is not "
        "on this worker's PATH."
    )
