"""Builders in separate processes that race or are killed."""

import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from threading import Event

import pytest
from pyspark.sql import SparkSession

from hudi_index_service import IndexedTable, open_table
from hudi_index_service.config import Settings
from tests.build.entries import all_manifests, assert_no_stray_data
from tests.hudi_tables import write_four_base_files

pytestmark = pytest.mark.slow

BUILD_ON_SIGNAL = """
import json, sys
from pathlib import Path
from hudi_index_service import open_table
from hudi_index_service.config import Settings
from hudi_index_service.errors import BuildInProgress
table = open_table(sys.argv[1], settings=Settings(cache_folder=Path(sys.argv[2])))
print("ready", flush=True)
sys.stdin.readline()
try:
    build = table.build(strategy="all").raise_for_failures()
    print(json.dumps(sorted(outcome.path for outcome in build.built)))
except BuildInProgress as error:
    print(json.dumps(error.code))
"""

BUILD_ON_SPARK = """
import sys
from pathlib import Path
from pyspark.sql import SparkSession
from hudi_index_service import open_table
from hudi_index_service.config import Settings
spark = (
    SparkSession.builder.master("local[1]")
    .config("spark.ui.enabled", "false")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .getOrCreate()
)
settings = Settings(cache_folder=Path(sys.argv[2]))
open_table(sys.argv[1], spark=spark, settings=settings).build(strategy="all")
"""

BUILD_LOCALLY = """
import sys
from pathlib import Path
from hudi_index_service import open_table
from hudi_index_service.config import BuildSettings, Settings
settings = Settings(cache_folder=Path(sys.argv[2]), build=BuildSettings(parallelism=1))
open_table(sys.argv[1], settings=settings).build(strategy="all")
"""


@pytest.fixture(scope="module")
def written(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("processes") / "table"
    write_four_base_files(spark, path, 2000)
    return path


@pytest.fixture
def path(written: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(written, tmp_path / "table"))


@pytest.fixture
def table(path: Path, tmp_path: Path) -> IndexedTable:
    """The table with an index defined."""
    table = open_table(path, settings=Settings(cache_folder=tmp_path / "cache"))
    table.create_index("by_amount", ["amount", "msg"])
    return table


def start(program: str, table: IndexedTable, tmp_path: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", program, table.uri, str(tmp_path / "cache")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )


def test_two_processes_build_the_same_table(table: IndexedTable, tmp_path: Path) -> None:
    builders = [start(BUILD_ON_SIGNAL, table, tmp_path) for _ in range(2)]
    for builder in builders:
        assert builder.stdout is not None
        assert builder.stdout.readline() == "ready\n"
    for builder in builders:
        assert builder.stdin is not None
        builder.stdin.write("\n")
        builder.stdin.flush()
    outputs = [json.loads(builder.communicate(timeout=120)[0]) for builder in builders]

    built = [path for each in outputs if isinstance(each, list) for path in each]
    assert len(built) == len(set(built)) == 4
    assert [each for each in outputs if isinstance(each, str)] in ([], ["BUILD_IN_PROGRESS"])
    assert table.build(strategy="all").due == ()
    assert table.verify().problems == ()
    assert_no_stray_data(table.uri)


@pytest.mark.parametrize("program", [BUILD_LOCALLY, BUILD_ON_SPARK], ids=["threads", "spark"])
def test_killed_build_is_finished_by_the_next(
    table: IndexedTable, tmp_path: Path, program: str
) -> None:
    builder = start(program, table, tmp_path)
    waiting = Event()
    while not all_manifests(table.uri):
        ended = builder.poll() is not None  # before the check, which then sees everything published
        assert all_manifests(table.uri) or not ended, "it ended without a single entry"
        waiting.wait(0.005)
    with suppress(ProcessLookupError):
        os.killpg(builder.pid, signal.SIGKILL)  # the driver, its JVM and its workers
    builder.wait(timeout=60)
    published = {file: file.read_bytes() for file in all_manifests(table.uri)}
    assert table.scan("amount = 300").count() == 1

    assert table.builds()[0].state in ("dead", "finished")
    table.build(strategy="all").raise_for_failures()

    assert len(all_manifests(table.uri)) == 4, "each entry is published once"
    assert {file: file.read_bytes() for file in published} == published
    assert [status.covered for status in table.status()] == [4]
    assert table.verify().problems == ()
    assert table.scan("amount = 300", use_index="require").count() == 1
