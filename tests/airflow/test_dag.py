"""The DAGs, whole, on real tables: in the worker, by a running service, and by spark-submit."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hudi_index_service import open_table
from hudi_index_service.fleet.web.access import Role
from tests.fleet.served import SECRETS
from tests.golden.table import Golden
from tests.indexed import covered
from tests.programs import ROOT, output_of

# Each command of a test may take almost as long as the usual limit for a whole test.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

LOCAL_SPARK = {"host": "local[1]", "extra": {"run_by": "spark-submit"}}

# Airflow reads its environment when it is imported.
RUN_DAGS = """
import json, sys
from airflow.dag_processing.dagbag import DagBag

bag = DagBag(sys.argv[1])
report = {
    "import_errors": bag.import_errors,
    "dags": sorted(bag.dags),
    "parsed_with": sorted({"pyspark", "hudi_index_service", "lucene"} & sys.modules.keys()),
    "runs": [],
}
for dag_id, conf in json.loads(sys.argv[2]):
    dag = bag.dags[dag_id]
    run = dag.test(run_conf=conf)
    tasks, values = {}, {}
    for each in run.get_task_instances():
        name = each.task_id if each.map_index < 0 else f"{each.task_id}[{each.map_index}]"
        tasks[name] = str(each.state)
        values[name] = each.xcom_pull(task_ids=each.task_id, map_indexes=each.map_index)
    report["runs"].append({"state": str(run.state), "tasks": tasks, "values": values})
print(json.dumps(report, default=str))
"""

Report = dict[str, Any]


@pytest.fixture
def run_dags(airflow_environment: dict[str, str]) -> Callable[..., Report]:
    """Runs DAGs, one after the other, with a connection; the last runs' states and values."""
    environment = airflow_environment

    def run(*runs: tuple[str, dict[str, Any]], connection: dict[str, Any], **more: str) -> Report:
        if connection:
            given = json.dumps({"conn_type": "hudi_index", **connection})
            environment["AIRFLOW_CONN_HUDI_INDEX_DEFAULT"] = given
        environment.update(more)
        output_of([sys.executable, "-m", "airflow", "db", "migrate"], environment)
        command = [sys.executable, "-c", RUN_DAGS, ROOT / "dags", json.dumps(runs)]
        report: Report = json.loads(output_of(command, environment).splitlines()[-1])
        assert report["import_errors"] == {}
        assert report["parsed_with"] == []
        return report

    return run


def test_dag_waits_builds_by_spark_submit_and_cleans(
    clustered_table: Path, run_dags: Callable[..., Report]
) -> None:
    clustered = open_table(clustered_table).build(dry_run=True).due[0].base_file
    orphan = clustered_table / ".hoodie/.index/lucene/20000101000000000/gone-0/x/manifest-0001.json"
    orphan.parent.mkdir(parents=True)
    orphan.write_text("{}")
    keys = {"hoodie.index.columns": "ts;id", "hoodie.index.wait": "1"}
    conf = {"table": str(clustered_table), "hoodie_conf": keys}

    (run,) = run_dags(("hudi_index", conf), connection=LOCAL_SPARK)["runs"]

    assert run["state"] == "success"
    assert set(run["tasks"].items()) == {
        ("wait_for_table_service", "success"),
        ("build_index", "success"),
        ("clean_index", "success"),
    }
    # Read outside a task, a value of digits only comes back as a number.
    assert str(run["values"]["wait_for_table_service"]) == clustered.instant
    assert run["values"]["build_index"]["built"] == 1
    assert not orphan.exists()
    by_sender, by_keys = open_table(clustered_table).status()
    assert (by_sender.base_files, by_sender.covered) == (1, 1)
    assert [column.name for column in by_keys.definition.columns] == ["ts", "id"]
    found = open_table(clustered_table).scan(
        "sender = 'User3'", columns=["id"], use_index="require"
    )
    assert found.count() == 30


def test_all_dags_in_the_worker(
    put_table: Callable[..., Path], golden: Golden, tmp_path: Path, run_dags: Callable[..., Report]
) -> None:
    first, second = (put_table(name, step="clustered") for name in ("first", "second"))
    parts = golden("seven_partitions").put(tmp_path / "parts")
    plain = put_table("plain")
    with open_table(parts) as opened:
        opened.create_index("by_amount", ["amount"], using="btree")

    report = run_dags(
        ("hudi_index", {"table": str(first)}),
        ("hudi_index_nightly_maintenance", {}),
        ("hudi_index_backfill", {"table": str(parts)}),
        ("hudi_index_backfill", {"table": str(plain)}),
        connection={},
        HUDI_INDEX_TABLES=f"{first} {second}",
    )

    assert [each for each in report["dags"] if "after" not in each] == [
        *("hudi_index", "hudi_index_backfill", "hudi_index_nightly_maintenance")
    ]
    assert sum("after_table_service" in each for each in report["dags"]) == 2
    assert [each["state"] for each in report["runs"]] == ["success"] * 4
    once, nightly, by_partition, whole = (each["values"] for each in report["runs"])
    assert once["build_index"]["built"] == covered(first) == 1
    built = [nightly[f"maintain.build_index[{number}]"]["built"] for number in (0, 1)]
    assert (built, covered(second)) == ([0, 1], 1)
    assert nightly["maintain.verify_index[1]"]["entries"] == 1
    each_partition = [by_partition[f"build_partition[{number}]"]["built"] for number in range(7)]
    assert each_partition == [1] * 7
    assert covered(parts) == 7
    assert whole["build_partition[0]"]["built"] == covered(plain) == 1


def test_all_dags_by_a_service(
    put_table: Callable[..., Path],
    cluster_table: Callable[[Path], None],
    serve: Callable[..., Any],
    run_dags: Callable[..., Report],
) -> None:
    first, second = put_table("first"), put_table("second")
    service = serve(first, second)
    cluster_table(first)
    cluster_table(second)

    report = run_dags(
        ("hudi_index_after_table_service_first", {}),
        ("hudi_index_nightly_maintenance", {}),
        connection={"host": service.url, "password": SECRETS[Role.OPERATE]},
        HUDI_INDEX_TABLES="first second",
        AIRFLOW__OPERATORS__DEFAULT_DEFERRABLE="true",
    )

    assert [each["state"] for each in report["runs"]] == ["success", "success"]
    after, nightly = (each["values"] for each in report["runs"])
    assert after["build_index"]["built"] == covered(first) == 1
    assert covered(second) == nightly["maintain.build_index[1]"]["built"] == 1
    assert nightly["maintain.verify_index[0]"]["summary"].startswith("1 entry read, 0 damaged")
    ids = [nightly[f"maintain.build_index[{number}]"]["build_id"] for number in (0, 1)]
    assert ids[1] in service.requests("second")
    assert [ids[0], after["build_index"]["build_id"]] == service.requests("first")[-2:]


def test_table_that_is_not_indexed_fails_at_once_and_is_told_of(
    put_table: Callable[..., Path], run_dags: Callable[..., Report]
) -> None:
    table = put_table(index=False)
    (run,) = run_dags(("hudi_index", {"table": str(table)}), connection={})["runs"]
    assert run["state"] == "failed"
    assert run["tasks"]["wait_for_table_service"] == "failed"
    assert run["tasks"]["build_index"] == "upstream_failed"
