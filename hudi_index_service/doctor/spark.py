"""Checks of Spark, without a session: PySpark, the jar by which its queries ask an index, and
Hudi's bundle."""

import os
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from hudi_index_service.doctor.check import Check, Status
from hudi_index_service.doctor.packages import package_check
from hudi_index_service.errors import ConfigInvalid
from hudi_index_service.hudi.bundle import (
    BUNDLE_VARIABLE,
    bundle_of_spark,
    how_to_get_it,
    named_bundle,
)

_HUDI = "hudi-spark{line}-bundle_{scala}"


def spark_checks() -> Iterator[Check]:
    """The checks; all are optional. Without PySpark, there is only the first."""
    pyspark = package_check("Spark", "Builds and queries on Spark need them", "spark")
    yield pyspark
    if pyspark.status is not Status.OK:
        return
    yield from _overwritten()
    yield from _other_spark()
    yield _bundle()


def _overwritten() -> Iterator[Check]:
    """PySpark's files, if another distribution has replaced them."""
    try:
        version("pyspark-client")
    except PackageNotFoundError:
        return
    yield Check(
        "PySpark",
        Status.FAILED,
        "pyspark-client is installed, too, and overwrites PySpark's files.",
        "Fix: pip uninstall pyspark-client; pip install --force-reinstall --no-deps "
        f"pyspark=={version('pyspark')}. Version 6 of apache-airflow-providers-apache-spark brings "
        "it.",
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

    bundle = _HUDI.format(line=hudi_index_spark.SPARK, scala=hudi_index_spark.SCALA)

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
