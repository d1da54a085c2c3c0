"""Programs with a Spark session of their own."""

import sys
from pathlib import Path

from dev.jars import bundle_path
from tests.programs import ROOT, lines_of

_HEAD = """
import os
from pyspark.sql import SparkSession
from hudi_index_service.hudi.spark import HUDI_SETTINGS
from hudi_index_service.sql import enable, last_queries

FOLDER = {folder!r}

def session(master="local[2]", jars=(), **settings):
    spark = (
        SparkSession.builder.master(master)
        .config("spark.jars", ",".join([{bundle!r}, *jars]))
        .config("spark.sql.warehouse.dir", {work!r} + "/warehouse")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.hudi.index.decideMillis", "60000")
        .config("spark.sql.shuffle.partitions", "2")
        .config(map={{**HUDI_SETTINGS, **settings}})
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    return spark

def table(spark, name="rule_cow"):
    return spark.read.format("hudi").load(FOLDER + "/" + name)

def uses(spark):
    return last_queries(spark)[-1]

if __name__ == "__main__":
"""


def run_program(body: str, folder: Path, work: Path) -> list[str]:
    """The lines that a program prints.

    Args:
        body: The indented program, after `session`, `table` and `uses` (see above).
        folder: The folder of the tables.
        work: Where it writes.
    """
    head = _HEAD.format(bundle=bundle_path(), folder=str(folder), work=str(work))
    return lines_of(
        head + body,
        HUDI_INDEX_STATE_FOLDER=str(work / "state"),  # not that of the tests' process
        PYSPARK_PYTHON=sys.executable,
        PYTHONPATH=str(ROOT),
    )
