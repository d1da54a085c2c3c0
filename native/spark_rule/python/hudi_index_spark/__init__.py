"""Where the jar lies that lets Spark's queries ask an index, and what it was made for.

`hudi_index_service.sql.enable` puts it on a session. For programs that set up sessions themselves:

>>> import hudi_index_spark
>>> SparkSession.builder.config("spark.jars", hudi_index_spark.jar_path())
... .config("spark.sql.extensions", hudi_index_spark.EXTENSIONS)
"""

from pathlib import Path

__all__ = ["EXTENSIONS", "SCALA", "SPARK", "jar_path"]

SPARK = "3.5"
"""The line of Spark releases whose classes the jar uses."""

SCALA = "2.12"
"""The version of Scala that this Spark is built with."""

EXTENSIONS = "hudiindex.spark.IndexExtensions"
"""The class for the setting ``spark.sql.extensions``."""


def jar_path() -> str:
    """The path of the jar."""
    return str(Path(__file__).with_name("hudi-index-spark.jar"))
