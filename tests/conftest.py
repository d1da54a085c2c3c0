"""Shared fixtures: one Spark session per test process, real Hudi tables in temp folders."""

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
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


def pytest_configure() -> None:
    """What the service remembers between runs, and its copies of what can be fetched again, go to
    temporary folders, not to the user's: before any test module makes settings."""
    folder = tempfile.mkdtemp(prefix="hudi-index-tests-")
    os.environ["XDG_STATE_HOME"] = str(Path(folder, "state"))
    os.environ["HUDI_INDEX_CACHE_FOLDER"] = str(Path(folder, "cache"))
    # Registered before the history's own, hence called after it.
    atexit.register(_remove, folder, os.getpid())


def _remove(folder: str, owner: int) -> None:
    if os.getpid() == owner:  # else a child that was forked
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(autouse=True)
def _nothing_is_learnt_of_other_tests() -> None:
    """The history of queries begins anew, also of tables that many tests share."""
    module = sys.modules.get("hudi_index_service.optimizer.history.history")
    for history in [] if module is None else list(module._living):
        with history._writing, history._lock:
            history._known.clear()
            history._unwritten.clear()
            history._ended.clear()
            history._days.clear()
        kept = history._file.path
        if kept.exists():
            for beside in ("", "-wal", "-shm"):
                kept.with_name(kept.name + beside).unlink(missing_ok=True)


@pytest.fixture(autouse=True)
def _spark_reads_parquet_as_in_a_new_session(request: pytest.FixtureRequest) -> None:
    """Hudi switches the vectorized reader off for the session once it has read a table that it
    cannot read so. The other one gives the same rows by other code, or fails elsewhere: what a test
    sees would hang on which ran before it."""
    if "spark" in request.fixturenames:  # else Spark need not be started
        session = request.getfixturevalue("spark")
        session.conf.set("spark.sql.parquet.enableVectorizedReader", "true")


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
