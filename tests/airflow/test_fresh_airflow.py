"""The README's command on an Airflow that has just been installed and started by
`airflow standalone`, without a connection and with the DAG paused."""

import re
import shlex
import sys
from pathlib import Path

import pytest

from hudi_index_service import open_table
from tests.airflow.standalone import SECONDS, standalone
from tests.programs import ROOT, awaited, output_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def test_readme_command_builds_on_a_fresh_airflow(
    clustered_table: Path, fresh_airflow: dict[str, str], tmp_path: Path
) -> None:
    readme = (ROOT / "README.md").read_text()
    (line,) = re.findall(r"`(airflow dags trigger hudi_index --conf '.*')`", readme)
    _, *arguments = shlex.split(line.replace("/data/messages", str(clustered_table)))
    log = tmp_path / "airflow.log"

    with standalone(fresh_airflow, log) as airflow:
        awaited(airflow.is_ready, SECONDS, 0.5)
        trigger = [sys.executable, "-m", "airflow", *arguments]
        output_of(trigger, fresh_airflow)
        ended = awaited(airflow.ended_run, SECONDS, 0.5)
        tasks = airflow.get(f"/api/v2/dags/hudi_index/dagRuns/{ended['dag_run_id']}/taskInstances")

    states = {
        each["task_id"]: (each["state"], each["try_number"]) for each in tasks["task_instances"]
    }
    assert states == {
        "wait_for_table_service": ("success", 1),
        "build_index": ("success", 1),
        "clean_index": ("success", 1),
    }, log.read_text()[-8000:]
    assert open_table(clustered_table).status()[0].covered == 1
    found = open_table(clustered_table).scan("sender = 'User3'", use_index="require")
    assert found.count() == 30
