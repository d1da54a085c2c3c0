"""Checks of this machine: Python, packages, Java, native parts, and what is optional. Spark is
checked without a session."""

import os
import platform
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from importlib import import_module
from importlib.metadata import entry_points, metadata, version
from pathlib import Path

from packaging.specifiers import SpecifierSet

from hudi_index_service.doctor.check import OWN, Check, Status, package_check
from hudi_index_service.errors import ConfigInvalid, IndexTypeUnknown, NativeModuleMissing
from hudi_index_service.hudi.bundle import (
    BUNDLE_VARIABLE,
    bundle_of_spark,
    how_to_get_it,
    named_bundle,
)
from hudi_index_service.index.factory import ENTRY_POINT_GROUP, index_type
from hudi_index_service.index.lucene.jvm import supported_java
from hudi_index_service.spark_session import mixed_pyspark
from hudi_index_service.tested import WITHOUT_SPARK, described, untested, version_of, versions_here

_SPARKS_JAVA = 17
"""The latest Java that Spark 3.5 supports."""

_SPARKS_PYTHON = SpecifierSet("<3.14")
"""On 3.14, PySpark 3.5 cannot pickle functions."""


def installation_checks() -> Iterator[Check]:
    """The checks, in the order in which a reader would fix what is wrong."""
    yield _python()
    yield package_check("packages", "The service needs them")
    yield _java()
    yield _runs("index type lucene", "hudi-index-pylucene", partial(_check_runtime, "lucene"))
    yield _runs("row reader", "hudi-index-parquet", partial(import_module, "hudi_index_parquet"))
    yield _runs("object stores", "obstore", partial(import_module, "obstore"))
    yield from _spark_checks()
    yield package_check("callback listener", "`hudi-index serve` needs them", "hook")
    yield package_check("HBase client", "The index type hbase needs it", "hbase")
    yield from _plugged_in()
    yield package_check("Airflow", "Operators and sensors need it", "airflow")
    yield _tested()


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


def _tested() -> Check:
    """What was tested together. Other versions are not wrong."""
    home, found = _java_home(), versions_here()
    if java := home and _java_version(home):
        found["Java"] = java
    unlike = untested(found, WITHOUT_SPARK)
    together = ", ".join(f"{part} {version}" for part, version in found.items())
    detail = described(found, unlike) if unlike else f"{together}."
    return Check("tested versions", Status.OK, detail, required=False)


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


def _plugged_in() -> Iterator[Check]:
    """The index types of other distributions, each by what it says itself."""
    for point in entry_points(group=ENTRY_POINT_GROUP):
        if point.dist is not None and point.dist.name != OWN:
            check = partial(_check_runtime, point.name)
            yield replace(_runs(f"index type {point.name}", point.dist.name, check), required=False)


def _check_runtime(name: str) -> None:
    index_type(name).check_runtime()


def _runs(name: str, package: str, load: Callable[[], object]) -> Check:
    """Whether a package can be loaded."""
    try:
        load()
        return Check(name, Status.OK, f"{package} {version(package)}.")
    except (IndexTypeUnknown, NativeModuleMissing) as error:
        detail, remedy = error.message, error.remedies.command
    except ImportError as error:
        detail = f"{package} cannot be imported: {error}."
        remedy = f"Install {package} again, for this Python."
    status = Status.MISSING if version_of(package) is None else Status.FAILED
    return Check(name, status, detail, remedy)


def _spark_checks() -> Iterator[Check]:
    """The checks; all are optional. Without PySpark, there is only the first."""
    pyspark = package_check("Spark", "Builds and queries on Spark need them", "spark")
    yield pyspark
    if mixed := mixed_pyspark():
        yield Check("PySpark", Status.FAILED, mixed.message, mixed.remedy, required=False)
    if pyspark.status is not Status.OK:
        return
    yield from sparks_python()
    yield from _other_spark()
    yield _bundle()


def sparks_python() -> Iterator[Check]:
    """This Python, if PySpark does not run on it."""
    actual = platform.python_version()
    if not _SPARKS_PYTHON.contains(actual, prereleases=True):
        yield Check(
            "Python for Spark",
            Status.WRONG_VERSION,
            f"{actual}, not {_SPARKS_PYTHON}: PySpark 3.5 cannot send functions to its workers.",
            "Use an earlier Python with Spark. All that needs no Spark runs on this one.",
            required=False,
        )


def _other_spark() -> Iterator[Check]:
    """The Spark that SPARK_HOME names, which is then used in place of PySpark's own."""
    home = os.environ.get("SPARK_HOME")
    if home is None:
        return
    jars = sorted(Path(home, "jars").glob("spark-core_*.jar"))
    found = jars[0].stem.rpartition("-")[2] if jars else None
    own = version("pyspark")
    if found == own:
        yield Check("SPARK_HOME", Status.OK, f"Spark {found} in {home}.", required=False)
    else:
        detail = f"{home} has Spark {found}" if found else f"{home} has no Spark"
        remedy = f"Unset SPARK_HOME, or install Spark {own} there."
        status = Status.WRONG_VERSION if found else Status.MISSING
        yield Check("SPARK_HOME", status, f"{detail}; PySpark is {own}.", remedy, required=False)


def _bundle() -> Check:
    """Hudi's bundle for this Spark."""
    import hudi_index_spark

    bundle = f"hudi-spark{hudi_index_spark.SPARK}-bundle_{hudi_index_spark.scala_of_spark()}"

    def check(status: Status, detail: str, remedy: str = "") -> Check:
        return Check("Hudi's Spark bundle", status, detail, remedy, required=False)

    try:
        jar = named_bundle() or bundle_of_spark()
    except ConfigInvalid as error:
        return check(Status.MISSING, error.message, error.remedy)
    if jar is None:
        detail = f"{BUNDLE_VARIABLE} is not set, and Spark's own jars have none."
        return check(Status.MISSING, detail, how_to_get_it())
    if not jar.name.startswith(bundle):
        detail = f"{jar} is not for this Spark: not {bundle}."
        return check(Status.WRONG_VERSION, detail, how_to_get_it())
    return check(Status.OK, f"{jar}.")
