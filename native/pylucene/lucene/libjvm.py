"""Loads the Java virtual machine's library, which the extension of this package needs.

The extension contains no path to the library, so that a wheel also runs where the JDK is in another
folder. The library is located through ``JAVA_HOME``, else through the ``java`` on ``PATH``.
"""

import ctypes
import os
import re
import shutil
from pathlib import Path

JAVA_MAJORS = range(17, 26)
"""The extension wraps classes of the JDK as they are in JDK 17. Later JDKs up to 25 have all their
methods; another might not, which would end the process."""

JAVA = f"{JAVA_MAJORS[0]} to {JAVA_MAJORS[-1]}"
REMEDY = "Install JDK 17, 21 or 25 and set JAVA_HOME to its folder."


def load() -> Path:
    """Load libjvm into the process and return its path; loading it again has no effect.

    Raises:
        ImportError: there is no such Java; the message states the remedy.
    """
    home = java_home()
    library = home / "lib" / "server" / "libjvm.so"
    if not library.is_file():
        raise ImportError(f"lucene needs {library}, which does not exist. {REMEDY}")
    found = major_version(home)
    if found is not None and found not in JAVA_MAJORS:
        raise ImportError(f"lucene needs Java {JAVA}, but {home} is Java {found}. {REMEDY}")
    try:
        # The extension names only "libjvm.so": the loader uses the one that is already loaded.
        ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
    except OSError as error:
        raise ImportError(f"lucene cannot load {library}: {error}. {REMEDY}") from error
    return library


def java_home() -> Path:
    """The folder of the Java that is used.

    Raises:
        ImportError: there is no Java; the message states the remedy.
    """
    configured = os.environ.get("JAVA_HOME")
    if configured:
        return Path(configured)
    java = shutil.which("java")
    if java is None:
        raise ImportError(
            f"lucene needs Java, but JAVA_HOME is not set and no java is on PATH. {REMEDY}"
        )
    return Path(java).resolve().parent.parent


def major_version(home: Path) -> int | None:
    """The version that the JDK states in its ``release`` file; None if it states none."""
    release = home / "release"
    if not release.is_file():
        return None
    version = re.search(r'^JAVA_VERSION="(\d+)', release.read_text(), re.MULTILINE)
    return int(version[1]) if version else None
