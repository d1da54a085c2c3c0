"""The README's command on an Airflow that has just been installed and started by
`airflow standalone`, without a connection and with the DAG paused."""

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from hudi_index_service import open_table
from tests.ports import free_port
from tests.programs import ROOT, awaited, output_of

SECONDS = 400.0  # a busy machine may need this long to start all of Airflow

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


class Airflow:
    """A client of Airflow's REST interface."""

    def __init__(self, port: str) -> None:
        self._http = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60)

    def get(self, path: str) -> dict[str, Any] | None:
        """None if there is no such resource, or no server yet."""
        try:
            if "Authorization" not in self._http.headers:
                login = self._found("/auth/token")
                if login is None:
                    return None
                self._http.headers["Authorization"] = f"Bearer {login['access_token']}"
            return self._found(path)
        except httpx.TransportError:
            return None

    def _found(self, path: str) -> dict[str, Any] | None:
        answer = self._http.get(path)
        if answer.status_code == httpx.codes.NOT_FOUND:
            return None
        found: dict[str, Any] = answer.raise_for_status().json()
        return found

    def is_ready(self) -> bool | None:
        """True once all its parts run and have read the DAG, otherwise None."""
        health = self.get("/api/v2/monitor/health") or {}
        parts = ("metadatabase", "scheduler", "dag_processor")
        healthy = all(health.get(part, {}).get("status") == "healthy" for part in parts)
        return True if healthy and self.get("/api/v2/dags/hudi_index") else None

    def ended_run(self) -> dict[str, Any] | None:
        """The DAG's only run once it has ended, otherwise None."""
        found = self.get("/api/v2/dags/hudi_index/dagRuns") or {"dag_runs": []}
        ended = [each for each in found["dag_runs"] if each["state"] in ("success", "failed")]
        return ended[0] if ended else None


@contextmanager
def standalone(environment: dict[str, str], log: Path) -> Iterator[Airflow]:
    command = [sys.executable, "-m", "airflow", "standalone"]
    with log.open("wb") as output:
        running = subprocess.Popen(
            command,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield Airflow(environment["AIRFLOW__API__PORT"])
    finally:
        os.killpg(running.pid, signal.SIGTERM)
        try:
            running.wait(60)
        finally:
            if running.poll() is None:
                os.killpg(running.pid, signal.SIGKILL)


@pytest.fixture
def fresh_airflow(airflow_environment: dict[str, str]) -> dict[str, str]:
    """An environment with its own ports and without login, and otherwise Airflow's defaults."""
    port = str(free_port())
    return {
        **airflow_environment,
        "AIRFLOW__API__HOST": "127.0.0.1",
        "AIRFLOW__API__PORT": port,
        "AIRFLOW__API__WORKERS": "1",
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{port}/execution/",
        "AIRFLOW__CORE__PARALLELISM": "1",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "true",
        "AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT": str(free_port()),
        "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": str(free_port()),
        "AIRFLOW__WORKERS__EXECUTION_API_TIMEOUT": "60",
    }


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
