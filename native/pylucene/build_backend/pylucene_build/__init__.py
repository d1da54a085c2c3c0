"""PEP 517 build backend of hudi-index-pylucene: Lucene's jars → C++ by JCC → wheel.

Nothing is written to the source tree: all work happens in a temporary folder.
"""

import io
import os
import shutil
import tarfile
import tempfile
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SOURCES = (
    "NOTICE",
    "README.md",
    "build-requirements.txt",
    "build_backend",
    "classes.txt",
    "excluded.txt",
    "jars.txt",
    "java",
    "lucene",
    "pyproject.toml",
)


def get_requires_for_build_wheel(config_settings: Any = None) -> list[str]:
    """PEP 517 hook: the pinned build requirements, without JCC (see jcc.py)."""
    return [pin for pin in _pins() if not pin.startswith("jcc==")]


def build_wheel(
    wheel_directory: str, config_settings: Any = None, metadata_directory: str | None = None
) -> str:
    """PEP 517 hook: build the wheel into ``wheel_directory`` and return its file name."""
    # The build requirements are certain to be installed only here.
    from . import jars, jcc, jdk, wheel

    say("looking for JDK 17")
    java = jdk.find()
    target = Path(wheel_directory).resolve()
    with tempfile.TemporaryDirectory(prefix="pylucene-build-") as folder:
        work = Path(folder)
        say("fetching Lucene's jars")
        lucene_jars = jars.fetch(ROOT / "jars.txt", _cache_folder())
        say("compiling the Java classes of hudiindex")
        own_jar = java.compile_jar(ROOT / "java", classpath=lucene_jars, jar=work / "hudiindex.jar")
        say("building JCC")
        requirement = next(pin for pin in _pins() if pin.startswith("jcc=="))
        generator = jcc.install(requirement, java, work / "jcc")
        say("generating C++ from the classes")
        generated = generator.generate(
            _lines(ROOT / "classes.txt"),
            excluded=_lines(ROOT / "excluded.txt"),
            lucene_jars=lucene_jars,
            own_jar=own_jar,
            folder=work,
        )
        shutil.copy(ROOT / "lucene" / "libjvm.py", generated.package)
        for name in ("NOTICE", "README.md", "pyproject.toml"):
            shutil.copy(ROOT / name, work)
        jars.unpack_license(lucene_jars, work)
        say(f"compiling {len(generated.sources)} C++ files on {os.cpu_count()} CPUs")
        built = wheel.build(generated, project=work, target=target)
    say(f"built {built}")
    return built


def build_sdist(sdist_directory: str, config_settings: Any = None) -> str:
    """PEP 517 hook: pack the committed files."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    name, version = project["name"], project["version"]
    base = f"{name.replace('-', '_')}-{version}"
    info = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode()
    path = Path(sdist_directory) / f"{base}.tar.gz"
    # NOTICE is a link to the project's.
    with tarfile.open(path, "w:gz", dereference=True) as archive:
        member = tarfile.TarInfo(f"{base}/PKG-INFO")
        member.size = len(info)
        archive.addfile(member, io.BytesIO(info))
        for source in SOURCES:
            archive.add(ROOT / source, f"{base}/{source}", filter=_without_caches)
    return f"{base}.tar.gz"


def say(progress: str) -> None:
    """Print a progress message."""
    print(f"hudi-index-pylucene: {progress}", flush=True)


def _cache_folder() -> Path:
    configured = os.environ.get("HUDI_INDEX_CACHE")
    return Path(configured) if configured else Path.home() / ".cache" / "hudi-index-service"


def _pins() -> list[str]:
    return _lines(ROOT / "build-requirements.txt")


def _lines(path: Path) -> list[str]:
    """The lines of a list file, without blank lines and comments."""
    stripped = (line.strip() for line in path.read_text().splitlines())
    return [line for line in stripped if line and not line.startswith("#")]


def _without_caches(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if "__pycache__" in member.name else member
