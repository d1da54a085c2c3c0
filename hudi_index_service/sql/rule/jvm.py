"""Sessions that the JVM hands over."""

from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession


def in_python(session: Any) -> SparkSession:
    """The same session for PySpark."""
    return SparkSession(SparkContext.getOrCreate(), session)
