"""Where the jars lie that let Spark's queries ask an index, and what they were made for.

`hudi_index_service.sql.enable` puts the right one on a session. For programs that set up sessions
themselves:

>>> import hudi_index_spark
>>> SparkSession.builder.config("spark.jars", hudi_index_spark.jar_path())
... .config("spark.sql.extensions", hudi_index_spark.EXTENSIONS)
"""

import os
from pathlib import Path

__all__ = ["EXTENSIONS", "SCALA", "SPARK", "jar_path", "scala_of_spark"]

SPARK = "3.5"
"""The line of Spark's releases that the jars are for. A wheel that was built for another Spark
(README.md) has the jar for that one."""

SCALA = ("2.12", "2.13")
"""The versions of Scala that Spark is built with: for each there is a jar."""

EXTENSIONS = "hudiindex.spark.IndexExtensions"
"""The class for the setting ``spark.sql.extensions``."""


def jar_path(scala: str | None = None, spark: str = SPARK) -> str:
    """The path of a jar; it need not exist.

    Args:
        scala: The session's version of Scala, one of `SCALA`; by default that of the Spark that a
            session would be started with here.
        spark: The session's line of Spark's releases.
    """
    name = f"hudi-index-spark{spark}_{scala or scala_of_spark()}.jar"
    return str(Path(__file__).with_name(name))


def scala_of_spark() -> str:
    """The version of Scala, such as 2.13, of the Spark that a session would be started with here:
    that of the folder ``SPARK_HOME``, else PySpark's own."""
    home = os.environ.get("SPARK_HOME")
    library = home and next(Path(home, "jars").glob("scala-library-2.*.jar"), None)
    if not library:
        return SCALA[0]
    return ".".join(library.stem.removeprefix("scala-library-").split(".")[:2])
