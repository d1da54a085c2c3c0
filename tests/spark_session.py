"""The Spark session of the tests: Hudi's extensions, UTC, two cores."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parent.parent


def hudi_bundle() -> str:
    """Path of Hudi's Spark bundle: from the environment, else fetched into the user's cache."""
    path = os.environ.get("HUDI_INDEX_HUDI_JAR")
    if path is None:
        path = subprocess.run(
            [sys.executable, "-m", "dev.jars"],
            cwd=ROOT,
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()
    return path


@contextmanager
def spark_session(warehouse: Path) -> Iterator[SparkSession]:
    """The process's Spark session, stopped at the end of the block."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[2]")
        .appName("hudi-index-tests")
        .config("spark.jars", hudi_bundle())
        .config("spark.serializer", "org.apache.spark.serializer.KryoSerializer")
        .config("spark.kryo.registrator", "org.apache.spark.HoodieSparkKryoRegistrar")
        .config("spark.sql.extensions", "org.apache.spark.sql.hudi.HoodieSparkSessionExtension")
        .config(
            "spark.sql.catalog.spark_catalog", "org.apache.spark.sql.hudi.catalog.HoodieCatalog"
        )
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        # Dates before 1582 as they are, in today's calendar.
        .config("spark.sql.parquet.datetimeRebaseModeInWrite", "CORRECTED")
        .config("spark.sql.parquet.datetimeRebaseModeInRead", "CORRECTED")
        # Without it, Hudi's upserts cannot write an array that has a NULL.
        .config("spark.hadoop.parquet.avro.write-old-list-structure", "false")
        .config("spark.sql.warehouse.dir", str(warehouse))
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "3g")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.extraJavaOptions", "-Duser.timezone=UTC")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    # Hudi 1.2.0 loses rows of LIKE 'prefix%' when it skips files by column statistics; what the
    # tests compare with has to be right.
    session.conf.set("hoodie.enable.data.skipping", "false")
    yield session
    session.stop()
