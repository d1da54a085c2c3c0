"""Shared fixtures: one Spark session per test process, real Hudi tables in temp folders."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
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


@pytest.fixture(scope="session", autouse=True)
def _own_folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What the service remembers between runs, and its copies of what can be fetched again, go to
    temporary folders, not to the user's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        patch.setenv("HUDI_INDEX_CACHE_FOLDER", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[SparkSession]":
    """The process's Spark session, with Hudi's extensions, UTC, two cores."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

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
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .config("spark.ui.enabled", "false")
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
