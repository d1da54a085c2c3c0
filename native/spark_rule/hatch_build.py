"""Compiles java/ into the jars of the wheel, one for each version of Scala that Spark comes with.
What differs between the lines of Spark's releases is in lines/.

PySpark comes with the jars for Scala 2.12. Those that depend on Scala are replaced by the ones for
2.13 that scala-2.13-jars.txt pins: Maven coordinates and SHA-256, a jar a line.
"""

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

RELEASE = "17"
"""The oldest Java that runs the classes; Spark 3.5 stops there."""

LINES = {
    "3.5": ("spark-3.5",),
    "4.0": ("spark-4", "spark-4.0"),
    "4.1": ("spark-4", "spark-4.1"),
    "4.2": ("spark-4", "spark-4.1"),
}
"""Line of Spark's releases → the folders below lines/ that are compiled for it, beside java/."""

FOLDERS_VARIABLE = "HUDI_INDEX_SPARK_JARS"
"""Environment variable: folders of Spark's jars to compile against, each for another jar of the
wheel, separated as in PATH. PySpark comes as source of 300 MB, which takes 20 s to unpack and pack;
a build that has it elsewhere does without."""

SEQUENCES = re.compile(r"^import scala\.collection\.(Seq|IndexedSeq);$", re.MULTILINE)
"""What Scala's own name Seq means in 2.12. In 2.13 it means the immutable one: Spark's methods have
another signature, of the same source."""

OF_SCALA = re.compile(r".+_2\.12-.+|scala-(compiler|library|reflect)-.+")
"""Names of PySpark's jars that depend on the version of Scala."""


class JdkMissing(RuntimeError):
    """There is no JDK to compile with; the message states the remedy."""


class SparkUnknown(RuntimeError):
    """There are no sources for the Spark whose jars are to be compiled against."""


class JarRefused(RuntimeError):
    """A fetched jar is not the one that was pinned."""


class JarHook(BuildHookInterface):  # type: ignore[type-arg]
    """Puts the jars into the wheel. The source folder is only read."""

    def dependencies(self) -> list[str]:
        """What the build needs besides this file."""
        jars: list[str] = self.config["jars"]
        return [] if os.environ.get(FOLDERS_VARIABLE) else jars

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compiles in a temporary folder, which `finalize` removes."""
        self._work = Path(tempfile.mkdtemp(prefix="spark-rule-build-"))
        root = Path(self.root)
        for folder in spark_jars(root / "scala-2.13-jars.txt", self._work):
            jar = compile_jar(root, folder, self._work)
            build_data["force_include"][str(jar)] = f"hudi_index_spark/{jar.name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        shutil.rmtree(self._work)


def compile_jar(root: Path, jars: Path, work: Path) -> Path:
    """Compiles the project's Java against a folder of Spark's jars into a jar in another folder.

    Raises:
        SparkUnknown: there are no sources for this Spark.
        JdkMissing: no javac.
        subprocess.CalledProcessError: the sources do not compile; javac has said why.
    """
    spark, scala = versions_of(jars)
    if spark not in LINES:
        raise SparkUnknown(f"{jars} is of Spark {spark}, not one of {', '.join(LINES)}.")
    source, classes = work / f"{spark}_{scala}" / "java", work / f"{spark}_{scala}" / "classes"
    for folder in (root / "java", *(root / "lines" / each for each in LINES[spark])):
        shutil.copytree(folder, source, dirs_exist_ok=True)
    if scala != "2.12":
        for path in source.rglob("*.java"):
            text = SEQUENCES.sub(r"import scala.collection.immutable.\1;", path.read_text())
            path.write_text(text)
    javac = [tool("javac"), "--release", RELEASE, "-encoding", "UTF-8"]
    javac += ["-Xlint:all,-classfile,-path", "-Werror", "-proc:none"]
    javac += ["-classpath", str(jars / "*"), "-d", str(classes)]
    subprocess.run([*javac, *map(str, sorted(source.rglob("*.java")))], check=True)
    versions = classes / "hudiindex" / "spark" / "versions.properties"
    versions.write_text(f"spark={spark}\nscala={scala}\n")
    jar = work / f"hudi-index-spark{spark}_{scala}.jar"
    subprocess.run(
        [tool("jar"), "--create", "--no-manifest", "--file", str(jar), "-C", str(classes), "."],
        check=True,
    )
    return jar


def spark_jars(pins: Path, work: Path) -> list[Path]:
    """The folders of jars to compile against, one for each version of Scala: the configured ones,
    else PySpark's, and its jars with the pinned ones, which are fetched.

    Raises:
        JarRefused: a fetched jar is not the pinned one.
    """
    if configured := os.environ.get(FOLDERS_VARIABLE):
        return [Path(each) for each in configured.split(os.pathsep)]
    spec = find_spec("pyspark")
    assert spec is not None, "it is a build requirement"
    assert spec.origin is not None
    own = Path(spec.origin).with_name("jars")
    others = work / "jars"
    others.mkdir()
    kept = (each for each in own.glob("*.jar") if not OF_SCALA.fullmatch(each.name))
    for jar in (*kept, *fetched(pins, work / "maven")):
        (others / jar.name).symlink_to(jar)
    return [own, others]


def versions_of(jars: Path) -> tuple[str, str]:
    """The lines of Spark's and Scala's releases, such as 3.5 and 2.12, of a folder of jars."""
    (core,) = jars.glob("spark-core_*.jar")
    scala, _, spark = core.stem.removeprefix("spark-core_").partition("-")
    return ".".join(spark.split(".")[:2]), scala


def fetched(pins: Path, folder: Path) -> list[Path]:
    """The pinned jars, downloaded.

    Raises:
        JarRefused: one has another hash.
    """
    from jgo.maven import MavenContext

    maven = MavenContext(repo_cache=folder)
    jars = []
    for line in pins.read_text().splitlines():
        coordinates, sha256 = line.split()
        group, artifact, version = coordinates.split(":")
        jar = Path(maven.project(group, artifact).at_version(version).artifact("").resolve())
        if hashlib.sha256(jar.read_bytes()).hexdigest() != sha256:
            raise JarRefused(f"{coordinates} does not have the SHA-256 {sha256}.")
        jars.append(jar)
    return jars


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
