"""What some tests need, and the Spark with Scala 2.13 (dev/spark_home.py) does not have."""

import hudi_index_spark
import pytest

_ON_SCALA_2_13 = hudi_index_spark.scala_of_spark() == "2.13"

HIVE = pytest.mark.skipif(
    _ON_SCALA_2_13,
    reason="spark-sql and Hudi's INSERT need spark-hive, of which no jar for Scala 2.13 is at hand",
)
HUDI_1_2 = pytest.mark.skipif(
    _ON_SCALA_2_13,
    reason="VECTOR of doubles is of Hudi 1.2: there is a bundle of 1.1 for Scala 2.13",
)
