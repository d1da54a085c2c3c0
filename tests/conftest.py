"""Shared fixtures: one Spark session per test process, real Hudi tables in temp folders."""

import atexit
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from xdist.scheduler import LoadScopeScheduling

from tests import java_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.golden.table import Golden, GoldenTable


def pytest_configure() -> None:
    """Java processes start with the tests' options. What the service remembers between runs, and
    its copies of what can be fetched again, go to temporary folders, not to the user's: before any
    test module makes settings."""
    os.environ.setdefault(java_options.VARIABLE, java_options.BRIEF)
    folder = tempfile.mkdtemp(prefix="hudi-index-tests-")
    os.environ["XDG_STATE_HOME"] = str(Path(folder, "state"))
    os.environ["HUDI_INDEX_CACHE_FOLDER"] = str(Path(folder, "cache"))
    # Registered before the history's own, hence called after it.
    atexit.register(_remove, folder, os.getpid())


# The slow tier begins with its longest folders, so that no process works alone at the end.
LONGEST = (
    "faults",
    "proof",
    "spark_rule",
    "tpch",
    "golden",
    "setup",
    "sql",
    "hbase",
    "hdfs",
    "airflow",
)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks tests by what they need (see pyproject.toml), and puts long folders first."""
    if config.option.markexpr == "slow":
        items.sort(key=_place)
    for item in items:
        needs = {"spark", "hbase", "hdfs"} & set(getattr(item, "fixturenames", ()))
        if needs and not any(item.iter_markers("fast")):
            item.add_marker("slow")
        if "spark" in needs:
            item.add_marker("spark")
        elif not any(item.iter_markers("slow")):
            item.add_marker("unit")


def _place(item: pytest.Item) -> int:
    folder = Path(item.nodeid).parts[1]
    return LONGEST.index(folder) if folder in LONGEST else len(LONGEST)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    """Keeps together what shares a Spark session or tables."""
    return _BySharedFixtures(config, log)


class _BySharedFixtures(LoadScopeScheduling):
    """Fast Spark tests run in one process, so that only one session starts. Other fast tests are
    distributed by file, slow tests by folder.

    pytest-xdist 3.8 ignores its own groups with pytest 9.2.
    """

    def _split_scope(self, nodeid: str) -> str:
        path = Path(nodeid.split("::")[0])
        if self.config.option.markexpr == "slow":
            return path.parts[1]
        return "spark" if "pytest.mark.fast" in _text(path) else str(path)


@cache
def _text(path: Path) -> str:
    return (Path(__file__).parent.parent / path).read_text()


def _remove(folder: str, owner: int) -> None:
    if os.getpid() == owner:  # else a child that was forked
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(autouse=True)
def _nothing_is_learnt_of_other_tests() -> None:
    """The history of queries begins anew, also of tables that many tests share."""
    module = sys.modules.get("hudi_index_service.optimizer.history.history")
    for history in [] if module is None else list(module._living):
        with history._writing, history._lock:
            history._known.clear()
            history._unwritten.clear()
            history._ended.clear()
            history._days.clear()
        kept = history._file.path
        if kept.exists():
            for beside in ("", "-wal", "-shm"):
                kept.with_name(kept.name + beside).unlink(missing_ok=True)


@pytest.fixture(autouse=True)
def _spark_reads_parquet_as_in_a_new_session(request: pytest.FixtureRequest) -> None:
    """Hudi switches the vectorized reader off for the session once it has read a table that it
    cannot read so. The other one gives the same rows by other code, or fails elsewhere: what a test
    sees would hang on which ran before it."""
    if "spark" in request.fixturenames:  # else Spark need not be started
        session = request.getfixturevalue("spark")
        session.conf.set("spark.sql.parquet.enableVectorizedReader", "true")


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[SparkSession]":
    """The process's Spark session (see `spark_session`)."""
    from tests.spark_session import spark_session

    with spark_session(tmp_path_factory.mktemp("warehouse")) as session:
        yield session


@pytest.fixture
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder, the test's own, in which the process's settings say that state is kept."""
    from hudi_index_service.config import settings

    folder = tmp_path / "state"
    monkeypatch.setenv("HUDI_INDEX_STATE_FOLDER", str(folder))
    settings.cache_clear()
    yield folder
    settings.cache_clear()


@pytest.fixture(scope="session")
def golden(tmp_path_factory: pytest.TempPathFactory) -> "Golden":
    """Golden tables by name, each unpacked once a process."""
    from tests.golden.table import unpack

    unpacked: dict[str, GoldenTable] = {}

    def table(name: str) -> "GoldenTable":
        if name not in unpacked:
            unpacked[name] = unpack(name, tmp_path_factory.mktemp(name))
        return unpacked[name]

    return table


@pytest.fixture
def java_26(tmp_path: Path) -> Path:
    """A folder that looks like a JDK 26."""
    home = tmp_path / "jdk-26"
    library = home / "lib" / "server" / "libjvm.so"
    library.parent.mkdir(parents=True)
    library.touch()
    (home / "release").write_text('IMPLEMENTOR="Someone"\nJAVA_VERSION="26.0.3"\n')
    return home
