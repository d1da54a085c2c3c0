"""Spark's own programs, as they are in PySpark's jars, whose sessions have no Python."""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import hudi_index_spark
import pyspark

from dev.daemon import Daemon
from dev.jars import bundle_path
from hudi_index_service.hudi.spark import HUDI_SETTINGS
from tests.ports import free_port
from tests.programs import ROOT, await_port, output_of

HOME = Path(pyspark.__file__).parent
JAR = hudi_index_spark.jar_path()
SETTINGS = {
    **HUDI_SETTINGS,
    "spark.master": "local[2]",
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.hudi.index.decideMillis": "60000",
}
SETTINGS.pop("spark.sql.extensions", None)  # which the daemon names

Statement = Callable[[str], list[str]]
"""Runs statements, with semicolons between them, and returns the lines that they print."""


@contextmanager
def process(command: list[str], work: Path, name: str) -> Iterator[Daemon]:
    """A process with its output in a file, killed at the end."""
    own = (f"{key}={value}" for key, value in environment(work).items())
    started = Daemon(["env", "-C", str(work), *own, *command], work / name)
    try:
        yield started
    finally:
        started.kill()


def environment(work: Path) -> dict[str, str]:
    """Variables of Spark's programs."""
    return {
        "SPARK_HOME": str(HOME),
        "PYTHONPATH": str(ROOT),
        "HUDI_INDEX_STATE_FOLDER": str(work / "state"),
    }


def settings_file(settings: Mapping[str, str], path: Path) -> Path:
    """The file with a session's settings."""
    path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    return path


def options(settings: Path, *more: str) -> list[str]:
    """Options of Spark's commands."""
    pairs = [f"{key}={value}" for key, value in SETTINGS.items()]
    confs = [each for pair in pairs for each in ("--conf", pair)]
    return ["--properties-file", str(settings), *confs, *more]


def run(command: list[str], work: Path) -> list[str]:
    """The lines that a command prints."""
    printed = output_of(command, {**os.environ, **environment(work)}, cwd=work)
    # Hudi prints warnings there.
    return [each for each in printed.splitlines() if not each.startswith("# WARNING")]


@contextmanager
def thrift_server(settings: Path, work: Path, jar: Path = JAR) -> Iterator[Statement]:
    """A Thrift server, asked by beeline. Its log is the file ``server``.

    Args:
        settings: The file with its sessions' settings.
        work: Its folder.
        jar: The one with the rule.
    """
    port = free_port()
    # The server's threads do not see Hudi's catalog in jars that are added.
    server = ["--class", "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"]
    jars = f"{bundle_path()}:{jar}"
    server += options(settings, "--driver-class-path", jars, "spark-internal")
    server += ["--hiveconf", f"hive.server2.thrift.port={port}"]
    server += ["--hiveconf", "hive.server2.thrift.bind.host=127.0.0.1"]
    beeline = [str(HOME / "bin" / "beeline"), "-u", f"jdbc:hive2://127.0.0.1:{port}"]
    beeline += ["--silent=true", "--outputformat=tsv2", "--showHeader=false"]

    def statement(text: str) -> list[str]:
        lines = (
            re.sub("^0: jdbc:[^>]*> ?", "", each) for each in run([*beeline, "-e", text], work)
        )
        return [each for each in lines if each.strip()]

    command = [str(HOME / "bin" / "spark-submit"), *server]
    with process(command, work, "server") as started:
        await_port(started, port)
        yield statement
