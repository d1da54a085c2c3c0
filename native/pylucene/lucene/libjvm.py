"""Loads the Java virtual machine's library, which the extension of this package needs.

The extension contains no path to the library, so that a wheel also runs where the JDK is in another
folder. The library is located through ``JAVA_HOME``, else through the ``java`` on ``PATH``.
"""

import ctypes
import os
import re
import shutil
from pathlib import Path

JAVA_MAJOR = 17
"""The extension wraps JDK classes as they are in JDK 17; later JDKs dropped methods, earlier ones
lack some. Spark 3.5 also supports JDKs up to 17 only."""

REMEDY = f"Install JDK {JAVA_MAJOR} and set JAVA_HOME to its folder."


def load() -> Path:
    """Load libjvm into the process and return its path; loading it again has no effect.

    Raises:
        ImportError: there is no Java 17; the message states the remedy.
    """
    home = _java_home()
    library = home / "lib" / "server" / "libjvm.so"
    if not library.is_file():
        raise ImportError(f"lucene needs {library}, which does not exist. {REMEDY}")
    found = _major_version(home)
    if found is not None and found != JAVA_MAJOR:
        raise ImportError(f"lucene needs Java {JAVA_MAJOR}, but {home} is Java {found}. {REMEDY}")
    try:
        # The extension names only "libjvm.so": the loader uses the one that is already loaded.
        ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
    except OSError as error:
        raise ImportError(f"lucene cannot load {library}: {error}. {REMEDY}") from error
    return library


def _java_home() -> Path:
    configured = os.environ.get("JAVA_HOME")
    if configured:
        return Path(configured)
    java = shutil.which("java")
    if java is None:
        raise ImportError(
            f"lucene needs Java, but JAVA_HOME is not set and no java is on PATH. {REMEDY}"
        )
    return Path(java).resolve().parent.parent


def _major_version(home: Path) -> int | None:
    """The version that the JDK states in its ``release`` file; None if it states none."""
    release = home / "release"
    if not release.is_file():
        return None
    version = re.search(r'^JAVA_VERSION="(\d+)', release.read_text(), re.MULTILINE)
    return int(version[1]) if version else None
