"""Checks of Spark, without a session: PySpark, the jar by which its queries ask an index, and
Hudi's bundle."""

import os
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from hudi_index_service.doctor.check import Check, Status
from hudi_index_service.doctor.packages import package_check

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
        "Mend it: pip uninstall pyspark-client; pip install --force-reinstall --no-deps "
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

    from hudi_index_service.hudi.spark import BUNDLE_VARIABLE

    bundle = _HUDI.format(line=hudi_index_spark.SPARK, scala=hudi_index_spark.SCALA)
    remedy = (
        f"Download org.apache.hudi:{bundle} and set {BUNDLE_VARIABLE} to its path, or pass it to "
        "Spark as spark.jars.packages."
    )

    def check(status: Status, detail: str) -> Check:
        repair = "" if status is Status.OK else remedy
        return Check("Hudi's Spark bundle", status, detail, repair, required=False)

    if named := os.environ.get(BUNDLE_VARIABLE):
        if not Path(named).is_file():
            return check(Status.MISSING, f"{BUNDLE_VARIABLE} is {named}, which does not exist.")
        jars = [Path(named)]
    else:
        pyspark = find_spec("pyspark")
        assert pyspark is not None, "it is installed"
        assert pyspark.origin is not None, "it is a package"
        jars = sorted(Path(pyspark.origin).with_name("jars").glob("hudi-spark*-bundle_*.jar"))
    if not jars:
        return check(
            Status.MISSING, f"{BUNDLE_VARIABLE} is not set, and Spark's own jars have none."
        )
    if not jars[0].name.startswith(bundle):
        return check(Status.WRONG_VERSION, f"{jars[0]} is not for this Spark: not {bundle}.")
    return check(Status.OK, f"{jars[0]}.")
