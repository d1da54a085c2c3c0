"""spark-sql and the Thrift server, as they are in PySpark's own jars, with `serve-spark`."""

import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import hudi_index_spark
import pyspark
import pytest

from dev.daemon import Daemon
from dev.jars import bundle_path
from hudi_index_service.hudi.spark import HUDI_SETTINGS
from tests.ports import free_port
from tests.programs import ROOT, await_port, logged, output_of
from tests.spark_rule import needs

pytestmark = [pytest.mark.slow, needs.HIVE]

HOME = Path(pyspark.__file__).parent
JARS = (str(bundle_path()), str(hudi_index_spark.jar_path()))
SETTINGS = {
    **HUDI_SETTINGS,
    "spark.master": "local[2]",
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.hudi.index.decideMillis": "60000",
}
SETTINGS.pop("spark.sql.extensions", None)  # which the daemon names


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
    return {
        "SPARK_HOME": str(HOME),
        "PYTHONPATH": str(ROOT),
        "HUDI_INDEX_STATE_FOLDER": str(work / "state"),
    }


@pytest.fixture
def daemon(tables, tmp_path) -> Iterator[tuple[Daemon, Path]]:
    """A daemon for the tables and those of the test, and the file with its sessions' settings."""
    command = [sys.executable, "-m", "hudi_index_service", "serve-spark", str(tables.folder)]
    command += [str(tmp_path), "--port", "0", "--allow-changes"]
    with process(command, tmp_path, "daemon") as started:
        settings = logged(started, r"token of this run, are in (.+\.properties); only this user")
        assert Path(settings).stat().st_mode & 0o777 == 0o600
        yield started, Path(settings)


def options(settings: Path, *more: str) -> list[str]:
    """Options of Spark's commands."""
    pairs = [f"{key}={value}" for key, value in SETTINGS.items()]
    confs = [each for pair in pairs for each in ("--conf", pair)]
    return ["--properties-file", str(settings), *confs, *more]


def token(settings: Path) -> str:
    [value] = re.findall("spark.hudi.index.token=(.+)", settings.read_text())
    return value


def run(command: list[str], work: Path) -> list[str]:
    """The lines that a command prints."""
    printed = output_of(command, {**os.environ, **environment(work)}, cwd=work)
    # Hudi prints warnings there.
    return [each for each in printed.splitlines() if not each.startswith("# WARNING")]


def test_spark_sql(tables, daemon, written, tmp_path):
    _, settings = daemon
    queries = [
        "SELECT id, msg, price, day, at, place, tags FROM rule_merged WHERE amount BETWEEN 30 AND "
        "300 ORDER BY id",
        "SELECT msg, count(*) FROM rule_merged WHERE amount < 90 GROUP BY msg ORDER BY msg",
        "SELECT t.id FROM rule_merged t JOIN VALUES ('7'), ('9') v(k) ON t.id = v.k ORDER BY id",
    ]
    script = [
        f"CREATE TABLE rule_merged USING hudi LOCATION '{tables.folder / 'rule_merged'}'",
        "EXPLAIN SELECT id FROM rule_merged WHERE amount = 300",
        "SET",
        *("SET spark.hudi.index.enabled=true", *queries),
        *("SET spark.hudi.index.enabled=false", *queries),
        "DROP TABLE rule_merged",
        "RESET spark.hudi.index.enabled",
        f"CREATE TABLE mine USING hudi LOCATION '{shutil.copytree(written, tmp_path / 'mine')}'",
        "CREATE INDEX by_amount ON mine USING btree (amount)",
        "OPTIMIZE TABLE mine STRATEGY ALL",
        "EXPLAIN ANALYZE INDEX SELECT id FROM mine WHERE amount = 30",
        "DROP INDEX by_amount ON mine PURGE",
    ]
    (tmp_path / "script.sql").write_text(";\n".join(script) + ";\n")
    command = [str(HOME / "bin" / "spark-sql"), *options(settings, "--jars", ",".join(JARS))]
    lines = run([*command, "-f", "script.sql"], tmp_path)
    assert any(each.startswith("HudiIndexScan index i, by driver: the index") for each in lines)
    assert not any(token(settings) in each for each in lines)
    enabled, disabled = (
        lines.index(f"spark.hudi.index.enabled\t{each}") + 1 for each in ("true", "false")
    )
    rows = lines[disabled : disabled + disabled - 1 - enabled]
    assert len(rows) > 20
    assert lines[enabled : disabled - 1] == rows
    created, *built, explained, dropped = lines[disabled + len(rows) :]
    assert created.startswith("by_amount\tbtree\tamount")
    assert ["built" in each for each in built] == [True, True]
    assert explained.split("\t")[2:4] == ["driver", "by_amount"]
    assert dropped.startswith("by_amount\ttrue")


@pytest.fixture
def thrift_server(daemon, tmp_path) -> Iterator[Callable[[str], list[str]]]:
    """Runs a statement in a Thrift server, by beeline."""
    port = free_port()
    # The server's threads do not see Hudi's catalog in jars that are added.
    server = ["--class", "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"]
    server += options(daemon[1], "--driver-class-path", ":".join(JARS), "spark-internal")
    server += ["--hiveconf", f"hive.server2.thrift.port={port}"]
    server += ["--hiveconf", "hive.server2.thrift.bind.host=127.0.0.1"]
    beeline = [str(HOME / "bin" / "beeline"), "-u", f"jdbc:hive2://127.0.0.1:{port}"]
    beeline += ["--silent=true", "--outputformat=tsv2", "--showHeader=false"]

    def statement(text: str) -> list[str]:
        lines = (
            re.sub("^0: jdbc:[^>]*> ?", "", each) for each in run([*beeline, "-e", text], tmp_path)
        )
        return [each for each in lines if each.strip()]

    command = [str(HOME / "bin" / "spark-submit"), *server]
    with process(command, tmp_path, "server") as started:
        await_port(started, port)
        yield statement


def test_thrift_server(tables, daemon, thrift_server, tmp_path):
    process, settings = daemon
    name, folder = "rule_cow", tables.folder / "rule_cow"
    thrift_server(f"CREATE TABLE {name} USING hudi LOCATION '{folder}'")
    query = f"SELECT id, msg FROM {name} WHERE amount BETWEEN {{}} AND 300 ORDER BY id"  # noqa: S608
    plan = thrift_server(f"EXPLAIN {query.format(270)}")
    assert any("HudiIndexScan index i, by driver: the index finds 11 rows" in each for each in plan)
    rows = thrift_server(query.format(270))
    assert len(rows) == 11
    hinted = query.replace("SELECT", "SELECT /*+ NO_INDEX */")
    assert thrift_server(hinted.format(270)) == rows

    log = (tmp_path / "server").read_text()
    assert "INDEX_NOT" not in log
    process.kill()
    assert thrift_server(query.format(273)) == [
        each for each in rows if not each.startswith("90\t")
    ]
    log = (tmp_path / "server").read_text()
    [warning] = [each for each in log.splitlines() if "INDEX_NOT" in each]
    assert "INDEX_NOT_ANSWERING: Spark scans" in warning
    assert "Start hudi-index serve-spark there" in warning
    assert token(settings) not in log
