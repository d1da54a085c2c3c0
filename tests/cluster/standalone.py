"""A standalone Spark cluster on the loopback interface: a master and workers as real processes."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark

from dev.daemon import Daemon
from tests.programs import logged

SPARK_HOME = Path(pyspark.__file__).parent


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
        daemon = processes.enter_context(
            _daemon("master.Master", [], folder / "master.log", java_home)
        )
        master = logged(daemon, r"Starting Spark master at (spark://\S+)")
        work = tuple(folder / f"worker-{number}" for number in range(1, workers + 1))
        for place in work:
            arguments = ["--cores", "1", "--memory", "1g", "--work-dir", str(place), master]
            daemon = processes.enter_context(
                _daemon("worker.Worker", arguments, place.with_suffix(".log"), java_home)
            )
            logged(daemon, r"Successfully registered with (master)")
        yield Cluster(master, work)


@contextmanager
def _daemon(name: str, arguments: list[str], log: Path, java_home: Path) -> Iterator[Daemon]:
    # There is no Python: everything that executors run has to come with the application.
    programs = log.with_suffix(".bin")
    programs.mkdir()
    for program in Path("/usr/bin").iterdir():
        if not program.name.startswith(("python", "pip")):
            (programs / program.name).symlink_to(program)
    environment = {
        "PATH": str(programs),
        "JAVA_HOME": str(java_home),
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "HOME": os.environ["HOME"],
    }
    command = [
        *("env", "-i", "-C", str(log.parent), *map("=".join, environment.items())),
        *(str(SPARK_HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}"),
        *("--host", "127.0.0.1", "--port", "0", "--webui-port", "0"),
        *arguments,
    ]
    daemon = Daemon(command, log)
    try:
        yield daemon
    finally:
        daemon.stop()  # a worker stops its executors when it ends
