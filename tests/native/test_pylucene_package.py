"""hudi-index-pylucene as a package: how it finds Java, what it wraps, and how it is built."""

import importlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

import lucene
import pytest

from tests.native.lucene_index import attach

PROJECT = Path(__file__).resolve().parents[2] / "native" / "pylucene"
PACKAGE = Path(lucene.__file__).parent


def java_home() -> Path:
    """The folder of the Java 17 that this process runs with."""
    attach()
    from java.lang import System

    return Path(System.getProperty("java.home"))


def import_lucene(**environment: str) -> subprocess.CompletedProcess[str]:
    """Import `lucene` and start a JVM in a new process with this environment only."""
    program = (
        "import lucene\n"
        "lucene.initVM(vmargs=['-Xrs', '-Xmx64m'])\n"
        "from java.lang import System\n"
        "print(System.getProperty('java.specification.version'))\n"
    )
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_extension_has_no_library_path() -> None:
    (extension,) = PACKAGE.glob("_lucene*.so")
    readelf = shutil.which("readelf")
    assert readelf is not None, "readelf comes with the C++ compiler (binutils)"
    dynamic = subprocess.run(
        [readelf, "--dynamic", "--wide", str(extension)], check=True, capture_output=True, text=True
    ).stdout
    assert "Shared library: [libjvm.so]" in dynamic
    assert "RPATH" not in dynamic
    assert "RUNPATH" not in dynamic


def test_java_is_found_through_java_home(tmp_path: Path) -> None:
    moved_jdk = tmp_path / "a jdk moved elsewhere"
    moved_jdk.symlink_to(java_home())
    done = import_lucene(JAVA_HOME=str(moved_jdk))
    assert (done.stdout, done.stderr) == ("17\n", "")


def test_java_is_found_through_path(tmp_path: Path) -> None:
    (tmp_path / "java").symlink_to(java_home() / "bin" / "java")
    done = import_lucene(PATH=str(tmp_path))
    assert (done.stdout, done.stderr) == ("17\n", "")


def listed_classes() -> list[str]:
    lines = (PROJECT / "classes.txt").read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def test_all_listed_classes_are_wrapped() -> None:
    attach()
    classes = listed_classes()
    assert len(classes) == len(set(classes))
    for name in classes:
        package, _, path = name.rpartition(".")
        wrapped = importlib.import_module(package)
        for part in path.split("$"):
            wrapped = getattr(wrapped, part)
        assert wrapped.class_.getName() == name


def test_bytes_ref_is_created_from_bytes_and_from_text() -> None:
    attach()
    from org.apache.lucene.util import BytesRef

    assert BytesRef(lucene.JArray("byte")("😀".encode())).utf8ToString() == "😀"
    assert BytesRef("😀").bytesEquals(BytesRef(lucene.JArray("byte")("😀".encode())))


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the build backend importable as build front ends do."""
    monkeypatch.syspath_prepend(str(PROJECT / "build_backend"))


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("version", ["21.0.2", "11.0.22", "1.8.0_402"])
def test_building_with_another_jdk_is_refused(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pylucene_build import jdk

    javac = tmp_path / "bin" / "javac"
    javac.parent.mkdir()
    javac.write_text(f"#!/bin/sh\necho javac {version}\n")
    javac.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    expected = rf"is javac {re.escape(version)}, but JDK 17 is needed: .*Spark 3\.5.*Install"
    with pytest.raises(jdk.JdkError, match=expected):
        jdk.find()


@pytest.mark.usefixtures("backend")
def test_building_without_a_jdk_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pylucene_build import jdk

    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(jdk.JdkError, match=r"No JDK found: no javac on PATH\. Install a JDK 17"):
        jdk.find()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(jdk.JdkError, match=r"JAVA_HOME=.* holds no bin/javac\. Install a JDK 17"):
        jdk.find()


@pytest.mark.usefixtures("backend")
def test_running_calls_are_counted_atomically() -> None:
    """If two threads lose a count, every later Java error has an empty message."""
    from pylucene_build import jcc

    header = "class JCCEnv {\n  public:\n    int handlers;\n};\n"
    patched = jcc.with_atomic_count(header)
    assert "\n    std::atomic<int> handlers{0};\n" in patched
    assert patched.startswith("#include <atomic>\n")
    with pytest.raises(ValueError, match="counts calls in another way"):
        jcc.with_atomic_count(patched)


@pytest.mark.usefixtures("backend")
def test_jvm_starts_without_pythons_lock() -> None:
    from pylucene_build import jcc

    source = "        if (JNI_CreateJavaVM(&vm, (void **) &vm_env, &vm_args) < 0)\n        {\n"
    patched = jcc.starting_without_lock(source)
    assert patched.index("ALLOW_THREADS") < patched.index("CreateJavaVM")
    assert patched.endswith("        if (started < 0)\n        {\n")
    with pytest.raises(ValueError, match="starts the JVM in another way"):
        jcc.starting_without_lock(patched)


@pytest.mark.usefixtures("backend")
def test_jar_with_a_wrong_checksum_is_refused_and_not_cached(tmp_path: Path) -> None:
    from pylucene_build import jars

    coordinates = "org.apache.lucene:lucene-queryparser:9.12.3"
    pins = tmp_path / "jars.txt"
    pins.write_text(f"# a wrong sum\n{'0' * 64}  {coordinates}\n")
    with pytest.raises(jars.JarError, match=f"{coordinates} has SHA-256 5db83a18.*expected 0000"):
        jars.fetch(pins, tmp_path / "cache")
    assert not list(tmp_path.rglob("*.jar"))


@pytest.mark.usefixtures("backend")
def test_damaged_jar_in_the_cache_is_fetched_again(tmp_path: Path) -> None:
    from pylucene_build import jars

    pins = tmp_path / "jars.txt"
    line = next(ln for ln in (PROJECT / "jars.txt").read_text().splitlines() if "queryp" in ln)
    pins.write_text(line)
    (jar,) = jars.fetch(pins, tmp_path / "cache")
    content = jar.read_bytes()
    jar.write_bytes(content[:1000])
    assert jars.fetch(pins, tmp_path / "cache") == [jar]
    assert jar.read_bytes() == content
