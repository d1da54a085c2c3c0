"""The Spark session that a caller brings, and the distribution that it comes from: which ones the
service refuses, and which were not tested. Imports no PySpark."""

from typing import Any
from weakref import WeakSet

from hudi_index_service.errors import ConfigInvalid, SparkUnsupported
from hudi_index_service.tested import WITH_SPARK, name_untested, own_python, version_of

_CLASSIC, _CLIENT = "pyspark", "pyspark-client"
"""Both bring the package `pyspark`, the second one without JVM. Installers do not object."""

_OF_HUDI = "org.apache.hudi.common.model.HoodieTableType"
"""A small class of all releases of Hudi."""

_asked: WeakSet[Any] = WeakSet()
"""The Spark contexts whose versions are known, since each question to a JVM takes its time."""


def mixed_pyspark() -> SparkUnsupported | None:
    """What is wrong if two distributions have written over each other's files; else None."""
    classic, client = version_of(_CLASSIC), version_of(_CLIENT)
    if classic is None or client is None or classic == client:
        return None
    return SparkUnsupported(
        f"{_CLASSIC} {classic} and {_CLIENT} {client} are both installed, and have overwritten "
        "each other's files.",
        remedy=f"Run pip uninstall {_CLIENT}; pip install --force-reinstall --no-deps "
        f"{_CLASSIC}=={classic}. Version 6 of apache-airflow-providers-apache-spark brings "
        f"{_CLIENT}.",
    )


def require_pyspark() -> None:
    """To be called before PySpark is imported; does not ask whether it is installed at all.

    Raises:
        SparkUnsupported: two distributions have written over each other's files, or only the one
            for Spark Connect is installed.
    """
    if mixed := mixed_pyspark():
        raise mixed
    if version_of(_CLASSIC) is None and (client := version_of(_CLIENT)):
        raise SparkUnsupported(
            f"{_CLIENT} {client} is installed, which has no JVM, and {_CLASSIC} is not.",
            remedy="Install 'hudi-index-service[spark]' in an environment without "
            f"{_CLIENT}. open_table(…) reads and builds without Spark.",
        )


def require_session(spark: Any) -> None:
    """Refuses what is no session of this process; names what of a session was not tested.

    Raises:
        SparkUnsupported: a session of Spark Connect, whose JVM is elsewhere.
        ConfigInvalid: no session at all.
    """
    if hasattr(spark, "_jsparkSession"):
        if spark.sparkContext not in _asked:
            _asked.add(spark.sparkContext)
            name_untested(_versions(spark), *WITH_SPARK)
    elif type(spark).__module__.startswith("pyspark.sql.connect."):
        raise SparkUnsupported(
            "A session of Spark Connect has its JVM elsewhere.",
            remedy="Use a session of PySpark 3.5 with its JVM here, or leave out spark=: "
            "open_table(…) reads and builds without Spark.",
        )
    else:
        raise ConfigInvalid(
            f"spark is {type(spark).__name__}, not a Spark session.",
            remedy="Write spark=SparkSession.builder.getOrCreate().",
        )


def _versions(spark: Any) -> dict[str, str]:
    """Of what runs in the session, as `tested` names it; without Hudi if it says no version."""
    jvm = spark._jvm
    found = {
        "Spark": str(spark.version),
        "Scala": str(jvm.scala.util.Properties.versionNumberString()),
        "Java": str(jvm.java.lang.System.getProperty("java.version")),
        "Python": own_python(),
    }
    loader = spark._jsparkSession.sharedState().jarClassLoader()
    if loader.getResource(f"{_OF_HUDI.replace('.', '/')}.class") is not None:
        hudi = loader.loadClass(_OF_HUDI).getPackage().getImplementationVersion()
        if hudi is not None:
            found["Hudi"] = str(hudi)
    return found
