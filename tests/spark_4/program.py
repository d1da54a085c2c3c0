"""Queries of PySpark 4 with the rule: `python -m tests.spark_4.program TABLE CLASSES`, with
a table of messages with an index on the sender, and the classes that stand for Hudi's.

Prints a line for each finding.
"""

import os
import sys
from pathlib import Path

import hudi_index_spark
import pyspark
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession

from hudi_index_service.sql import enable, last_queries

QUERIES = (
    "SELECT id, ts FROM t WHERE sender = 'User3' ORDER BY id",
    "SELECT sender, id FROM t WHERE sender IN ('User3', 'User4') AND ts > 20 ORDER BY id",
    "SELECT count(*) FROM t WHERE sender = 'User3'",
    "SELECT id FROM t JOIN VALUES ('User3'), ('User5') v(name) ON sender = name ORDER BY id",
    "SELECT id FROM t WHERE sender = (SELECT max(s) FROM VALUES ('User3') v(s)) ORDER BY id",
    "SELECT /*+ NO_INDEX */ id FROM t WHERE sender = 'User3' ORDER BY id",
)


def main(table: Path, classes: str) -> None:
    line = ".".join(pyspark.__version__.split(".")[:2])
    jar = hudi_index_spark.jar_path("2.13", line)
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.extraClassPath", f"{jar}{os.pathsep}{classes}")
        .config("spark.sql.extensions", hudi_index_spark.EXTENSIONS)
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.hudi.index.decideMillis", "60000")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    enable(spark)
    _messages(spark, table).createOrReplaceTempView("t")

    plain = [_rows(spark, each) for each in QUERIES]
    print("off:", last_queries(spark), flush=True)
    spark.conf.set("spark.hudi.index.untested", "true")
    for query, expected in zip(QUERIES, plain, strict=True):
        same = _rows(spark, query) == expected
        print("on:", same, len(expected), *(each.by_index for each in last_queries(spark)[-1]))
    print("plan:", "HudiIndexScan" in spark.sql(QUERIES[0])._jdf.queryExecution().toString())
    print("parameter:", spark.sql("SELECT :x AS x", args={"x": 7}).collect()[0].x)
    print("statement:", spark.sql(f"SHOW INDEXES FROM '{table}'").collect()[0][0])
    for statement in ("OPTIMIZE", f"DROP INDEX gone ON '{table}'"):
        try:
            spark.sql(statement)
        except (AnalysisException, ParseException) as error:
            print("error:", type(error).__name__, str(error).split(":")[0])
    spark.sparkContext._gateway.shutdown_callback_server()
    print("gone:", _rows(spark, QUERIES[0]) == plain[0], last_queries(spark)[-1][0].by_index)
    spark.stop()


def _messages(spark: SparkSession, table: Path) -> DataFrame:
    """The table's only snapshot."""
    files = [str(each) for each in table.glob("*.parquet")]
    commits = (each.stem for each in (table / ".hoodie" / "timeline").glob("*.commit"))
    instants = [f"[{each.replace('_', '__')}__commit__COMPLETED]" for each in commits]
    kind = spark._jvm.org.apache.hudi.HoodieFileIndex
    return DataFrame(kind.read(spark._jsparkSession, str(table), files, instants), spark)


def _rows(spark: SparkSession, query: str) -> list[str]:
    return [repr(each) for each in spark.sql(query).collect()]


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
