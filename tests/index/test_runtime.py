"""What index types run on, where it is missing: the cause and its remedy, for all threads alike."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hudi_index_service.index.factory import check_runtime, index_type

REMEDY = "Install JDK 17 and set JAVA_HOME to its folder."

SAY_WHAT_IS_WRONG = """
from hudi_index_service.errors import NativeModuleMissing
from hudi_index_service.index.factory import check_runtime, index_type

{before}
try:
    check_runtime(index_type("{name}"))
except NativeModuleMissing as error:
    print(error.message, error.remedy, sep="\\n")
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


def said(program: str, **environment: str) -> list[str]:
    """Lines of a Python program in a process with no more than this environment."""
    kept = {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**kept, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def what_is_wrong(name: str = "lucene", before: str = "", **environment: str) -> list[str]:
    """Message and remedy."""
    return said(SAY_WHAT_IS_WRONG.format(name=name, before=before), **environment)


@pytest.fixture
def java_25(tmp_path: Path) -> Path:
    """What looks like a JDK 25."""
    home = tmp_path / "jdk-25"
    library = home / "lib" / "server" / "libjvm.so"
    library.parent.mkdir(parents=True)
    library.touch()
    (home / "release").write_text('IMPLEMENTOR="Someone"\nJAVA_VERSION="25.0.3"\n')
    return home


def test_all_is_well_where_the_tests_run() -> None:
    check_runtime(index_type("lucene"))
    check_runtime(index_type("btree"))


def test_another_java_is_named_with_its_folder(java_25: Path) -> None:
    assert what_is_wrong(JAVA_HOME=str(java_25)) == [
        f"lucene needs Java 17, but {java_25} is Java 25.",
        REMEDY,
    ]


def test_no_java_at_all(tmp_path: Path) -> None:
    assert what_is_wrong(PATH=str(tmp_path)) == [
        "lucene needs Java, but JAVA_HOME is not set and no java is on PATH.",
        REMEDY,
    ]


def test_a_java_home_without_a_java(tmp_path: Path) -> None:
    assert what_is_wrong(JAVA_HOME=str(tmp_path)) == [
        f"lucene needs {tmp_path}/lib/server/libjvm.so, which does not exist.",
        REMEDY,
    ]


def test_a_java_that_cannot_be_loaded(java_25: Path) -> None:
    (java_25 / "release").unlink()
    library = java_25 / "lib" / "server" / "libjvm.so"
    assert what_is_wrong(JAVA_HOME=str(java_25)) == [
        f"lucene cannot load {library}: {library}: file too short.",
        REMEDY,
    ]


def test_pylucene_that_is_not_installed_is_not_mistaken_for_java() -> None:
    assert what_is_wrong(before="import sys; sys.modules['lucene'] = None") == [
        "The index type lucene needs PyLucene, which is not installed.",
        "Install hudi-index-pylucene, wherever indexes are built or read.",
    ]


def test_the_client_of_hbase_is_looked_for_as_well() -> None:
    assert what_is_wrong("hbase", "import sys; sys.modules['happybase'] = None") == [
        "The index type hbase needs Python's module happybase, which is missing.",
        "pip install 'hudi-index-service[hbase]', on Spark's executors as well.",
    ]


def test_threads_that_begin_at_once_all_learn_the_cause(java_25: Path) -> None:
    assert said(ATTACH_IN_THREADS, JAVA_HOME=str(java_25)) == ["NativeModuleMissing"]


def test_a_jvm_in_which_pylucene_does_not_run_is_not_used() -> None:
    java_home = os.environ["JAVA_HOME"]
    lines = said(ATTACH_TWICE_WITHOUT_JARS, JAVA_HOME=java_home)

    message, remedy, *again = lines
    assert message.startswith("PyLucene does not run on Java 17.")
    assert message.endswith(f" ({java_home}/lib/server/libjvm.so).")
    assert remedy == "Install hudi-index-pylucene again, for this Python."
    assert again == [message, remedy]
