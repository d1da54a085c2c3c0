"""How many jobs a Spark session has run."""

from pyspark.sql import SparkSession


def jobs_so_far(spark: SparkSession) -> int:
    """All jobs begun until now (Spark remembers the last thousand)."""
    context = spark.sparkContext._jsc.sc()
    context.listenerBus().waitUntilEmpty()
    return int(context.statusStore().jobsList(None).size())
