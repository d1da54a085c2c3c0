"""spark-sql and the Thrift server, as they are in PySpark's own jars, with `serve-spark`."""

import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dev.daemon import Daemon
from dev.jars import bundle_path
from tests.programs import logged
from tests.spark_rule import needs
from tests.spark_rule.without_python import (
    HOME,
    JAR,
    Statement,
    options,
    process,
    run,
    thrift_server,
)

pytestmark = [pytest.mark.slow, needs.HIVE]


@pytest.fixture
def daemon(tables, tmp_path) -> Iterator[tuple[Daemon, Path]]:
    """A daemon for the tables and those of the test, and the file with its sessions' settings."""
    command = [sys.executable, "-m", "hudi_index_service", "serve-spark", str(tables.folder)]
    command += [str(tmp_path), "--port", "0", "--allow-changes"]
    with process(command, tmp_path, "daemon") as started:
        settings = logged(started, r"token of this run, are in (.+\.properties); only this user")
        assert Path(settings).stat().st_mode & 0o777 == 0o600
        yield started, Path(settings)


def token(settings: Path) -> str:
    [value] = re.findall("spark.hudi.index.token=(.+)", settings.read_text())
    return value


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
    command = [
        str(HOME / "bin" / "spark-sql"),
        *options(settings, "--jars", f"{bundle_path()},{JAR}"),
    ]
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
def statement(daemon, tmp_path) -> Iterator[Statement]:
    """Runs statements in a Thrift server."""
    with thrift_server(daemon[1], tmp_path) as asked:
        yield asked


def test_thrift_server(tables, daemon, statement, tmp_path):
    process, settings = daemon
    name, folder = "rule_cow", tables.folder / "rule_cow"
    statement(f"CREATE TABLE {name} USING hudi LOCATION '{folder}'")
    query = f"SELECT id, msg FROM {name} WHERE amount BETWEEN {{}} AND 300 ORDER BY id"  # noqa: S608
    plan = statement(f"EXPLAIN {query.format(270)}")
    assert any("HudiIndexScan index i, by driver: the index finds 11 rows" in each for each in plan)
    rows = statement(query.format(270))
    assert len(rows) == 11
    hinted = query.replace("SELECT", "SELECT /*+ NO_INDEX */")
    assert statement(hinted.format(270)) == rows

    log = (tmp_path / "server").read_text()
    assert "INDEX_NOT" not in log
    process.kill()
    assert statement(query.format(273)) == [each for each in rows if not each.startswith("90\t")]
    log = (tmp_path / "server").read_text()
    [warning] = [each for each in log.splitlines() if "INDEX_NOT" in each]
    assert "INDEX_NOT_ANSWERING: Spark scans" in warning
    assert "Start hudi-index serve-spark there" in warning
    assert token(settings) not in log
