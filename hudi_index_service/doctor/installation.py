"""Checks of this machine: Python, packages, Java, native parts, Spark, and optional parts."""

import os
import platform
import re
import shutil
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, metadata, version
from pathlib import Path

from packaging.specifiers import SpecifierSet

from hudi_index_service.doctor.check import Check, Status
from hudi_index_service.doctor.packages import OWN, package_check
from hudi_index_service.doctor.spark import spark_checks
from hudi_index_service.errors import NativeModuleMissing
from hudi_index_service.index.factory import index_type
from hudi_index_service.index.lucene.jvm import supported_java

_SPARKS_JAVA = 17
"""The latest Java that Spark 3.5 supports."""


def installation_checks() -> Iterator[Check]:
    """The checks, in the order in which a reader would fix what is wrong."""
    yield _python()
    yield package_check("packages", "The service needs them")
    yield _java()
    yield _lucene()
    yield _importable("row reader", "hudi_index_parquet", "hudi-index-parquet")
    yield _importable("object stores", "obstore", "obstore")
    yield from spark_checks()
    yield package_check("callback listener", "`hudi-index serve` needs them", "hook")
    yield package_check("HBase client", "The index type hbase needs it", "hbase")
    yield package_check("Airflow", "Operators and sensors need it", "airflow")


def _python() -> Check:
    actual, needed = platform.python_version(), SpecifierSet(metadata(OWN)["Requires-Python"])
    if needed.contains(actual, prereleases=True):
        return Check("Python", Status.OK, f"{actual}.")
    return Check("Python", Status.WRONG_VERSION, f"{actual}, not {needed}.", "Use that version.")


def _java() -> Check:
    supported = supported_java()
    needed = "" if supported is None else f" {supported[0]} to {supported[-1]}"
    remedy = "Install JDK 17, 21 or 25 and set JAVA_HOME to its folder."
    home = _java_home()
    if home is None:
        detail = "JAVA_HOME is not set, and no java is on PATH."
        return Check("Java", Status.MISSING, detail, remedy)
    if not (home / "bin" / "java").exists():
        return Check("Java", Status.MISSING, f"{home} has no bin/java.", remedy)
    found = _java_version(home)
    if found is None:
        return Check("Java", Status.OK, f"found in {home} (version unknown).")
    major = int(found.split(".")[0])
    if supported is not None and major not in supported:
        return Check("Java", Status.WRONG_VERSION, f"{found} in {home}, not{needed}.", remedy)
    without_spark = "" if major == _SPARKS_JAVA else f" Spark needs {_SPARKS_JAVA}."
    return Check("Java", Status.OK, f"{found} in {home}.{without_spark}")


def _java_home() -> Path | None:
    if named := os.environ.get("JAVA_HOME"):
        return Path(named)
    java = shutil.which("java")
    return None if java is None else Path(java).resolve().parent.parent


def _java_version(home: Path) -> str | None:
    """The version in the JDK's file ``release``; None if it states none."""
    try:
        release = (home / "release").read_text()
    except OSError:
        return None
    found = re.search(r'^JAVA_VERSION="(\d[\d.]*)', release, re.MULTILINE)
    return found[1] if found else None


def _lucene() -> Check:
    return _runs(
        "index type lucene", "hudi-index-pylucene", lambda: index_type("lucene").check_runtime()
    )


def _importable(name: str, module: str, package: str) -> Check:
    def load() -> None:
        try:
            __import__(module)
        except ImportError as error:
            raise NativeModuleMissing(
                f"{module} cannot be imported: {error}.",
                remedy=f"Install {package} again, for this Python.",
            ) from error

    return _runs(name, package, load)


def _runs(name: str, package: str, load: Callable[[], None]) -> Check:
    try:
        load()
        return Check(name, Status.OK, f"{package} {version(package)}.")
    except NativeModuleMissing as error:
        return Check(name, _status(package), error.message, error.remedies.command)


def _status(package: str) -> Status:
    """What is wrong with a package that cannot be loaded."""
    try:
        version(package)
    except PackageNotFoundError:
        return Status.MISSING
    return Status.FAILED
