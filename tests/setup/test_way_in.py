"""From wheels alone to the first answers: every command of the first ten minutes, in an environment
that holds nothing else and a folder that is empty, on each Python that the wheels are for; where
PySpark does not run on it, the commands that need none."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dev.bootstrap import VENV
from dev.prerequisites import LATEST_JDK_MAJOR, find_jdk, find_other_java, find_other_python
from dev.steps import Steps
from dev.wheels import OTHER_PYTHONS, OWN_PYTHON, build_all, is_to_be_had
from hudi_index_service import tested
from tests.golden.table import GoldenTable
from tests.setup.newcomer import Newcomer, rows

# The demo takes half a minute, and installing Spark may take as long.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

WHERE = "city = 'city7' AND amount < 500000"

WITHOUT_SPARK = tuple(
    each for each in tested.WITHOUT_SPARK["Python"] if each not in tested.WITH_SPARK[0]["Python"]
)
"""PySpark 3.5 cannot pickle functions there."""


@pytest.fixture
def newcomer(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Newcomer]:
    """With Spark and its Java; without Spark, with the latest Java."""
    python: str | None
    python, with_spark = request.param
    if python is not None and not is_to_be_had(python):
        pytest.skip(f"Python {python} is not here, and uv cannot fetch it")
    steps = Steps(tmp_path_factory.mktemp("log"))
    built = build_all(tmp_path_factory.mktemp("dist"), steps, [python])
    interpreter = find_other_python(python) if python else str(VENV / "bin" / "python")
    java = find_jdk().home if with_spark else find_other_java(LATEST_JDK_MAJOR)
    folder = tmp_path_factory.mktemp("newcomer")
    newcomer = Newcomer(folder, interpreter, java)
    plugins = ("airflow_provider", "hudi_index_hbase")
    unused = plugins if with_spark else (*plugins, "hudi_index_spark")
    needed = (each for each in built if not each.name.startswith(unused))
    newcomer.install(*needed, extra="[demo]" if with_spark else "")
    yield newcomer
    shutil.rmtree(folder)  # a gigabyte, maybe in memory
    # Seen with `pytest -s`.
    print("", *(f"{what}: {took:.1f} s" for what, took in newcomer.times.items()), sep="\n")


def on(*pythons: str | None, with_spark: bool) -> pytest.MarkDecorator:
    """Runs a test for a newcomer with each of these Pythons."""
    return pytest.mark.parametrize(
        "newcomer",
        [(each, with_spark) for each in pythons],
        ids=[each or "own" for each in pythons],
        indirect=True,
    )


@on(OWN_PYTHON, *(each for each in OTHER_PYTHONS if each not in WITHOUT_SPARK), with_spark=True)
def test_wheels_suffice_for_the_first_ten_minutes(newcomer: Newcomer, tmp_path: Path) -> None:
    tables = tmp_path / "tables"

    told = newcomer.run("demo", "--rows", "20000", "--folder", str(tables))
    assert "row 2 of" in told
    assert "'msg': 'Buying a new car'" in told
    assert "its base file is gone" in told
    assert "All answers equal plain Spark's." in told
    assert "hudi-index init <table>" in told
    table = str(tables / "messages")
    assert list(Path(table, ".hoodie", ".index", "lucene").rglob("manifest-*.json"))

    newcomer.run("drop", table, "messages", "--purge")
    assert "amount" in newcomer.run("init", table, "--yes")
    newcomer.run("build", table, "--strategy", "all")
    by_index = newcomer.run("query", table, WHERE, "--columns", "id,msg", "--output", "json")
    by_scan = newcomer.run(
        "query", table, WHERE, "--columns", "id,msg", "--output", "json", "--use-index", "never"
    )
    assert rows(by_index) == rows(by_scan) != []
    status = json.loads(newcomer.run("status", table, "--output", "json"))
    assert status["indexes"]
    for index in status["indexes"]:
        assert index["covered"] == index["base_files"] > 0
    assert WHERE in newcomer.run("explain", table, WHERE)
    for index in status["indexes"]:
        newcomer.run("drop", table, index["index"], "--purge")


@on(OWN_PYTHON, *WITHOUT_SPARK, with_spark=False)
def test_wheels_suffice_without_spark(
    newcomer: Newcomer, golden: Callable[[str], GoldenTable], tmp_path: Path
) -> None:
    table = str(golden("messages_of_users").put(tmp_path / "messages"))
    where = "sender = 'User1'"

    assert "index type lucene" in newcomer.run("doctor", table)
    newcomer.run("create", table, "by_sender", "sender")
    newcomer.run("build", table, "--strategy", "all")
    by_index = newcomer.run("query", table, where, "--columns", "id,ts", "--output", "json")
    by_scan = newcomer.run(
        "query", table, where, "--columns", "id,ts", "--output", "json", "--use-index", "never"
    )
    assert rows(by_index) == rows(by_scan) != []
    assert "by index: lucene" in newcomer.run("explain", table, where)
    newcomer.run("drop", table, "by_sender", "--purge")
    assert json.loads(newcomer.run("status", table, "--output", "json"))["indexes"] == []
