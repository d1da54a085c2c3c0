"""Real processes that are killed, run out of disk, or read an index file that is truncated."""

import os
import re
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import pytest

from hudi_index_service import open_table
from hudi_index_service.config import BuildSettings, Settings
from tests.faults.conftest import CopyState, State
from tests.faults.invariants import INDEX, RECORDS, check_answers, check_converged
from tests.programs import awaited

# Each test starts processes, and checks answers and convergence.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

HEAD = """
import os, signal, sys, threading
from pathlib import Path
from hudi_index_service import open_table
from hudi_index_service.config import BuildSettings, Settings
from hudi_index_service.errors import IndexServiceError
from hudi_index_service.storage.store import Storage

settings = Settings(cache_folder=Path(sys.argv[2]), build=BuildSettings(parallelism=1))
"""
"""The beginning of all programs."""

BUILD = """
try:
    open_table(sys.argv[1], settings=settings).build().raise_for_failures()
except IndexServiceError as error:
    print(error.code, error.message, flush=True)
"""

# Dies when a task starts to upload its data.
BUILD_AND_DIE = (
    """
def watch(frame, event, argument):
    if event == "call" and frame.f_code is Storage.upload.__code__:
        os.kill(os.getpid(), signal.SIGKILL)

threading.setprofile(watch)
"""
    + BUILD
)

BUILD_ON_SPARK = """
from pyspark.sql import SparkSession
spark = (
    SparkSession.builder.master("local[1,4]")  # a task is tried four times
    .config("spark.ui.enabled", "false")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .getOrCreate()
)
table = open_table(sys.argv[1], spark=spark, settings=settings)
try:
    print("built", len(table.build().raise_for_failures().built), flush=True)
except IndexServiceError as error:
    print(error.code, error.message, flush=True)
"""

# Spark's JVM dies just before the build's job is submitted to it.
BUILD_ON_SPARK_THAT_DIES = BUILD_ON_SPARK.replace(
    "try:",
    """
from hudi_index_service.build.spark import _Jobs

def watch(frame, event, argument):
    if event == "call" and frame.f_code is _Jobs._target.__code__:
        jvm = spark.sparkContext._gateway.proc
        jvm.kill()
        jvm.wait()

sys.setprofile(watch)
try:""",
)

QUERY_FOREVER = """
table = open_table(sys.argv[1], settings=settings)
while True:
    print(table.scan("id = '12'", use_index="require").to_arrow().num_rows, flush=True)
"""

# An open file has been checked and mapped; then it shrinks, which our storage never does.
QUERY_WHILE_TRUNCATED = """
def cut(frame, event, argument):
    if event == "call" and frame.f_code.co_name in ("row_ids", "candidates", "sample"):
        for data in Path(sys.argv[1]).rglob("*.pack"):
            os.truncate(data, 0)

scan = open_table(sys.argv[1], settings=settings).scan("id = '12'")
assert scan.explain().uses_index
sys.setprofile(cut)
threading.setprofile(cut)
rows = scan.to_arrow().num_rows
print(rows, {each.access.value for each in scan.statistics.slices} - {"skip"})
"""

# All blocks have been checked, and Java has compiled the code that reads them.
QUERY_OFTEN_AND_WHILE_TRUNCATED = QUERY_WHILE_TRUNCATED.replace(
    "sys.setprofile(cut)\n",
    "for _ in range(500): assert scan.to_arrow().num_rows == 1\nsys.setprofile(cut)\n",
    1,
)

# A hundred thousand blocks, so that Java compiles the checks; then the rest of the file is cut off.
READ_BLOCKS_WHILE_TRUNCATED = """
import zlib
from hudi_index_service.index.lucene import jvm
lucene = jvm.attach()
from hudiindex import PackedDirectory

size, blocks, path = 512, 100_000, Path(sys.argv[2] + ".pack")
with path.open("wb") as file:
    file.truncate(size * blocks)
crc32 = zlib.crc32(bytes(size)) - 2**32
directory = PackedDirectory(
    str(path),
    lucene.JArray("string")(["member"]),
    lucene.JArray("long")([0]),
    lucene.JArray("long")([size * blocks]),
    size,
    lucene.JArray("int")([crc32] * blocks),
    -1,
)
member = directory.openInput("member", None)
for block in range(blocks - 100):
    member.seek(size * block)
    member.readByte()
os.truncate(path, 4096)
try:
    member.seek(size * (blocks - 1))
    member.readByte()
except lucene.JavaError as error:
    print("ends before" in str(error))
"""


Seen = TypeVar("Seen")


class Program:
    """A program that works on a table, in a session of its own.

    Attributes:
        scratch: Its folder for temporary files.
    """

    def __init__(self, source: str, table: Path, folder: Path, limit: int | None = None) -> None:
        self.scratch = folder / "scratch"
        self.scratch.mkdir(exist_ok=True)
        self._process = subprocess.Popen(
            [sys.executable, "-c", HEAD + source, str(table), str(folder / "cache")],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
            cwd=self.scratch,
            env={**os.environ, "TMPDIR": str(self.scratch), "PYSPARK_PYTHON": sys.executable},
            preexec_fn=None if limit is None else lambda: _limit_files(limit),
        )
        self.pid = self._process.pid

    def wait_for(self, look: Callable[[], Seen]) -> Seen:
        """Waits until `look` returns something true and returns it, or a false value if the program
        ends before."""
        seen = look()

        def look_again() -> bool:
            nonlocal seen
            ended = self._process.poll() is not None  # before the last look, which sees all
            seen = look()
            return bool(seen) or ended

        awaited(look_again)
        return seen

    def line(self) -> str:
        """The next line of its output."""
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def output(self) -> str:
        """All of its output, once it has ended."""
        return self._process.communicate(timeout=200)[0]

    def processes(self) -> dict[int, tuple[int, str]]:
        """The processes of its session: id → parent and command line."""
        found = {}
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                stat = (folder / "stat").read_text().rsplit(")", 1)[1].split()
                state, parent, session = stat[0], int(stat[1]), int(stat[3])
                if session == self.pid and state != "Z":
                    command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                    found[int(folder.name)] = (parent, command)
        return found

    def spark_workers(self) -> list[int]:
        """Spark's Python workers, which its daemon has forked."""
        daemons = {pid: parent for pid, (parent, c) in self.processes().items() if DAEMON in c}
        return [pid for pid, parent in daemons.items() if parent in daemons]

    def kill(self, *pids: int) -> None:
        """Kills these of its processes, or all if none are given."""
        if pids:
            _kill(pids)
            return
        # Repeatedly, since the processes found may just be starting others.
        awaited(lambda: not _kill(self.processes()))
        self._process.communicate(timeout=60)


DAEMON = "pyspark.daemon"


def _kill(pids: Collection[int]) -> Collection[int]:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return pids


def _limit_files(length: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (length, length))


def stored(table: Path, pattern: str) -> bool:
    """Whether a file below the index matches, including those that obstore hides."""
    files = (str(path.relative_to(table)) for path in (table / INDEX).rglob("*"))
    return any(re.search(pattern, file) for file in files)


@pytest.fixture
def defined(copy_state: CopyState) -> Path:
    return copy_state("defined")


@pytest.fixture
def programs(tmp_path: Path) -> Iterator[Callable[..., Program]]:
    """Starts programs, and kills them at the end of the test."""
    started: list[Program] = []

    def start(source: str, table: Path, **options: int) -> Program:
        started.append(Program(source, table, tmp_path, **options))
        return started[-1]

    yield start
    for program in started:
        program.kill()


Start = Callable[..., Program]


Check = Callable[[], None]


@pytest.fixture
def check_all(defined: Path, states: dict[str, State], tmp_path: Path) -> Check:
    """Checks the table after its builder has ended."""

    def check() -> None:
        published = {file: file.read_bytes() for file in (defined / INDEX).rglob("manifest-*.json")}
        settings = Settings(cache_folder=tmp_path / "cache", build=BuildSettings(parallelism=1))
        with open_table(defined, settings=settings) as table:
            check_answers(table, states["defined"].expected)
            check_converged(table, states["defined"].expected)
        assert {file: file.read_bytes() for file in published} == published, "not built again"

    return check


@pytest.mark.parametrize("sign", ["started.json$", r"/data-", "manifest-", "finished.json$"])
def test_builder_killed_after_writing_a_file(
    sign: str, defined: Path, programs: Start, check_all: Check
) -> None:
    builder = programs(BUILD, defined)
    assert builder.wait_for(lambda: stored(defined, sign))
    builder.kill()
    check_all()


def test_next_build_removes_scratch_files_of_a_killed_builder(
    defined: Path, programs: Start
) -> None:
    on_disk = "from hudi_index_service.build.entry import indexing\nindexing.SMALL_BYTES = 0\n"
    first = programs(on_disk + BUILD_AND_DIE, defined)
    assert first.output() == ""
    assert list(first.scratch.glob("hudi-index-*"))

    # The table's build record is fresh; the next build might as well be of another table.
    shutil.rmtree(defined / INDEX / "_service/builds")
    second = programs(on_disk + BUILD, defined)
    assert second.output() == ""
    assert list(second.scratch.glob("hudi-index-*")) == []


@pytest.mark.parametrize("sign", [r"/data-", "manifest-"])
def test_spark_driver_killed_with_its_workers(
    sign: str, defined: Path, programs: Start, check_all: Check
) -> None:
    driver = programs(BUILD_ON_SPARK, defined)
    assert driver.wait_for(lambda: stored(defined, sign))
    driver.kill()
    check_all()


def test_spark_driver_killed_alone(defined: Path, programs: Start, check_all: Check) -> None:
    """Its JVM and its workers end by themselves."""
    driver = programs(BUILD_ON_SPARK, defined)
    assert driver.wait_for(lambda: bool(driver.spark_workers()))
    driver.kill(driver.pid)
    awaited(lambda: not driver.processes())
    check_all()


@pytest.mark.parametrize("begun", [False, True])
def test_jvm_of_spark_killed(begun: bool, defined: Path, programs: Start, check_all: Check) -> None:
    driver = programs(BUILD_ON_SPARK, defined)
    if begun:
        assert driver.wait_for(lambda: stored(defined, RECORDS))
    else:  # its first task checks for Java
        assert driver.wait_for(lambda: bool(driver.spark_workers()))
    jvms = [pid for pid, (_, c) in driver.processes().items() if "SparkSubmit" in c]
    assert jvms
    driver.kill(*jvms)
    assert driver.output().startswith("BUILD_FAILED")
    check_all()


def test_jvm_of_spark_killed_before_the_job(
    defined: Path, programs: Start, check_all: Check
) -> None:
    driver = programs(BUILD_ON_SPARK_THAT_DIES, defined)
    assert driver.output().startswith("BUILD_FAILED")
    check_all()


def test_spark_worker_killed(defined: Path, programs: Start, check_all: Check) -> None:
    """Spark retries the task."""
    driver = programs(BUILD_ON_SPARK, defined)
    workers = driver.wait_for(driver.spark_workers)
    assert workers
    driver.kill(*workers)
    # The next worker finds what a killed one had published.
    assert re.fullmatch(r"built [0-2]\n", driver.output())
    check_all()


def test_full_disk(defined: Path, programs: Start, check_all: Check) -> None:
    """No file can grow beyond a few bytes, as on a full disk."""
    builder = programs(BUILD, defined, limit=2000)
    output = builder.output()
    assert output.startswith("BUILD_FAILED"), output
    assert "File too large" in output
    check_all()


def test_killed_reader_leaves_nothing(
    copy_state: CopyState, states: dict[str, State], programs: Start
) -> None:
    table = copy_state("indexed")
    before = {path: path.stat().st_mtime_ns for path in table.rglob("*")}
    reader = programs(QUERY_FOREVER, table)
    assert reader.line() == "1"
    reader.kill()
    assert {path: path.stat().st_mtime_ns for path in table.rglob("*")} == before


@pytest.mark.parametrize(
    "source", [QUERY_WHILE_TRUNCATED, QUERY_OFTEN_AND_WHILE_TRUNCATED], ids=["", "often"]
)
def test_index_file_truncated_while_it_is_read(
    source: str, copy_state: CopyState, programs: Start
) -> None:
    """Doubt means scan: the JVM reports an error, and the process does not end."""
    reader = programs(source, copy_state("indexed"))
    assert reader.output() == "1 {'scan'}\n"


def test_index_file_truncated_after_java_has_compiled_its_checks(
    defined: Path, programs: Start
) -> None:
    """Compiled code that computed a checksum of the missing part of a mapping used to end the
    process by SIGBUS."""
    assert programs(READ_BLOCKS_WHILE_TRUNCATED, defined).output() == "True\n"
