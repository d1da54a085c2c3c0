"""Shared fixtures: one Spark session per test process, real Hudi tables in temp folders."""

import atexit
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from xdist.scheduler import LoadScopeScheduling

from dev import versions
from dev.jars import fetch, hudi_bundle
from dev.prerequisites import JDK_MAJOR, LATEST_JDK_MAJOR, Missing, find_other_java
from dev.spark_home import spark_home
from tests import example_counts, java_options, turns
from tests.order import longest_first, record, scope_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hudi_index_service import IndexedTable
    from hudi_index_service.config import Settings
    from tests.golden.table import Golden, GoldenTable
    from tests.indexed import GoldenIndex, OwnTable
    from tests.programs import Command, Running


def pytest_configure(config: pytest.Config) -> None:
    """Java processes start with the tests' options. What the service remembers between runs, and
    its copies of what can be fetched again, go to temporary folders, not to the user's: before any
    test module makes settings."""
    example_counts.fast = _only_fast(config)
    if config.option.scala != "2.12":
        os.environ["SPARK_HOME"] = str(spark_home())
        os.environ["HUDI_INDEX_HUDI_JAR"] = str(fetch(hudi_bundle(scala=config.option.scala)))
    if config.option.java != JDK_MAJOR:
        try:
            os.environ["JAVA_HOME"] = str(find_other_java(config.option.java))
        except Missing as missing:
            raise pytest.UsageError(str(missing)) from missing
    os.environ.setdefault(java_options.VARIABLE, java_options.BRIEF)
    folder = tempfile.mkdtemp(prefix="hudi-index-tests-")
    os.environ["XDG_STATE_HOME"] = str(Path(folder, "state"))
    os.environ["HUDI_INDEX_CACHE_FOLDER"] = str(Path(folder, "cache"))
    # Registered before the history's own, hence called after it.
    atexit.register(_remove, folder, os.getpid())
    if hasattr(config, "workerinput"):
        return
    if config.option.record_seconds:
        config.pluginmanager.register(_Recorder())
    if config.option.record_versions:
        config.pluginmanager.register(_VersionsRecorder(_run_of(config)))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--turn",
        action="store_true",
        help="of the slow tests that are shared out over three landings (tests/turns.py), run the "
        "share of the landing in .ci/turn",
    )
    parser.addoption(
        "--scala",
        choices=("2.12", "2.13"),
        default="2.12",
        help="run Spark with this version of Scala: with 2.13, on jars that replace PySpark's own "
        "(dev/spark_home.py)",
    )
    parser.addoption(
        "--java",
        type=int,
        choices=(JDK_MAJOR, LATEST_JDK_MAJOR),
        default=JDK_MAJOR,
        help="run Lucene in the Java of this version; Spark needs 17",
    )
    parser.addoption(
        "--record-seconds",
        action="store_true",
        help="write the seconds of what ran to tests/seconds.json",
    )
    parser.addoption(
        "--record-versions",
        action="store_true",
        help="write on which versions tests passed to docs/versions.json",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks tests by what they need (see pyproject.toml), leaves out the other landings' shares,
    and puts first what takes longest."""
    for item in items:
        needs = {"spark", "hbase", "hdfs", "wheels"} & set(getattr(item, "fixturenames", ()))
        if needs and not any(item.iter_markers("fast")):
            item.add_marker("slow")
        if "spark" in needs:
            item.add_marker("spark")
        elif not any(item.iter_markers("slow")):
            item.add_marker("unit")
    if config.option.turn:

        def runs(item: pytest.Item) -> bool:
            return not any(item.iter_markers("slow")) or turns.runs(item.nodeid)

        config.hook.pytest_deselected(items=[item for item in items if not runs(item)])
        items[:] = filter(runs, items)
    if hasattr(config, "workerinput"):  # one of several processes
        order = longest_first([item.nodeid for item in items], fast=_only_fast(config))
        items[:] = [items[position] for position in order]


def _only_fast(config: pytest.Config) -> bool:
    return bool(config.option.markexpr == "not slow")


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    """Keeps together what shares a Spark session, a server or tables."""
    return _ByScope(config, log)


class _ByScope(LoadScopeScheduling):
    """pytest-xdist 3.8 ignores its own groups with pytest 9.2."""

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid, fast=_only_fast(self.config))


class _Recorder:
    """Adds up the seconds of each test, set-up and teardown included."""

    def __init__(self) -> None:
        self._seconds: dict[bool, dict[str, float]] = {False: {}, True: {}}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        tier = self._seconds["slow" in report.keywords]
        tier[report.nodeid] = tier.get(report.nodeid, 0) + report.duration

    def pytest_sessionfinish(self) -> None:
        record(fast=self._seconds[False], slow=self._seconds[True])


def _run_of(config: pytest.Config) -> str:
    """The run's name in `dev.versions.CELLS`: what it has other versions of."""
    scala, java = config.option.scala, config.option.java
    others = {f"scala {scala}": scala != "2.12", f"java {java}": java != JDK_MAJOR}
    return " ".join(name for name, is_other in others.items() if is_other)


class _VersionsRecorder:
    """Writes on which versions all tests passed that ran."""

    def __init__(self, run: str) -> None:
        self._commit = versions.commit_of_checkout()
        self._run = run
        self._outcomes: dict[str, bool] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed or (report.when == "call" and report.passed):
            passed = report.passed and self._outcomes.get(report.nodeid, True)
            self._outcomes[report.nodeid] = passed

    def pytest_sessionfinish(self) -> None:
        before = versions.records()
        versions.write(versions.recorded(before, self._commit, self._run, self._outcomes))


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Says what of the tests that are shared out ran, and which landings run the rest."""
    if not config.option.turn:
        return
    number = turns.turn()
    terminalreporter.section(f"landing {number}")
    terminalreporter.line(
        f"of the slow tests that are shared out: share {number % turns.SHARES + 1} of "
        f"{turns.SHARES}; landings {number + 1} and {number + 2} run the others"
    )
    due = number + -number % turns.SHARES
    measured = "measured" if due == number else f"landing {due} measures it"
    terminalreporter.line(f"coverage: {measured}")
    terminalreporter.line("all other tests ran")


def _remove(folder: str, owner: int) -> None:
    if os.getpid() == owner:  # else a child that was forked
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(autouse=True)
def _nothing_is_known_from_other_tests() -> None:
    """The history of queries begins anew, also of tables that many tests share; and no page is kept
    in memory: a test that counts what is read would hang on which other ones have read it."""
    if module := sys.modules.get("hudi_index_service.optimizer.history.history"):
        module.each_history(module.History.erase)
    if module := sys.modules.get("hudi_index_service.read.base_file.kept_pages"):
        module.forget_pages()


@pytest.fixture
def keeps_no_pages() -> Iterator[None]:
    """Every page is read from its file, so that what one query reads can be compared with what
    another one does."""
    from hudi_index_service.config import settings
    from hudi_index_service.read.base_file.kept_pages import forget_pages

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HUDI_INDEX_READ__PAGE_CACHE_MB", "0")
        settings.cache_clear()
        forget_pages()
        yield
    settings.cache_clear()
    forget_pages()


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


@pytest.fixture
def settings(tmp_path: Path) -> "Settings":
    """Settings with a cache of this test's own. Everything can be cleaned at once."""
    from hudi_index_service.config import Settings

    return Settings(cache_folder=tmp_path / "cache", clean={"grace_seconds": 0})


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


@pytest.fixture(scope="session")
def golden_index(golden: "Golden", tmp_path_factory: pytest.TempPathFactory) -> "GoldenIndex":
    """Golden tables with an index, each made once a process: not to be changed."""
    from tests.indexed import golden_with_index

    made: dict[str, Path] = {}

    def table(name: str, /, *arguments: Any, **options: Any) -> Path:
        key = repr((name, arguments, sorted(options.items())))
        if key not in made:
            folder = tmp_path_factory.mktemp(name) / "table"
            made[key] = golden_with_index(golden(name), folder, *arguments, **options)
        return made[key]

    return table


@pytest.fixture
def own_table(golden_index: "GoldenIndex", tmp_path: Path, settings: "Settings") -> "OwnTable":
    """Opens a copy of a golden table with an index, for this test alone."""
    from hudi_index_service import open_table

    def table(name: str, /, *arguments: Any, **options: Any) -> "IndexedTable":
        copy = shutil.copytree(golden_index(name, *arguments, **options), tmp_path / name)
        return open_table(copy, settings=settings)

    return table


@pytest.fixture
def indexed_table(golden: "Golden", tmp_path: Path) -> Path:
    """Messages of users after one commit, with the index ``by_sender``, which is not built."""
    from hudi_index_service import open_table

    path = golden("messages_of_users").put(tmp_path / "messages", "written")
    open_table(path).create_index("by_sender", ["sender"])
    return path


@pytest.fixture
def cluster(golden: "Golden", indexed_table: Path) -> Callable[[], Path]:
    """Adds the files of Hudi's clustering to that table."""
    return lambda: golden("messages_of_users").put(indexed_table, "clustered")


@pytest.fixture
def clustered_table(cluster: Callable[[], Path]) -> Path:
    """The same table, which has been clustered."""
    return cluster()


@pytest.fixture
def running() -> "Iterator[Running]":
    """Starts programs beside the test, which are killed when it ends."""
    from tests.programs import started

    with ExitStack() as stack:
        yield partial(started, stack)


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> "Command":
    """Runs a command of `hudi-index`, which has to end with this status; returns what it prints:
    the output, and then the errors."""
    from hudi_index_service.cli import main

    def run(*arguments: object, status: int = 0) -> str:
        with pytest.raises(SystemExit) as ended:
            main([str(each) for each in arguments])
        captured = capsys.readouterr()
        assert (ended.value.code or 0) == status, captured.err
        return captured.out + captured.err

    return run


@pytest.fixture(scope="session")
def moved_jdk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The JDK's runtime, copied to a folder that no build has used."""
    from dev.prerequisites import find_jdk

    home = tmp_path_factory.mktemp("another machine") / "jdk 17"
    unneeded = shutil.ignore_patterns("jmods", "include", "man", "docs", "legal", "src.zip")
    shutil.copytree(find_jdk().home, home, ignore=unneeded, ignore_dangling_symlinks=True)
    return home


@pytest.fixture
def java_26(tmp_path: Path) -> Path:
    """A folder that looks like a JDK 26."""
    home = tmp_path / "jdk-26"
    library = home / "lib" / "server" / "libjvm.so"
    library.parent.mkdir(parents=True)
    library.touch()
    (home / "release").write_text('IMPLEMENTOR="Someone"\nJAVA_VERSION="26.0.3"\n')
    return home
