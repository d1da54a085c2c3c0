"""A build on a running standalone cluster: the workers' Python comes from a packed archive, whose
original environment no longer exists, and their JDK is in another place than the build's."""

import json
import os
import shlex
import shutil
import sys
import tarfile
import venv
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark
import pytest

import hudi_index_hbase
import hudi_index_service
from dev.daemon import Daemon
from hudi_index_service import open_table
from hudi_index_service.build.entry.worker import RESERVED_MB
from hudi_index_service.config import Settings
from hudi_index_service.submit.pack import needed_distributions
from tests.docs.markdown import only_block
from tests.programs import logged, output_of
from tests.versions.journey import COLUMNS, State, check_answers
from tests.versions.written import NEWEST, written_by

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

HEAP_MB = 256
SPARK_HOME = Path(pyspark.__file__).parent


@contextmanager
def daemon(name: str, arguments: list[str], log: Path, java_home: Path) -> Iterator[Daemon]:
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
    started = Daemon(command, log)
    try:
        yield started
    finally:
        started.stop()  # a worker stops its executors when it ends


@pytest.fixture(scope="module")
def cluster(
    tmp_path_factory: pytest.TempPathFactory, moved_jdk: Path
) -> Iterator[tuple[str, list[Path]]]:
    """A standalone cluster on the loopback interface, of real processes: a master and two workers
    with one core each. The master's URL, and each worker's folder for executors."""
    folder = tmp_path_factory.mktemp("cluster")
    with ExitStack() as processes:

        def started(name: str, log: Path, *arguments: str) -> Daemon:
            return processes.enter_context(daemon(name, list(arguments), log, moved_jdk))

        first = started("master.Master", folder / "master.log")
        master = logged(first, r"Starting Spark master at (spark://\S+)")
        work = [folder / f"worker-{number}" for number in (1, 2)]
        for place in work:
            options = ("--cores", "1", "--memory", "1g", "--work-dir", str(place), master)
            worker = started("worker.Worker", place.with_suffix(".log"), *options)
            logged(worker, r"Successfully registered with (master)")
        yield master, work
    shutil.rmtree(folder)  # of gigabytes, maybe in memory


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The archive that `hudi-index pack` makes of an environment that is renamed afterwards."""
    folder = tmp_path_factory.mktemp("packed")
    build = folder / "build environment"
    venv.create(build, symlinks=True)
    version = "python{}.{}".format(*sys.version_info[:2])
    packages = build / "lib" / version / "site-packages"
    for each in needed_distributions():
        for file in each.files or ():
            if ".." not in file.parts and file.suffix != ".pth":
                target = packages / file
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(Path(str(each.locate_file(file))), target)
    for editable in (hudi_index_service, hudi_index_hbase):
        source = Path(editable.__file__ or "").parent
        shutil.copytree(source, packages / source.name, dirs_exist_ok=True)
    archive = folder / "environment.tar.gz"
    command = [build / "bin" / "python", "-m", "hudi_index_service", "pack", archive]
    environment = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"]}
    printed = output_of(command, environment, cwd=folder)
    assert "spark.pyspark.python=./environment/bin/python" in printed
    build.rename(folder / "gone")
    yield archive
    shutil.rmtree(folder)  # of gigabytes, maybe in memory


@pytest.fixture
def state(tmp_path: Path) -> State:
    """A table of six base files in six partitions, without an index."""
    return State(written_by(NEWEST) / "two_partition_columns" / "clustered")


def without_spark_and_python() -> dict[str, str]:
    """The process's environment, which does not say which Spark and Python to take."""
    unset = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "PYTHONPATH", "SPARK_HOME")
    return {name: value for name, value in os.environ.items() if name not in unset}


def submit(master: str, archive: Path, jdk: Path, *arguments: Path) -> str:
    """What `spark-submit` prints."""
    settings = {
        "spark.archives": f"{archive}#environment",
        "spark.pyspark.python": "./environment/bin/python",
        "spark.pyspark.driver.python": sys.executable,
        "spark.executorEnv.JAVA_HOME": str(jdk),
        "spark.executorEnv.HUDI_INDEX_LUCENE__HEAP_MB": str(HEAP_MB),
        "spark.executor.cores": "1",
        "spark.executor.memory": "512m",
        "spark.executor.pyspark.memory": f"{HEAP_MB + RESERVED_MB}m",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
    }
    command = [
        *(SPARK_HOME / "bin" / "spark-submit", "--master", master),
        *(part for each in settings.items() for part in ("--conf", "=".join(each))),
        *(Path(__file__).with_name("driver.py"), *arguments),
    ]
    return output_of(command, without_spark_and_python(), timeout=300)


def test_workers_without_python_and_without_the_package_build(
    archive: Path,
    moved_jdk: Path,
    cluster: tuple[str, list[Path]],
    state: State,
    tmp_path: Path,
) -> None:
    master, places = cluster
    path, report = tmp_path / "table", tmp_path / "report.json"
    shutil.copytree(state.folder / "table", path)
    settings = Settings(cache_folder=tmp_path / "cache")
    open_table(path, settings=settings).create_index("all_columns", COLUMNS)

    printed = submit(master, archive, moved_jdk, path, report)
    assert f"{path}: built 6 entries in " in printed
    workers = json.loads(report.read_text())

    table = open_table(path, settings=settings)
    assert table.status()[0].covered == 6
    check_answers(table, state, use_index="require")
    assert table.verify().problems == ()
    assert len(workers) == 2
    for worker, place in zip(sorted(workers, key=str), places, strict=True):
        unpacked = Path(worker["folder"], "environment").as_posix()
        assert Path(worker["folder"]).is_relative_to(place)
        assert worker["address_space_mb"] == HEAP_MB + RESERVED_MB
        # Only the archive, the JDK, Spark's own Python files and the system's libraries are used.
        foreign = [
            file
            for file in worker["files"]
            if not file.startswith((worker["folder"], str(moved_jdk), "/usr/lib", "/lib", "/dev"))
            and not file.startswith(str(SPARK_HOME / "python" / "lib"))
            # The entry that was opened before it was published, until the JVM's next collection.
            and not ("/hudi-index-build-" in file and file.endswith(" (deleted)"))
        ]
        assert foreign == []
        assert worker["executable"].startswith(worker["folder"]), unpacked
        assert worker["lucene"].startswith(worker["folder"])
        assert str(moved_jdk / "lib" / "server" / "libjvm.so") in worker["files"]


def test_commands_of_the_guide(
    moved_jdk: Path, cluster: tuple[str, list[Path]], state: State, tmp_path: Path
) -> None:
    path, conf = tmp_path / "table", tmp_path / "conf"
    shutil.copytree(state.folder / "table", path)
    open_table(path).create_index("all_columns", COLUMNS)
    conf.mkdir()
    (conf / "spark-defaults.conf").write_text(
        "spark.driver.host 127.0.0.1\nspark.driver.bindAddress 127.0.0.1\n"
        "spark.executor.memory 512m\nspark.ui.enabled false\n"
    )
    commands = only_block("docs/guides/cluster.md", "text", "hudi-index pack")

    for named, real in (
        ("spark://…", cluster[0]),
        ("/usr/lib/jvm/java-17", shlex.quote(str(moved_jdk))),
        ("--table …", f"--table {path} --strategy all"),
    ):
        assert commands.count(named) == 1
        commands = commands.replace(named, real)
    environment = {**without_spark_and_python(), "SPARK_CONF_DIR": str(conf)}
    printed = output_of(["bash", "-e", "-c", commands], environment, cwd=tmp_path, timeout=400)
    assert f"{path}: built 6 entries in " in printed
    check_answers(open_table(path), state, use_index="require")


def test_archive_contains_what_workers_need(archive: Path) -> None:
    with tarfile.open(archive) as opened:
        names = {member.name for member in opened}
    assert {"bin/python", "bin/python3.11", "packages/lucene/__init__.py"} <= names
    assert "packages/hudi_index_service/build/entry/task.py" in names
    assert "packages/hudi_index_hbase/index_type.py" in names
    packages = {name.split("/")[1] for name in names if name.startswith("packages/")}
    assert not packages & {"pyspark", "py4j", "pytest", "airflow", "pip"}
    assert not [name for name in names if name.startswith("/") or ".." in name]
