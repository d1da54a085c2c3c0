"""The set-up: it names what is missing, caches by content, and leaves nothing half-done."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dev import native, prerequisites
from dev.bootstrap import is_current
from dev.checksums import sha256_of
from dev.jars import JarRefused, PinnedJar, fetch, fetch_all, fetched, hbase_jars, hudi_bundle
from dev.native import PYLUCENE, Project, WheelCache, cache_key, toolchain_of
from dev.paths import CONSTRAINTS, ROOT
from dev.prerequisites import (
    Browser,
    Compiler,
    Jdk,
    Missing,
    find_browser,
    find_compiler,
    find_jdk,
    find_other_java,
)
from dev.steps import StepFailed, Steps
from tests.programs import awaited

JDK_17 = Jdk(Path("/jdk"), "17.0.15")
GCC_12 = Compiler("/usr/bin/g++", "g++", "12")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of the files that the set-up reads, without environment or cache."""
    copy = tmp_path / "checkout"
    for name in ("dev", "constraints", "native", "plugins"):
        ignored = shutil.ignore_patterns("target", "build", "__pycache__", "*.so")
        shutil.copytree(ROOT / name, copy / name, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", copy)
    return copy


def bootstrap(checkout: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    cache = str(checkout.parent / "cache")
    return subprocess.run(
        [sys.executable, "-m", "dev.bootstrap", "demo"],
        cwd=checkout,
        env={"HOME": str(checkout.parent), "HUDI_INDEX_CACHE": cache, **environ},
        capture_output=True,
        text=True,
        timeout=60,
    )


class TestPrerequisites:
    def test_all_missing_prerequisites_are_named_and_nothing_is_done(self, checkout: Path) -> None:
        before = sorted(checkout.rglob("*"))
        answer = bootstrap(checkout, PATH="/nonexistent")

        assert answer.returncode == 1
        lines = answer.stderr.splitlines()
        names = [line.split(":")[1].strip() for line in lines]
        assert names[:2] == ["JDK 17", "C++ compiler"]
        assert re.fullmatch(r"cargo \(Rust [\d.]+ or later\)", names[2])
        assert len(lines) == 3
        assert all("Get it: apt install" in line for line in lines)
        created = [
            path
            for path in set(checkout.rglob("*")) - set(before)
            if "__pycache__" not in path.parts
        ]
        assert created == []
        assert not (checkout.parent / "cache").exists()

    def test_jdk_that_does_not_serve_is_refused_with_the_reason(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        home = jdk(tmp_path / "jdk", "25.0.1")
        monkeypatch.setenv("JAVA_HOME", str(home))
        with pytest.raises(Missing, match=r"jdk is version 25\.0\.1; Spark 3\.5 stops at 17"):
            find_jdk()
        (home / "bin" / "javac").unlink()
        with pytest.raises(Missing, match=r"JAVA_HOME=\S*jdk has no bin/javac"):
            find_jdk()

    def test_jdk_is_found_by_javac_on_path(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        home = jdk(tmp_path / "jdk-17", "17.0.15")
        monkeypatch.delenv("JAVA_HOME", raising=False)
        links = tmp_path / "bin"
        links.mkdir()
        (links / "javac").symlink_to(home / "bin" / "javac")
        monkeypatch.setenv("PATH", str(links))

        assert find_jdk() == Jdk(home, "17.0.15")

    def test_other_java_is_found_or_reported(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        jdk(tmp_path / "a-17", "17.0.15")
        home = jdk(tmp_path / "b-25", "25.0.3")
        monkeypatch.setattr(prerequisites, "JAVAS", tmp_path)

        assert find_other_java(25) == home
        with pytest.raises(Missing, match=r"JDK 26: no folder of \S+ is one\. Get it: apt install"):
            find_other_java(26)

    def test_cxx_names_the_compiler(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("CXX", "no-such-compiler -O2")

        with pytest.raises(Missing, match="none of no-such-compiler is on PATH"):
            find_compiler()


def jdk(home: Path, version: str) -> Path:
    """A folder that looks like a JDK of that version."""
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "javac").write_text("#!/bin/sh\n")
    (home / "bin" / "javac").chmod(0o755)
    (home / "release").write_text(f'IMPLEMENTOR="Test"\nJAVA_VERSION="{version}"\n')
    return home


class TestCacheKey:
    @pytest.fixture
    def project(self, tmp_path: Path) -> Project:
        folder = tmp_path / "project"
        (folder / "src").mkdir(parents=True)
        (folder / "pyproject.toml").write_text("[project]\n")
        (folder / "src" / "lib.rs").write_text("fn one() {}\n")
        return Project("example", folder)

    def test_key_is_stable_for_equal_inputs(self, project: Project, tmp_path: Path) -> None:
        key = cache_key(project, ())
        for output in ("target/release/lib.so", "build/x.o", "tests/test_x.py", "src/_x.so"):
            path = project.folder / output
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("left by a build")
        os.utime(project.folder / "src" / "lib.rs", (0, 0))

        assert cache_key(project, ()) == key
        assert cache_key(project.copied_to(tmp_path / "elsewhere"), ()) == key

    def test_copied_inputs_have_new_times(self, project: Project, tmp_path: Path) -> None:
        os.utime(project.folder / "src" / "lib.rs", (0, 0))
        project.copied_to(tmp_path / "elsewhere")
        # Else cargo would take them for the older files of another checkout, compiled already.
        assert (tmp_path / "elsewhere" / "src" / "lib.rs").stat().st_mtime > 0

    def test_changed_added_renamed_or_removed_file_changes_the_key(self, project: Project) -> None:
        source = project.folder / "src" / "lib.rs"
        keys = [cache_key(project, ())]
        source.write_text("fn two() {}\n")
        keys.append(cache_key(project, ()))
        (project.folder / "src" / "more.rs").write_text("")
        keys.append(cache_key(project, ()))
        source.rename(source.with_name("other.rs"))
        keys.append(cache_key(project, ()))
        (project.folder / "src" / "other.rs").unlink()
        keys.append(cache_key(project, ()))

        assert len(set(keys)) == len(keys)

    @pytest.mark.parametrize(
        ("jdk", "compiler"),
        [
            (Jdk(Path("/jdk"), "18.0.1"), GCC_12),
            (JDK_17, Compiler("/usr/bin/g++", "g++", "13")),
            (JDK_17, Compiler("/usr/bin/clang++", "clang++", "12")),
        ],
    )
    def test_another_toolchain_changes_the_key_of_the_lucene_wheel(
        self, jdk: Jdk, compiler: Compiler
    ) -> None:
        ours = cache_key(PYLUCENE, toolchain_of(PYLUCENE, JDK_17, GCC_12))

        assert cache_key(PYLUCENE, toolchain_of(PYLUCENE, jdk, compiler)) != ours

    def test_newer_build_of_the_same_jdk_keeps_the_key(self) -> None:
        ours = cache_key(PYLUCENE, toolchain_of(PYLUCENE, JDK_17, GCC_12))
        patched = Jdk(Path("/elsewhere"), "17.0.99")

        assert cache_key(PYLUCENE, toolchain_of(PYLUCENE, patched, GCC_12)) == ours


class TestWheelCache:
    def test_damaged_entry_is_removed(self, tmp_path: Path) -> None:
        project = Project("example", tmp_path)
        entry = tmp_path / "wheels" / "example-key"
        entry.mkdir(parents=True)
        wheel = entry / "example-1.whl"
        wheel.write_bytes(b"the wheel")
        (entry / native.CHECKSUM).write_text(f"{sha256_of(wheel)}  {wheel.name}\n")
        cache = WheelCache(tmp_path)
        assert cache.find(project, "key") == wheel

        wheel.write_bytes(b"the whee")

        assert cache.find(project, "key") is None
        assert not entry.exists()

    def test_entry_without_its_checksum_is_removed(self, tmp_path: Path) -> None:
        entry = tmp_path / "wheels" / "example-key"
        entry.mkdir(parents=True)
        (entry / "example-1.whl").write_bytes(b"the wheel")

        assert WheelCache(tmp_path).find(Project("example", tmp_path), "key") is None
        assert not entry.exists()


class TestJar:
    def test_fetched_jar_is_in_the_cache_with_the_pinned_hash(self) -> None:
        path = fetch(hudi_bundle())

        assert path == hudi_bundle().path()
        assert fetched(hudi_bundle())

    def test_jar_with_another_hash_is_refused(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("HUDI_INDEX_CACHE", str(tmp_path))
        jar = PinnedJar("org.apache.lucene", "lucene-queryparser", "9.12.3", "0" * 64)

        with pytest.raises(JarRefused, match=r"lucene-queryparser-9\.12\.3\.jar has sha256"):
            fetch(jar)
        assert list(tmp_path.rglob("*.jar")) == []

    def test_several_jars_are_fetched_with_progress_messages(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("HUDI_INDEX_CACHE", str(tmp_path))
        small = ("hbase-unsafe", "audience-annotations", "slf4j-reload4j")
        jars = [jar for jar in hbase_jars() if jar.artifact in small]
        messages: list[str] = []

        assert fetch_all(jars, messages.append) == [jar.path() for jar in jars]

        assert [line.split(":")[0] for line in messages] == ["1 of 3", "2 of 3", "3 of 3"]
        assert all(fetched(jar) for jar in jars)
        fetch_all(jars, messages.append)
        assert len(messages) == 3


class TestSteps:
    def test_failing_command_shows_the_end_of_its_log(self, tmp_path: Path) -> None:
        steps = Steps(tmp_path)

        with pytest.raises(StepFailed) as failure:
            steps.run("compile", ["sh", "-c", "seq 100; echo no such header >&2; exit 3"])

        lines = str(failure.value).splitlines()
        assert lines[0] == "compile: ended with code 3"
        assert lines[1] == "  | 77"
        assert lines[-2:] == ["  | no such header", f"The full log: {tmp_path / 'compile.log'}"]

    def test_command_that_outlives_a_killed_run_keeps_the_lock(self, checkout: Path) -> None:
        hold = (
            "from dev.bootstrap import checkout_lock; from dev.steps import Steps\n"
            "from pathlib import Path\n"
            "with checkout_lock() as lock:\n"
            "    Steps(Path('logs'), lock).run('held', ['sh', '-c', 'echo $$; exec sleep 60'])\n"
        )
        holder = subprocess.Popen([sys.executable, "-c", hold], cwd=checkout)
        log = checkout / "logs" / "held.log"
        command = int(awaited(lambda: log.is_file() and log.read_text(), 30))
        holder.kill()
        holder.wait()
        locked = "from dev.bootstrap import checkout_lock\nwith checkout_lock(): print('mine')"
        waiting = subprocess.Popen(
            [sys.executable, "-c", locked], cwd=checkout, stdout=subprocess.PIPE, text=True
        )
        assert waiting.stdout.readline().startswith("another set-up of this checkout is at work")
        os.kill(command, signal.SIGKILL)

        assert waiting.communicate(timeout=30)[0] == "mine\n"


class TestBrowser:
    def test_browser_and_driver_are_found_on_path(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("PATH", str(tmp_path))
        for name in ("chromium", "chromedriver"):
            with pytest.raises(Missing, match=f"{name} is not on PATH. Get it: apt install chrom"):
                find_browser()
            (tmp_path / name).touch(mode=0o755)

        assert find_browser() == Browser(f"{tmp_path}/chromium", f"{tmp_path}/chromedriver")


class TestNothingChanged:
    def test_finished_set_up_is_current_until_its_inputs_change_or_its_jar_is_gone(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("HUDI_INDEX_CACHE", str(tmp_path / "cache"))
        monkeypatch.setattr("dev.bootstrap.VENV", tmp_path)
        monkeypatch.setattr("dev.bootstrap.STAMP", tmp_path / "set-up.json")
        for path in (tmp_path / "bin" / "python", hudi_bundle().path()):
            path.parent.mkdir(parents=True)
            path.touch()
        stamp = {"profile": "test", "fingerprint": "now"}
        (tmp_path / "set-up.json").write_text(json.dumps(stamp))

        assert is_current("test", "now")
        assert is_current("demo", "now")
        assert not is_current("demo", "later")
        hudi_bundle().path().unlink()
        assert not is_current("demo", "now")


class TestCheckout:
    def test_committed_files_contain_no_registry_and_no_local_path(self) -> None:
        pins = ["constraints/*", "*.lock", "*.toml", "*.cfg", "Makefile", ".ci/*", "*requirements*"]
        registries = r"https?://(?!github\.com)|registry\+|--(extra-)?index-url|--find-links"
        assert grep(registries, *pins) == []
        assert grep(r"(?<![\w.$}])/(root|Users/\w+)/", ".") == []

    def test_demo_pins_are_among_the_test_pins(self) -> None:
        demo, tests = (
            # A platform that only one of them needs is no other version.
            {each.split(" ;")[0] for each in (CONSTRAINTS / name).read_text().splitlines()}
            for name in ("demo.txt", "dev.txt")
        )
        assert demo < tests
        assert {"pyspark==3.5.9", "hudi==0.5.0", "pyarrow==26.0.1"} < demo


def grep(pattern: str, *pathspecs: str) -> list[str]:
    """Lines of tracked files that match a regular expression."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--", *pathspecs], cwd=ROOT, capture_output=True, check=True
    )
    hits = []
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (ROOT / name).is_dir():
            continue  # a link to a folder, whose files are listed themselves
        try:
            text = (ROOT / name).read_text()
        except UnicodeDecodeError:
            continue  # a binary file, such as the golden entry
        hits += [f"{name}: {line}" for line in text.splitlines() if re.search(pattern, line)]
    return hits
