"""The service without Spark, in an environment that has another PySpark for something else: PySpark
4, or the client of Spark Connect. Answers are those of an environment without any. What needs Spark
says what is wrong, and what it says to do helps."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dev.bootstrap import VENV
from dev.environment import pinned
from dev.paths import CONSTRAINTS
from dev.prerequisites import find_jdk
from dev.steps import Steps
from dev.wheels import build_all
from tests.golden.table import GoldenTable
from tests.setup.newcomer import Newcomer, rows

# Two PySparks of 400 MB.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

LATEST = (CONSTRAINTS / "spark-4.txt").read_text().split()[-1]
CLIENT, CLIENT_PINS = "pyspark-client", CONSTRAINTS / "spark-client.txt"
WHERE = "sender = 'User1'"

IN_PYTHON = """
import sys
from hudi_index_service import open_table

with open_table(sys.argv[1]) as table:
    table.create_index("by_sender", ["sender"])
    table.build(strategy="all").raise_for_failures()
    for use_index in ("require", "never"):
        scan = table.scan(sys.argv[2], columns=["id", "ts"], use_index=use_index)
        print(sorted(map(str, scan.to_arrow().to_pylist())), scan.count())
    table.drop_index("by_sender", purge=True)
"""

IMPORTED = """
import pyspark
from hudi_index_service.sql import enable
print(pyspark.__version__)
"""

REFUSED = """
import os
import sys
from hudi_index_service import IndexServiceError, open_table

def refused(call):
    try:
        call()
    except IndexServiceError as error:
        print(error)

def enable():
    from hudi_index_service.sql import enable

def connected():
    from pyspark.sql import SparkSession
    # Nobody listens there, and nobody is asked.
    open_table(sys.argv[1], spark=SparkSession.builder.remote("sc://127.0.0.1:1").create())

refused(enable)
refused(connected)
sys.stdout.flush()
os._exit(0)  # the session would take its leave of the server for minutes
"""


@pytest.fixture
def newcomer(tmp_path: Path) -> Iterator[Newcomer]:
    built = build_all(tmp_path / "dist", Steps(tmp_path / "log"))
    newcomer = Newcomer(tmp_path, str(VENV / "bin" / "python"), find_jdk().home)
    unused = ("airflow_provider", "hudi_index_hbase", "hudi_index_spark")
    newcomer.install(*(each for each in built if not each.name.startswith(unused)))
    yield newcomer
    shutil.rmtree(tmp_path)  # a gigabyte, maybe in memory
    # Seen with `pytest -s`.
    print("", *(f"{what}: {took:.1f} s" for what, took in newcomer.times.items()), sep="\n")


def test_it_answers_as_without_and_refuses_what_needs_spark_by_name(
    newcomer: Newcomer, golden: Callable[[str], GoldenTable], tmp_path: Path
) -> None:
    table = str(golden("messages_of_users").put(tmp_path / "messages"))
    alone = answers(newcomer, table)
    assert alone[0], "some rows match"

    newcomer.pip("install", LATEST)
    assert answers(newcomer, table) == alone
    (line,) = doctors_lines(newcomer, "Spark")
    assert line.startswith("wrong version  Spark (optional): pyspark is 4.")

    newcomer.pip("uninstall", "pyspark")
    newcomer.pip("install", "--requirement", CLIENT_PINS)
    assert answers(newcomer, table) == alone
    import_of_sql, session = newcomer.python(REFUSED, table).splitlines()
    assert import_of_sql.startswith(f"SPARK_UNSUPPORTED: {CLIENT} 4.")
    assert session.startswith("SPARK_UNSUPPORTED: A session of Spark Connect ")
    assert f"SPARK_UNSUPPORTED: {CLIENT} 4." in newcomer.run("sql", "SHOW TABLES", status=1)


def test_two_pysparks_in_one_environment_are_refused_and_the_remedy_helps(
    newcomer: Newcomer,
) -> None:
    ours = pinned(CONSTRAINTS / "demo.txt", "pyspark")
    newcomer.pip("install", f"pyspark=={ours}")
    newcomer.pip("install", "--requirement", CLIENT_PINS)

    said = f"pyspark {ours} and {CLIENT} {pinned(CLIENT_PINS, CLIENT)} are both installed"
    refusal = newcomer.run("sql", "SHOW TABLES", status=1)
    assert f"SPARK_UNSUPPORTED: {said}" in refusal
    (line,) = doctors_lines(newcomer, "PySpark")
    assert line.startswith(f"failed         PySpark (optional): {said}")

    assert f"pip uninstall {CLIENT}; " in refusal
    newcomer.pip("uninstall", CLIENT)
    again = f"--force-reinstall --no-deps pyspark=={ours}"
    assert f"pip install {again}." in refusal
    newcomer.pip("install", *again.split())
    assert newcomer.python(IMPORTED) == f"{ours}\n"
    assert not list(doctors_lines(newcomer, "PySpark"))


def answers(newcomer: Newcomer, table: str) -> tuple[list[str], ...]:
    """What the commands and a program of theirs say of the table, which then has no index again."""
    query = ("query", table, WHERE)
    newcomer.run("doctor", table)
    newcomer.run("create", table, "by_sender", "sender")
    newcomer.run("build", table, "--strategy", "all")
    by_index = newcomer.run(*query, "--columns", "id,ts", "--output", "json")
    by_scan = newcomer.run(*query, "--columns", "id,ts", "--output", "json", "--use-index", "never")
    assert rows(by_index) == rows(by_scan)
    counted = newcomer.run(*query, "--count")
    status = json.loads(newcomer.run("status", table, "--output", "json"))
    covered = [f"{each['index']}: {each['covered']}" for each in status["indexes"]]
    newcomer.run("drop", table, "by_sender", "--purge")
    return rows(by_index), [counted], covered, newcomer.python(IN_PYTHON, table, WHERE).splitlines()


def doctors_lines(newcomer: Newcomer, name: str) -> Iterator[str]:
    """The lines of an optional check."""
    lines = newcomer.run("doctor").splitlines()
    return (each for each in lines if f" {name} (optional): " in each)
