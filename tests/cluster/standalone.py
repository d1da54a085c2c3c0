"""A standalone Spark cluster on the loopback interface: a master and workers as real processes."""

import os
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark

SPARK_HOME = Path(pyspark.__file__).parent
_DEADLINE_SECONDS = 120


@dataclass(frozen=True)
class Cluster:
    """A running cluster: the master's URL, and each worker's folder for executors."""

    master: str
    work: tuple[Path, ...]


@contextmanager
def standalone_cluster(folder: Path, java_home: Path, workers: int) -> Iterator[Cluster]:
    """Starts a master and workers with one core each, and stops them at the end.

    Args:
        folder: For logs and the workers' folders.
        java_home: The JDK of all processes; they have no Python on PATH.
    """
    with ExitStack() as processes:
        log = processes.enter_context(
            _daemon("master.Master", [], folder / "master.log", java_home)
        )
        master = _wait_for(r"Starting Spark master at (spark://\S+)", log)
        work = tuple(folder / f"worker-{number}" for number in range(1, workers + 1))
        for place in work:
            arguments = ["--cores", "1", "--memory", "1g", "--work-dir", str(place), master]
            log = processes.enter_context(
                _daemon("worker.Worker", arguments, place.with_suffix(".log"), java_home)
            )
            _wait_for(r"Successfully registered with (master)", log)
        yield Cluster(master, work)


@dataclass(frozen=True)
class _Log:
    path: Path
    process: subprocess.Popen[bytes]


@contextmanager
def _daemon(name: str, arguments: list[str], log: Path, java_home: Path) -> Iterator[_Log]:
    # There is no Python: everything that executors run has to come with the application.
    programs = log.with_suffix(".bin")
    programs.mkdir()
    for program in Path("/usr/bin").iterdir():
        if not program.name.startswith(("python", "pip")):
            (programs / program.name).symlink_to(program)
    command = [
        SPARK_HOME / "bin" / "spark-class",
        f"org.apache.spark.deploy.{name}",
        *("--host", "127.0.0.1", "--port", "0", "--webui-port", "0"),
        *arguments,
    ]
    environment = {
        "PATH": str(programs),
        "JAVA_HOME": str(java_home),
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "HOME": os.environ["HOME"],
    }
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, env=environment, stdout=output, stderr=subprocess.STDOUT, cwd=log.parent
        )
    try:
        yield _Log(log, process)
    finally:
        # A worker stops its executors when it ends.
        process.terminate()
        process.wait(60)


def _wait_for(pattern: str, log: _Log) -> str:
    """Waits until the log contains the pattern; returns its first group."""
    deadline = time.monotonic() + _DEADLINE_SECONDS
    while time.monotonic() < deadline:
        text = log.path.read_text(errors="replace")
        if match := re.search(pattern, text):
            return match[1]
        if log.process.poll() is not None:
            break
        time.sleep(0.1)
    raise AssertionError(f"{log.path} has no {pattern!r}:\n{log.path.read_text()[-3000:]}")
