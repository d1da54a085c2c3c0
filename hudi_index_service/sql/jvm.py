"""Sessions that the JVM hands over."""

from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

from hudi_index_service.optimizer.cost.in_spark import SessionReaders


def in_python(session: Any) -> SparkSession:
    """The same session for PySpark."""
    return SparkSession(SparkContext.getOrCreate(), session)


def session_readers(spark: SparkSession) -> SessionReaders:
    """What can read for a session of this process."""
    return SessionReaders(int(spark.sparkContext.defaultParallelism))
