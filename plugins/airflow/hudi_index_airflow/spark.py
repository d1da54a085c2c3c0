"""Builds by spark-submit of the service's application, in Spark's client mode, or in YARN's cluster
mode, where they outlive the worker."""

import logging
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx

from hudi_index_airflow.errors import HudiIndexError, HudiIndexFailed, error_of

log = logging.getLogger(__name__)

_APPLICATION = re.compile(r"\b(application_\d+_\d+)\b")
_BUILT = re.compile(r": built (\d+) entr")
_ERROR = re.compile(r"^([A-Z]+(?:_[A-Z]+)+): (.+)$")
_ACTIVE = ("NEW", "NEW_SAVING", "SUBMITTED", "ACCEPTED", "RUNNING")
_SECONDS_TO_END = 20.0
_TIMEOUT = 30.0


class SparkSubmit:
    """spark-submit on one Spark.

    Args:
        master: As for ``--master``.
        extra: The fields of the connection: those of the type ``hudi_index``, or of Airflow's own
            type ``spark``.
        conf: Spark's settings.
        env: Further environment variables.
    """

    def __init__(
        self,
        master: str,
        extra: Mapping[str, Any],
        *,
        conf: Mapping[str, str] | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self._master, self._extra = master, extra
        self._conf, self._env = dict(conf or {}), dict(env or {})
        self._process: subprocess.Popen[str] | None = None

    @property
    def is_cluster(self) -> bool:
        """Whether the driver runs on the cluster."""
        return bool(self._field("deploy_mode") == "cluster")

    def check(self) -> str:
        """The program. Raises HudiIndexFailed: something of what it needs is not here."""
        binary = self._field("spark_binary") or "spark-submit"
        if shutil.which(binary, path=self._environment().get("PATH")) is None:
            raise _wrong(f"{binary} is not on this worker's PATH.", "Install Spark's client here.")
        hadoop = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")
        if self._master == "yarn" and not any(map(self._environment().get, hadoop)):
            raise _wrong(
                f"The master is yarn, and neither {' nor '.join(hadoop)} is set on this worker.",
                "Set one of them, or another master in the connection.",
            )
        if self.is_cluster and not (self._master == "yarn" and self._manager):
            raise _wrong(
                "In the deploy mode cluster, a build is followed by YARN's ResourceManager alone.",
                "Set the master yarn and resource_manager in the connection, or the mode client.",
            )
        return binary

    def run(self, name: str, arguments: Sequence[str]) -> dict[str, Any]:
        """Runs the application in client mode, and returns what it counted.

        Raises:
            HudiIndexError: it failed; of what its last error says.
        """
        built: int | None = None
        error: HudiIndexError | None = None
        with self._started(name, arguments, self._conf) as process:
            self._process = process
            assert process.stdout is not None
            for line in process.stdout:
                log.info("%s", line.rstrip())
                if found := _BUILT.search(line):
                    built = (built or 0) + int(found[1])
                if found := _ERROR.match(line.rstrip()):
                    error = error_of(found[1], found[2])
        if process.returncode:
            status = f"spark-submit ended with the status {process.returncode}."
            raise error or HudiIndexError("BUILD_FAILED", status, "See its lines above.")
        return {} if built is None else {"built": built}

    def submit(self, name: str, arguments: Sequence[str], tag: str) -> str:
        """Starts the application in cluster mode, unless one with this tag runs, and returns its
        id."""
        self.check()
        for each in self._apps(tag):
            return str(each["id"])
        conf = {
            **self._conf,
            "spark.yarn.submit.waitAppCompletion": "false",
            "spark.yarn.tags": ",".join(filter(None, (self._conf.get("spark.yarn.tags"), tag))),
        }
        app = ""
        with self._started(name, arguments, conf) as process:
            assert process.stdout is not None
            for line in process.stdout:
                log.info("%s", line.rstrip())
                if found := _APPLICATION.search(line):
                    app = found[1]
        if process.returncode or not app:
            status = f"spark-submit ended with the status {process.returncode}, and no application."
            raise HudiIndexError("BUILD_FAILED", status, "See its lines above.")
        return app

    def state(self, app: str) -> tuple[str, str]:
        """The state of an application, ``RUNNING`` or how it ended, and YARN's words on it.
        ``FORGOTTEN`` if YARN knows none."""
        answer = self._ask("GET", f"/apps/{app}")
        if answer.status_code == httpx.codes.NOT_FOUND:
            return "FORGOTTEN", ""
        found = answer.raise_for_status().json()["app"]
        state = "RUNNING" if found["state"] in _ACTIVE else str(found["finalStatus"])
        return state, str(found.get("diagnostics") or "")

    def kill(self, app: str) -> None:
        """Kills an application."""
        self._ask("PUT", f"/apps/{app}/state", json={"state": "KILLED"})

    def cancel(self) -> None:
        """Ends what `run` has started: Spark's driver with its Python."""
        if self._process is not None and self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGTERM)
            try:
                self._process.wait(_SECONDS_TO_END)
            except subprocess.TimeoutExpired:
                os.killpg(self._process.pid, signal.SIGKILL)

    def _started(
        self, name: str, arguments: Sequence[str], conf: Mapping[str, str]
    ) -> "subprocess.Popen[str]":
        command = [self.check(), "--master", self._master, "--name", name]
        if mode := self._field("deploy_mode"):
            command += ["--deploy-mode", mode]
        if queue := self._field("queue"):
            command += ["--queue", queue]
        for key, value in conf.items():
            command += ["--conf", f"{key}={value}"]
        log.info("Running %s for %s.", " ".join(command[:5]), name)
        return subprocess.Popen(
            [*command, self._application(), *arguments],
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )

    def _environment(self) -> dict[str, str]:
        environment = {**os.environ, **self._env}
        if not self.is_cluster:  # driver and local executors run the same Python
            environment.setdefault("PYSPARK_PYTHON", sys.executable)
        return environment

    def _application(self) -> str:
        if named := self._field("application"):
            return str(named)
        spec = find_spec("hudi_index_service")
        if spec is None or spec.origin is None:
            raise _wrong(
                "hudi-index-service is not installed here, which has the application.",
                "Name its submit/spark.py in the connection's field application, or install "
                "airflow-provider-hudi-index[local].",
            )
        return str(Path(spec.origin).parent / "submit" / "spark.py")

    def _field(self, name: str) -> Any:
        return self._extra.get(name) or self._extra.get(name.replace("_", "-"))

    @property
    def _manager(self) -> str:
        extra = self._extra
        found = extra.get("resource_manager") or extra.get("yarn_resourcemanager_webapp_address")
        return str(found or "").rstrip("/")

    def _apps(self, tag: str) -> list[dict[str, Any]]:
        query = {"applicationTags": tag, "states": ",".join(_ACTIVE)}
        found = self._ask("GET", "/apps", params=query).raise_for_status().json()["apps"] or {}
        apps: list[dict[str, Any]] = found.get("app", [])
        return apps

    def _ask(self, method: str, path: str, **options: Any) -> httpx.Response:
        url = f"{self._manager}/ws/v1/cluster{path}"
        try:
            return httpx.request(method, url, timeout=_TIMEOUT, **options)
        except httpx.TransportError as error:
            message = f"YARN's ResourceManager does not answer at {self._manager}: {error}."
            raise HudiIndexError("SERVICE_UNAVAILABLE", message) from error


def _wrong(message: str, remedy: str) -> HudiIndexFailed:
    return HudiIndexFailed("CONFIG_INVALID", message, remedy)
