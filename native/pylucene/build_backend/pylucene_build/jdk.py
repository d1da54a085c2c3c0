"""The JDK that the wheel is built with."""

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

MAJOR = 17
REMEDY = f"Install a JDK {MAJOR} (Debian, Ubuntu: openjdk-{MAJOR}-jdk-headless) and set JAVA_HOME."


class JdkError(RuntimeError):
    """There is no suitable JDK; the message states the remedy."""


@dataclass(frozen=True)
class Jdk:
    """A JDK 17 in the folder ``home``."""

    home: Path

    @property
    def include_folders(self) -> list[Path]:
        """The folders of jni.h and of the platform's jni_md.h."""
        return [self.home / "include", self.home / "include" / "linux"]

    @property
    def libjvm_folder(self) -> Path:
        """The folder of libjvm.so."""
        return self.home / "lib" / "server"

    def compile_jar(self, sources: Path, *, classpath: Sequence[Path], jar: Path) -> Path:
        """Compile all Java files below ``sources`` into ``jar`` and return it."""
        classes = jar.with_suffix(".classes")
        java_files = sorted(sources.rglob("*.java"))
        self._run(
            "javac",
            "-encoding",
            "UTF-8",
            "-XDignore.symbol.file",  # sun.misc.Unsafe is intended (see NativeMemory.java)
            *("-classpath", os.pathsep.join(map(str, classpath))),
            *("-d", str(classes)),
            *map(str, java_files),
        )
        self._run("jar", "--create", "--file", str(jar), "-C", str(classes), ".")
        return jar

    def _run(self, tool: str, *arguments: str) -> None:
        subprocess.run([str(self.home / "bin" / tool), *arguments], check=True)


def find() -> Jdk:
    """Return the JDK of ``JAVA_HOME``, else that of the ``javac`` on ``PATH``.

    Raises:
        JdkError: there is none, or it is not a JDK 17.
    """
    configured = os.environ.get("JAVA_HOME")
    javac = Path(configured, "bin", "javac") if configured else _on_path("javac")
    if javac is None or not javac.is_file():
        where = f"JAVA_HOME={configured} holds no bin/javac" if configured else "no javac on PATH"
        raise JdkError(f"No JDK found: {where}. {REMEDY}")
    version = subprocess.run([javac, "-version"], check=True, capture_output=True, text=True)
    major = re.search(r"javac (\d+)", version.stdout + version.stderr)
    if major is None or int(major[1]) != MAJOR:
        raise JdkError(
            f"{javac} is {(version.stdout + version.stderr).strip()}, but JDK {MAJOR} is needed: "
            "the generated code wraps java.lang.Thread and others as the building JDK has them, "
            f"and Spark 3.5, which shares the machine's Java, stops at {MAJOR}. {REMEDY}"
        )
    home = javac.resolve().parent.parent
    for part in ("include/jni.h", "lib/server/libjvm.so"):
        if not (home / part).is_file():
            raise JdkError(f"{home} lacks {part}: it is not a complete JDK. {REMEDY}")
    return Jdk(home)


def _on_path(tool: str) -> Path | None:
    found = shutil.which(tool)
    return Path(found) if found else None
