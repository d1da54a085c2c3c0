"""The extension of Spark sessions in `native/spark_rule`, as far as index statements meet it."""

from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession

_CLASS = "hudiindex.spark.IndexExtensions"


def extension(spark: SparkSession) -> Any | None:
    """An object of the extension's class; None if the session's JVM has no such class."""
    loader = spark._jsparkSession.sharedState().jarClassLoader()
    try:
        return loader.loadClass(_CLASS).newInstance()
    except Py4JJavaError as error:
        if error.java_exception.getClass().getName() != "java.lang.ClassNotFoundException":
            raise
    return None


def passed_on(spark: SparkSession, query: str) -> DataFrame:
    """Runs a statement that begins like an index statement, but is Hudi's or Spark's: the parser of
    the extension would hand it back to the service."""
    own = extension(spark)
    if own is None:
        return spark.sql(query)
    return DataFrame(own.passOn(spark._jsparkSession, query), spark)
