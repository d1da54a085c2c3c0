"""Compiles java/ into the jar of the wheel, against the jars that PySpark comes with."""

import os
import shutil
import subprocess
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

RELEASE = "17"
"""The oldest Java that runs the classes; Spark 3.5 stops there."""

JAR = "hudi_index_spark/hudi-index-spark.jar"

JARS_VARIABLE = "HUDI_INDEX_SPARK_JARS"
"""Environment variable: a folder of Spark's jars to compile against. PySpark comes as source of
300 MB, which takes 20 s to unpack and pack; a build that has it elsewhere does without."""


class JdkMissing(RuntimeError):
    """There is no JDK to compile with; the message states the remedy."""


class JarHook(BuildHookInterface):  # type: ignore[type-arg]
    """Puts the jar into the wheel. The source folder is only read."""

    def dependencies(self) -> list[str]:
        """What the build needs besides this file."""
        pyspark: list[str] = self.config["pyspark"]
        return [] if os.environ.get(JARS_VARIABLE) else pyspark

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compiles in a temporary folder, which `finalize` removes."""
        self._work = Path(tempfile.mkdtemp(prefix="spark-rule-build-"))
        jar = compile_jar(Path(self.root, "java"), self._work)
        build_data["force_include"][str(jar)] = JAR

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        shutil.rmtree(self._work)


def compile_jar(sources: Path, work: Path) -> Path:
    """Compiles the Java files below a folder into a jar in another one.

    Raises:
        JdkMissing: no javac.
        subprocess.CalledProcessError: the sources do not compile; javac has said why.
    """
    classes, jar = work / "classes", work / "hudi-index-spark.jar"
    javac = [
        tool("javac"),
        "--release",
        RELEASE,
        "-encoding",
        "UTF-8",
        "-Xlint:all,-classfile,-path",
    ]
    javac += ["-Werror", "-proc:none", "-classpath", str(spark_jars() / "*"), "-d", str(classes)]
    subprocess.run([*javac, *map(str, sorted(sources.rglob("*.java")))], check=True)
    subprocess.run(
        [tool("jar"), "--create", "--no-manifest", "--file", str(jar), "-C", str(classes), "."],
        check=True,
    )
    return jar


def spark_jars() -> Path:
    """The folder of Spark's jars: the configured one, else PySpark's."""
    configured = os.environ.get(JARS_VARIABLE)
    if configured:
        return Path(configured)
    spec = find_spec("pyspark")
    assert spec is not None, "it is a build requirement"
    assert spec.origin is not None
    return Path(spec.origin).parent / "jars"


def tool(name: str) -> str:
    """A program of the JDK of ``JAVA_HOME``, else on ``PATH``."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which(name, path=Path(home, "bin") if home else None)
    if found is None:
        where = f"JAVA_HOME={home} holds no bin/{name}" if home else f"no {name} on PATH"
        raise JdkMissing(
            f"No JDK found: {where}. Install a JDK {RELEASE} (Debian, Ubuntu: "
            f"openjdk-{RELEASE}-jdk-headless) and set JAVA_HOME."
        )
    return found
