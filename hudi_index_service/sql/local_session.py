"""A Spark session with Hudi for the command line."""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from hudi_index_service.errors import ConfigInvalid
from hudi_index_service.hudi.bundle import how_to_get_it, named_bundle
from hudi_index_service.hudi.spark import HUDI_SETTINGS

# Quiet, and only on this machine.
_CONF = {
    "spark.master": "local[*]",
    "spark.app.name": "hudi-index sql",
    **HUDI_SETTINGS,
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    # Hudi 1.2.0 loses rows of LIKE 'prefix%' when it skips files by column statistics.
    "hoodie.enable.data.skipping": "false",
}


@contextmanager
def own_session(conf: Mapping[str, str]) -> Iterator[SparkSession]:
    """A session in this process, stopped at the end of the context.

    Args:
        conf: Settings of Spark and Hudi, which override the session's own. Hudi's bundle is named
            by ``spark.jars`` or ``spark.jars.packages``, else by the variable HUDI_INDEX_HUDI_JAR,
            else it is one of Spark's own jars.

    Raises:
        ConfigInvalid: the variable names no file, or the session has no Hudi.
    """
    settings = {**_CONF, **conf}
    if not {"spark.jars", "spark.jars.packages"} & conf.keys() and (bundle := named_bundle()):
        settings["spark.jars"] = str(bundle)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder
    for key, value in settings.items():
        builder = builder.config(key, value)
    with _standard_output_for_results():
        spark = builder.getOrCreate()
    try:
        for key, value in settings.items():
            if not key.startswith("spark."):
                spark.conf.set(key, value)
        _refuse_without_hudi(spark)
        yield spark
    finally:
        spark.stop()


@contextmanager
def _standard_output_for_results() -> Iterator[None]:
    """Makes the JVM inherit standard error as its standard output, since Hudi's libraries print
    there."""
    sys.stdout.flush()
    saved = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        os.dup2(saved, 1)
        os.close(saved)


def _refuse_without_hudi(spark: SparkSession) -> None:
    jvm = spark._jvm
    assert jvm is not None
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    try:
        loader.loadClass("org.apache.hudi.DefaultSource")
    except Py4JJavaError as error:
        raise ConfigInvalid("The Spark session has no Hudi.", remedy=how_to_get_it()) from error
