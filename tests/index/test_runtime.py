"""A missing runtime of an index type: the cause and its remedy, the same for all threads."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import lucene

from hudi_index_service.index.factory import index_type

JAVA_HOME = Path(os.environ["JAVA_HOME"])
JAVA = lucene.libjvm.major_version(JAVA_HOME)
REMEDY = "Install JDK 17, 21 or 25 and set JAVA_HOME to its folder."

PRINT_RUNTIME_ERRORS = """
import json, os, sys
from hudi_index_service.errors import NativeModuleMissing
from hudi_index_service.index.factory import index_type

for name, missing, java_home in json.loads(sys.argv[1]):
    os.environ |= {"PATH": "", "JAVA_HOME": java_home}
    sys.modules[missing] = None
    try:
        index_type(name).check_runtime()
    except NativeModuleMissing as error:
        print(error.message, error.remedy, sep="\\n")
    del sys.modules[missing]
"""

ATTACH_IN_THREADS = """
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from hudi_index_service.index.lucene import jvm

THREADS = 8
together = Barrier(THREADS)

def attach(_):
    together.wait()
    try:
        jvm.attach()
    except Exception as error:
        return type(error).__name__

with ThreadPoolExecutor(THREADS) as pool:
    print(*sorted({each for _ in range(20) for each in pool.map(attach, range(THREADS))}))
"""

ATTACH_TWICE_WITHOUT_JARS = """
import lucene
from hudi_index_service.errors import NativeModuleMissing
from hudi_index_service.index.lucene import jvm

lucene._lucene.CLASSPATH = ""
for _ in range(2):
    try:
        jvm.attach()
    except NativeModuleMissing as error:
        print(error.message, error.remedy, sep="\\n")
"""

START_IN_ADVANCE = """
import threading
from hudi_index_service.errors import NativeModuleMissing
from hudi_index_service.index.factory import index_type
from hudi_index_service.index.lucene import jvm

{before}
for _ in range(3):
    index_type("lucene").start_runtime()
print(sum(each.name == "lucene-start" for each in threading.enumerate()))
{after}
"""

PRINT_FIRST_HEAP = """
from hudi_index_service.index.lucene import jvm

jvm.attach()
from java.lang import Runtime

print(Runtime.getRuntime().totalMemory() // 2**20)
"""

READ_NESTED_JSON = """
import json, sys
from hudi_index_service.index.lucene import jvm

jvm.attach()
sys.setrecursionlimit(100_000)
depth = 9_000
value = json.loads("[" * depth + "]" * depth)
while value:
    (value,) = value
    depth -= 1
print(depth)
"""


def printed(program: str, *arguments: str, **environment: str) -> list[str]:
    """The lines printed by a Python program in a process with only this environment, and with the
    Java of the tests."""
    kept = {name: os.environ[name] for name in ("JAVA_HOME", "PYTHONPATH") if name in os.environ}
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env={**kept, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_runtime_of_the_tests_is_complete() -> None:
    index_type("lucene").check_runtime()
    index_type("btree").check_runtime()


def test_the_cause_of_a_missing_runtime_is_reported(java_26: Path, tmp_path: Path) -> None:
    nothing, damaged = tmp_path / "nothing", shutil.copytree(java_26, tmp_path / "damaged")
    (damaged / "release").unlink()
    library = damaged / "lib" / "server" / "libjvm.so"
    causes = {
        ("lucene", "", str(java_26)): f"lucene needs Java 17 to 25, but {java_26} is Java 26.",
        ("lucene", "", ""): "lucene needs Java, but JAVA_HOME is not set and no java is on PATH.",
        ("lucene", "", str(nothing)): (
            f"lucene needs {nothing}/lib/server/libjvm.so, which does not exist."
        ),
        ("lucene", "", str(damaged)): f"lucene cannot load {library}: {library}: file too short.",
        ("lucene", "lucene", ""): "The index type lucene needs PyLucene, which is not installed.",
        ("hbase", "happybase", ""): (
            "The index type hbase needs the Python module happybase, which is missing."
        ),
    }
    remedies = {
        "": REMEDY,
        "lucene": "Install hudi-index-pylucene, wherever indexes are built or read.",
        "happybase": (
            "Install it with pip install 'hudi-index-service[hbase]', also on Spark's executors."
        ),
    }
    told = printed(PRINT_RUNTIME_ERRORS, json.dumps(list(causes)))
    assert told[::2] == list(causes.values())
    assert told[1::2] == [remedies[missing] for _, missing, _ in causes]


def test_concurrent_threads_all_get_the_cause(java_26: Path) -> None:
    assert printed(ATTACH_IN_THREADS, JAVA_HOME=str(java_26)) == ["NativeModuleMissing"]


def test_a_jvm_that_cannot_run_pylucene_is_not_used() -> None:
    message, remedy, *again = printed(ATTACH_TWICE_WITHOUT_JARS)
    assert message.startswith(f"PyLucene does not run on Java {JAVA}.")
    assert message.endswith(f" ({JAVA_HOME}/lib/server/libjvm.so).")
    assert remedy == "Install hudi-index-pylucene again, for this Python."
    assert again == [message, remedy]


def test_jvm_is_started_once_in_advance_by_a_thread_of_its_own() -> None:
    attached = "print(jvm.attach().getVMEnv().java_version)"
    threads, version = printed(START_IN_ADVANCE.format(before="", after=attached))
    assert (threads, version.split(".")[0]) == ("1", str(JAVA))
    started = START_IN_ADVANCE.format(before="jvm.attach()", after="")
    assert printed(started) == ["0"], "it runs already"
    unused = START_IN_ADVANCE.format(before="", after="")
    assert printed(unused) == ["1"], "the process ends without having needed it"


def test_a_failed_start_in_advance_is_raised_where_the_jvm_is_needed(java_26: Path) -> None:
    attach = "try:\n    jvm.attach()\nexcept NativeModuleMissing as error:\n    print(error.remedy)"
    program = START_IN_ADVANCE.format(before="", after=attach)
    assert printed(program, JAVA_HOME=str(java_26))[-1] == REMEDY


def test_the_first_heap_does_not_depend_on_the_machine() -> None:
    assert 40 <= int(printed(PRINT_FIRST_HEAP)[0]) <= 48
    (smaller,) = printed(PRINT_FIRST_HEAP, HUDI_INDEX_LUCENE__HEAP_MB="32")
    assert int(smaller) <= 32


def test_the_main_thread_keeps_its_stack_when_java_runs_in_it() -> None:
    """More than a megabyte of it, with C code that calls itself."""
    assert printed(READ_NESTED_JSON) == ["1"]
