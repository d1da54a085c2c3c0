"""`airflow standalone`, and a client of its REST interface."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

SECONDS = 400.0  # a busy machine may need this long to start all of Airflow


class Airflow:
    """A running Airflow, as a client of its REST interface.

    Attributes:
        pid: Its first process.
    """

    def __init__(self, port: str, pid: int) -> None:
        self.pid = pid
        self.url = f"http://127.0.0.1:{port}"
        self._http = httpx.Client(base_url=self.url, timeout=60)

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

    def runs(self, dag: str = "hudi_index") -> list[dict[str, Any]]:
        """A DAG's runs."""
        found = self.get(f"/api/v2/dags/{dag}/dagRuns") or {"dag_runs": []}
        return list(found["dag_runs"])

    def unpause(self, dag: str) -> None:
        """Lets a DAG run."""
        self._http.patch(f"/api/v2/dags/{dag}", json={"is_paused": False}).raise_for_status()

    def ended_run(self, dag: str = "hudi_index") -> dict[str, Any] | None:
        """A DAG's only run once it has ended, otherwise None."""
        ended = [each for each in self.runs(dag) if each["state"] in ("success", "failed")]
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
        yield Airflow(environment["AIRFLOW__API__PORT"], running.pid)
    finally:
        os.killpg(running.pid, signal.SIGTERM)
        try:
            running.wait(60)
        finally:
            if running.poll() is None:
                os.killpg(running.pid, signal.SIGKILL)
