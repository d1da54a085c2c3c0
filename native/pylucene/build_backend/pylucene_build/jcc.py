"""JCC, which generates a Python extension in C++ for the classes of Java jars.

JCC reflects on the jars in its own JVM, so it must first be compiled against this machine's JDK.
Its setup.py takes the JDK's location only from environment variables, and its own defaults do not
link. It is therefore installed here and is not an ordinary build requirement.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .jdk import Jdk

CPP_FILES = 12
"""Number of files into which JCC splits its C++: enough to distribute evenly over the CPUs."""

PREAMBLE = """\
import warnings
from . import libjvm
libjvm.load()
with warnings.catch_warnings():
  # JCC names its types without their module, and Python warns of each.
  warnings.filterwarnings("ignore", "builtin type .* has no __module__", DeprecationWarning)
  from . import _lucene
"""
"""Code that the package runs before JCC's own ``__init__.py``."""


@dataclass(frozen=True)
class Generated:
    """The output of JCC."""

    package: Path
    """Folder of the Python package ``lucene``, with the jars."""
    sources: list[Path]
    include_folders: list[Path]
    libjvm_folder: Path
    macros: list[tuple[str, str | None]]


@dataclass(frozen=True)
class Jcc:
    """JCC installed in ``folder``."""

    folder: Path
    version: str
    jdk: Jdk

    def generate(
        self,
        classes: Sequence[str],
        *,
        excluded: Sequence[str],
        lucene_jars: Sequence[Path],
        own_jar: Path,
        folder: Path,
    ) -> Generated:
        """Write the package ``lucene`` for the named classes and the public ones of ``own_jar``,
        without the methods that mention an excluded class."""
        arguments = ["--use_full_names", "--python", "lucene", "--files", str(CPP_FILES)]
        for jar in lucene_jars:
            arguments += ["--include", str(jar)]  # packaged; only `classes` are wrapped
        for name in excluded:
            arguments += ["--exclude", name]
        arguments += ["--jar", str(own_jar), "--generate", *classes]
        _run(
            [sys.executable, "-m", "jcc", *arguments],
            folder,
            PYTHONPATH=os.pathsep.join(filter(None, [str(self.folder), os.getenv("PYTHONPATH")])),
            LD_LIBRARY_PATH=str(self.jdk.libjvm_folder),
        )
        package = folder / "build" / "lucene"
        init = package / "__init__.py"
        init.write_text(PREAMBLE + init.read_text())
        cpp = folder / "build" / "_lucene"
        return Generated(
            package=package,
            sources=sorted(cpp.glob("*.cpp")),
            include_folders=[*self.jdk.include_folders, cpp, self.folder / "jcc" / "sources"],
            libjvm_folder=self.jdk.libjvm_folder,
            macros=[
                ("PYTHON", None),
                ("JCC_VER", f'"{self.version}"'),
                ("_java_generics", None),
            ],
        )


def install(requirement: str, jdk: Jdk, folder: Path) -> Jcc:
    """Build JCC against ``jdk`` and install it in ``folder``.

    Args:
        requirement: ``jcc==<version>``.
        jdk: the JDK to compile and link against.
        folder: a new folder; nothing is installed elsewhere.
    """
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    pip += ["--no-deps", "--no-build-isolation", "--no-binary", "jcc"]
    pip += ["--no-cache-dir"]  # a cached build may be for another JDK
    _run(
        [*pip, "--target", str(folder), requirement],
        folder.parent,
        CFLAGS="-O0 -g0",  # JCC runs for only two seconds
        NO_SHARED="1",  # shared mode embeds paths of the build environment
        JCC_ARGSEP=";",
        JCC_JDK=str(jdk.home),
        JCC_INCLUDES=";".join(map(str, jdk.include_folders)),
        JCC_CFLAGS="-fno-strict-aliasing;-Wno-write-strings",
        JCC_LFLAGS=f"-L{jdk.libjvm_folder};-ljvm",
        JCC_JAVAC=str(jdk.home / "bin" / "javac"),
    )
    sources = folder / "jcc" / "sources"
    for name, changed in (("JCCEnv.h", with_atomic_count), ("jcc.cpp", starting_without_lock)):
        (sources / name).write_text(changed((sources / name).read_text()))
    return Jcc(folder, requirement.removeprefix("jcc=="), jdk)


def with_atomic_count(header: str) -> str:
    """JCC's header ``JCCEnv.h``, with an atomic counter of the calls in progress.

    JCC increments the counter just after it has released Python's lock, while another thread may
    decrement it. A lost update is permanent: from then on JCC mistakes calls from Python for calls
    from Java, prints their exceptions, and raises a ``JavaError`` that contains none.

    Raises:
        ValueError: the header is not the expected one.
    """
    plain = "    int handlers;\n"
    if header.count(plain) != 1:
        raise ValueError("JCCEnv.h counts calls in another way than JCC 3.15 does.")
    return "#include <atomic>\n" + header.replace(plain, "    std::atomic<int> handlers{0};\n")


def starting_without_lock(source: str) -> str:
    """JCC's source ``jcc.cpp``, starting the JVM without Python's lock.

    The start takes most of 0.2 s, in which other threads of Python go on.

    Raises:
        ValueError: the source is not the expected one.
    """
    plain = "        if (JNI_CreateJavaVM(&vm, (void **) &vm_env, &vm_args) < 0)\n"
    if source.count(plain) != 1:
        raise ValueError("jcc.cpp starts the JVM in another way than JCC 3.15 does.")
    unlocked = """\
        jint started;
        Py_BEGIN_ALLOW_THREADS
        started = JNI_CreateJavaVM(&vm, (void **) &vm_env, &vm_args);
        Py_END_ALLOW_THREADS
        if (started < 0)
"""
    return source.replace(plain, unlocked)


def _run(command: Sequence[str], folder: Path, **environment: str) -> None:
    """Run a command and show its output only if it fails."""
    # The front end's variables would make pip use this backend for JCC, too.
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("_PYPROJECT_HOOKS_")}
    done = subprocess.run(
        command,
        cwd=folder,
        env={**inherited, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode:
        print(done.stdout, file=sys.stderr)
        raise subprocess.CalledProcessError(done.returncode, command)
