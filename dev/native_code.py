"""Checks, formats and tests the Rust and Java below native/: `python -m dev.native_code lint`.

`lint` says what is not formatted, lets clippy look at the Rust, and cargo-deny at the crates that
it uses (native/parquet_rows/deny.toml); `format` rewrites the sources; `test` runs cargo's tests of
the row reader and JUnit's of Spark's rule, whose jar the environment holds. Crates come from the
build, or are fetched once; the tools for Java are pinned jars in the user's cache.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from dev.jars import JAVA_TOOLS, PinnedJar, fetch, pinned
from dev.native import PARQUET_ROWS, SPARK_RULE, target_folder
from dev.paths import ROOT
from dev.prerequisites import Missing, find_jdk

JAVA_TESTS = SPARK_RULE.folder / "tests" / "java"
# The formatter reads Java with javac's own classes.
COMPILER_PACKAGES = ("api", "code", "file", "parser", "tree", "util")


class Failed(Exception):
    """A tool found something, and has said what."""


def lint() -> None:
    """Fails if sources are not formatted, or clippy or cargo-deny objects to something."""
    _say("cargo fmt --check")
    _cargo("fmt", "--all", "--check")
    _say("cargo clippy, warnings are errors")
    _cargo("clippy", "--workspace", "--release", "--all-targets", "--", "-D", "warnings")
    _say("cargo deny: licenses, versions and sources of crates")
    _cargo("deny", "check", "licenses", "bans", "sources")
    _say("google-java-format")
    _format_java("--dry-run", "--set-exit-if-changed")


def format_all() -> None:
    """Rewrites all sources in their style."""
    _cargo("fmt", "--all")
    format_java()


def format_java() -> None:
    """Rewrites the Java in its style."""
    _format_java("--replace")


def test() -> None:
    """Runs the tests that need no Python and no session of Spark."""
    _say("cargo test")
    _cargo("test", "--workspace", "--release")
    _say("JUnit")
    _test_java()


def _say(what: str) -> None:
    print(f"native code: {what}", flush=True)


def _run(tool: str, command: Sequence[str | Path], cwd: Path = ROOT) -> None:
    # The build's own folder, where the crates are compiled already.
    env = {**os.environ, "CARGO_TARGET_DIR": str(target_folder())}
    if subprocess.run([*map(str, command)], cwd=cwd, env=env).returncode:
        raise Failed(tool)


def _cargo(command: str, *arguments: str) -> None:
    cargo = shutil.which("cargo")
    tool = {"fmt": "cargo-fmt", "clippy": "cargo-clippy", "deny": "cargo-deny"}.get(
        command, "cargo"
    )
    if cargo is None or shutil.which(tool) is None:
        how = "rustup component add rustfmt clippy, or apt install rustfmt rust-clippy"
        raise Missing(tool, "it is not on PATH", "make setup" if command == "deny" else how)
    folder = PARQUET_ROWS.folder
    # Offline if the build has fetched all crates.
    known = subprocess.run([cargo, "fetch", "--offline"], cwd=folder, capture_output=True)
    offline = [] if command == "fmt" or known.returncode else ["--offline"]
    _run(f"cargo {command}", [cargo, command, *offline, *arguments], folder)


def _java(tool: str) -> str:
    return str(find_jdk().home / "bin" / tool)


def _java_tool(artifact: str) -> PinnedJar:
    return next(jar for jar in pinned(JAVA_TOOLS) if jar.artifact == artifact)


def _format_java(*arguments: str) -> None:
    folders = [PARQUET_ROWS.folder.parent, ROOT / "dev"]
    sources = [path for folder in folders for path in sorted(folder.rglob("*.java"))]
    exports = [
        f"--add-exports=jdk.compiler/com.sun.tools.javac.{each}=ALL-UNNAMED"
        for each in COMPILER_PACKAGES
    ]
    jar, tool = fetch(_java_tool("google-java-format")), "google-java-format (see make format)"
    _run(tool, [_java("java"), *exports, "-jar", jar, *arguments, *sources])


def _test_java() -> None:
    junit = fetch(_java_tool("junit-platform-console-standalone"))
    class_path = [junit, *_package("hudi_index_spark").glob("hudi-index-spark*_2.12.jar")]
    class_path.append(_package("pyspark") / "jars" / "*")
    with tempfile.TemporaryDirectory() as scratch:
        path = os.pathsep.join(map(str, [scratch, *class_path]))
        javac = [_java("javac"), "-Xlint:all,-classfile,-path", "-Werror", "-proc:none"]
        _run(
            "javac",
            [*javac, "-classpath", path, "-d", scratch, *sorted(JAVA_TESTS.rglob("*.java"))],
        )
        launcher = ["org.junit.platform.console.ConsoleLauncher", "execute", "--disable-banner"]
        launcher += ["--details=summary", "--fail-if-no-tests", f"--scan-class-path={scratch}"]
        _run("JUnit", [_java("java"), "-classpath", path, *launcher])


def _package(name: str) -> Path:
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        raise Missing(name, "it is not in this environment", "make setup")
    return Path(spec.origin).parent


def main() -> None:
    """The command line: `python -m dev.native_code lint`, `format`, `format-java` or `test`."""
    actions = {"lint": lint, "format": format_all, "format-java": format_java, "test": test}
    parser = argparse.ArgumentParser(prog="python -m dev.native_code", description=__doc__)
    parser.add_argument("action", choices=actions)
    try:
        actions[parser.parse_args().action]()
    except Missing as missing:
        raise SystemExit(f"missing: {missing}") from None
    except Failed as failed:
        raise SystemExit(f"failed: {failed}") from None


if __name__ == "__main__":
    main()
