"""Real processes that are killed, run out of disk, or find an index file cut short under them."""

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
from random import Random
from threading import Event
from time import monotonic
from typing import TypeVar

import pytest

from hudi_index_service import open_table
from hudi_index_service.config import BuildSettings, Settings
from tests.faults.conftest import CopyState, State
from tests.faults.invariants import INDEX, RECORDS, check_answers, check_converged

# Each starts processes, and answers and converges anew.
pytestmark = pytest.mark.timeout(1200)

BUILD = """
import sys
from pathlib import Path
from hudi_index_service import open_table
from hudi_index_service.config import BuildSettings, Settings
from hudi_index_service.errors import IndexServiceError
settings = Settings(cache_folder=Path(sys.argv[2]), build=BuildSettings(parallelism=1))
try:
    open_table(sys.argv[1], settings=settings).build().raise_for_failures()
except IndexServiceError as error:
    print(error.code, error.message, flush=True)
"""

# Dies as soon as a task uploads what it has on its disk.
BUILD_AND_DIE = (
    """
import os, signal, threading
from hudi_index_service.storage import Storage

def watch(frame, event, argument):
    if event == "call" and frame.f_code is Storage.upload.__code__:
        os.kill(os.getpid(), signal.SIGKILL)

threading.setprofile(watch)
"""
    + BUILD
)

BUILD_ON_SPARK = """
import sys
from pathlib import Path
from pyspark.sql import SparkSession
from hudi_index_service import open_table
from hudi_index_service.config import Settings
from hudi_index_service.errors import IndexServiceError
spark = (
    SparkSession.builder.master("local[1,4]")  # a task is tried four times
    .config("spark.ui.enabled", "false")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .getOrCreate()
)
table = open_table(sys.argv[1], spark=spark, settings=Settings(cache_folder=Path(sys.argv[2])))
try:
    print("built", len(table.build().raise_for_failures().built), flush=True)
except IndexServiceError as error:
    print(error.code, error.message, flush=True)
"""

QUERY_FOR_EVER = """
import sys
from pathlib import Path
from hudi_index_service import open_table
from hudi_index_service.config import Settings
table = open_table(sys.argv[1], settings=Settings(cache_folder=Path(sys.argv[2])))
while True:
    print(table.scan("id = '12'", use_index="require").to_arrow().num_rows, flush=True)
"""

# What is open was checked and mapped; then the file shrinks, as no storage of ours ever does it.
QUERY_WHILE_CUT = """
import os, sys
from pathlib import Path
from hudi_index_service import open_table
from hudi_index_service.config import Settings
from hudi_index_service.storage import Storage

def cut(frame, event, argument):
    if event == "call" and frame.f_code.co_name in ("row_ids", "candidates", "sample"):
        for data in Path(sys.argv[1]).rglob("*.pack"):
            os.truncate(data, 0)

table = open_table(sys.argv[1], settings=Settings(cache_folder=Path(sys.argv[2])))
scan = table.scan("id = '12'")
assert scan.explain().uses_index
sys.setprofile(cut)
import threading
threading.setprofile(cut)
print(scan.to_arrow().num_rows, {each.access.value for each in scan.statistics.slices})
"""

# All blocks were checked long ago, and Java has compiled what reads them.
QUERY_OFTEN_AND_WHILE_CUT = QUERY_WHILE_CUT.replace(
    "sys.setprofile(cut)\n",
    "for _ in range(500): assert scan.to_arrow().num_rows == 1\nsys.setprofile(cut)\n",
    1,
)

# A hundred thousand blocks, so that Java compiles what checks them; then the rest of the file goes.
READ_BLOCKS_WHILE_CUT = """
import os, sys, zlib
from pathlib import Path
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
    """A program at work on a table, in a session of its own.

    Attributes:
        scratch: Its folder for temporary files.
    """

    def __init__(self, source: str, table: Path, folder: Path, limit: int | None = None) -> None:
        self.scratch = folder / "scratch"
        self.scratch.mkdir(exist_ok=True)
        self._process = subprocess.Popen(
            [sys.executable, "-c", source, str(table), str(folder / "cache")],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
            cwd=self.scratch,
            env={**os.environ, "TMPDIR": str(self.scratch), "PYSPARK_PYTHON": sys.executable},
            preexec_fn=None if limit is None else lambda: _limit_files(limit),
        )
        self.pid = self._process.pid

    def until(self, look: Callable[[], Seen]) -> Seen:
        """Waits until a look shows something, and returns that; nothing (false, empty) if the
        program ends before."""
        seen = look()

        def look_again() -> bool:
            nonlocal seen
            ended = self._process.poll() is not None  # first: a last look shows what it did
            seen = look()
            return bool(seen) or ended

        _until(look_again)
        return seen

    def line(self) -> str:
        """The next line that it prints."""
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def output(self) -> str:
        """All that it prints, once it has ended."""
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
        """Spark's Python workers: what its daemon has forked."""
        daemons = {pid: parent for pid, (parent, c) in self.processes().items() if DAEMON in c}
        return [pid for pid, parent in daemons.items() if parent in daemons]

    def kill(self, *pids: int) -> None:
        """Kills these processes of it; without any, all."""
        if pids:
            _kill(pids)
            return
        # Again and again: those seen may just be starting others.
        assert _until(lambda: not _kill(self.processes()))
        self._process.communicate(timeout=60)


DAEMON = "pyspark.daemon"


def _until(seen: Callable[[], bool], seconds: float = 200.0) -> bool:
    waiting, end = Event(), monotonic() + seconds
    while not seen():
        if monotonic() > end:
            return False
        waiting.wait(0.002)
    return True


def _kill(pids: Collection[int]) -> Collection[int]:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return pids


def _limit_files(length: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (length, length))


def stored(table: Path, pattern: str) -> bool:
    """Whether a file of such a path is below the index, those that obstore hides among them."""
    files = (str(path.relative_to(table)) for path in (table / INDEX).rglob("*"))
    return any(re.search(pattern, file) for file in files)


@pytest.fixture
def defined(copy_state: CopyState) -> Path:
    return copy_state("defined")


@pytest.fixture
def programs(tmp_path: Path) -> Iterator[Callable[..., Program]]:
    """Starts programs; ends them with the test."""
    started: list[Program] = []

    def start(source: str, table: Path, **options: int) -> Program:
        started.append(Program(source, table, tmp_path, **options))
        return started[-1]

    yield start
    for program in started:
        program.kill()


Start = Callable[..., Program]


def check_all(table: Path, states: dict[str, State], tmp_path: Path, name: str = "defined") -> None:
    settings = Settings(cache_folder=tmp_path / "cache", build=BuildSettings(parallelism=1))
    with open_table(table, settings=settings) as opened:
        check_answers(opened, states[name].expected)
        check_converged(opened, states[name].expected)


@pytest.mark.parametrize("sign", ["started.json$", r"/data-", "manifest-", "finished.json$"])
def test_a_builder_killed_at_a_sign(
    sign: str, defined: Path, states: dict[str, State], programs: Start, tmp_path: Path
) -> None:
    builder = programs(BUILD, defined)
    assert builder.until(lambda: stored(defined, sign))
    builder.kill()
    check_all(defined, states, tmp_path)


@pytest.mark.parametrize("seed", range(4))
def test_a_builder_killed_at_any_moment(
    seed: int, defined: Path, states: dict[str, State], programs: Start, tmp_path: Path
) -> None:
    builder = programs(BUILD, defined)
    assert builder.until(lambda: stored(defined, "started.json$"))
    end = monotonic() + Random(seed).uniform(0.0, 0.8)
    builder.until(lambda: monotonic() > end)
    builder.kill()
    check_all(defined, states, tmp_path)


def test_what_a_killed_builder_left_on_its_own_disk_goes_with_the_next(
    defined: Path, programs: Start
) -> None:
    first = programs(BUILD_AND_DIE, defined)
    assert first.output() == ""
    assert list(first.scratch.glob("hudi-index-*"))

    # The table's record of it is fresh; the next build may as well be another table's.
    shutil.rmtree(defined / INDEX / "_service/builds")
    second = programs(BUILD, defined)
    assert second.output() == ""
    assert list(second.scratch.glob("hudi-index-*")) == []


def test_a_spark_driver_killed_with_its_workers(
    defined: Path, states: dict[str, State], programs: Start, tmp_path: Path
) -> None:
    driver = programs(BUILD_ON_SPARK, defined)
    assert driver.until(lambda: stored(defined, r"/data-"))
    driver.kill()
    check_all(defined, states, tmp_path)


def test_a_spark_driver_killed_alone(
    defined: Path, states: dict[str, State], programs: Start, tmp_path: Path
) -> None:
    """Its virtual machine and its workers end by themselves."""
    driver = programs(BUILD_ON_SPARK, defined)
    assert driver.until(lambda: bool(driver.spark_workers()))
    driver.kill(driver.pid)
    assert _until(lambda: not driver.processes())
    check_all(defined, states, tmp_path)


@pytest.mark.parametrize("begun", [False, True])
def test_spark_s_virtual_machine_killed(
    begun: bool, defined: Path, states: dict[str, State], programs: Start, tmp_path: Path
) -> None:
    driver = programs(BUILD_ON_SPARK, defined)
    if begun:
        assert driver.until(lambda: stored(defined, RECORDS))
    else:  # its first task looks whether there is a Java
        assert driver.until(lambda: bool(driver.spark_workers()))
    machines = [pid for pid, (_, c) in driver.processes().items() if "SparkSubmit" in c]
    assert machines
    driver.kill(*machines)
    assert driver.output().startswith("BUILD_FAILED")
    check_all(defined, states, tmp_path)


def test_a_spark_worker_killed(
    defined: Path, states: dict[str, State], programs: Start, tmp_path: Path
) -> None:
    """Spark tries the task again."""
    driver = programs(BUILD_ON_SPARK, defined)
    workers = driver.until(driver.spark_workers)
    assert workers
    driver.kill(*workers)
    # What a worker had published by then, the next one finds there.
    assert re.fullmatch(r"built [0-2]\n", driver.output())
    check_all(defined, states, tmp_path)


def test_a_full_disk(
    defined: Path, states: dict[str, State], programs: Start, tmp_path: Path
) -> None:
    """No file can grow beyond a few bytes: what holds for a file holds for the disk."""
    builder = programs(BUILD, defined, limit=2000)
    said = builder.output()
    assert said.startswith("BUILD_FAILED"), said
    assert "File too large" in said
    check_all(defined, states, tmp_path)


def test_a_reader_killed_leaves_nothing(
    copy_state: CopyState, states: dict[str, State], programs: Start
) -> None:
    table = copy_state("indexed")
    before = {path: path.stat().st_mtime_ns for path in table.rglob("*")}
    reader = programs(QUERY_FOR_EVER, table)
    assert reader.line() == "1"
    reader.kill()
    assert {path: path.stat().st_mtime_ns for path in table.rglob("*")} == before


@pytest.mark.parametrize("source", [QUERY_WHILE_CUT, QUERY_OFTEN_AND_WHILE_CUT], ids=["", "often"])
def test_an_index_file_cut_short_while_it_is_read(
    source: str, copy_state: CopyState, programs: Start
) -> None:
    """Doubt means scan: the machine reports the fault, it does not end the process."""
    reader = programs(source, copy_state("indexed"))
    assert reader.output() == "1 {'scan'}\n"


def test_an_index_file_cut_short_once_java_has_compiled_its_checks(
    defined: Path, programs: Start
) -> None:
    """Where compiled code would compute a checksum of the missing part of a mapping, the process
    ended by SIGBUS."""
    assert programs(READ_BLOCKS_WHILE_CUT, defined).output() == "True\n"
