"""Writes the tables of one Hudi release, in a process of its own:

python -m tests.versions.writing BUNDLE.jar FOLDER [EARLIER]

Given the folder of an earlier release's run, it upgrades what that run left to be upgraded.
"""

import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from tests.versions.writing.table import Table
from tests.versions.writing.tables import TABLES, to_be_upgraded, upgrade


def main(bundle: str, folder: str, *earlier: str) -> None:
    """Writes every table, and says how long each took."""
    with tempfile.TemporaryDirectory() as scratch:
        spark = _session(bundle, Path(scratch, "warehouse"))
        new = partial(Table, spark, Path(folder), Path(scratch, "tables"))
        work = [partial(upgrade, new, Path(earlier[0]))] if earlier else []
        if not earlier:
            work = [partial(write, new) for write in TABLES]
            if "-0." in Path(bundle).name:
                work.append(partial(to_be_upgraded, new))
        for each in work:
            began = time.monotonic()
            each()
            print(f"{each.func.__name__}: {time.monotonic() - began:.1f} s", flush=True)
        spark.stop()


def _session(bundle: str, warehouse: Path) -> SparkSession:
    session = (
        SparkSession.builder.master("local[1]")
        .appName("hudi-index-versions")
        .config("spark.jars", bundle)
        .config("spark.serializer", "org.apache.spark.serializer.KryoSerializer")
        .config("spark.kryo.registrator", "org.apache.spark.HoodieSparkKryoRegistrar")
        .config("spark.sql.extensions", "org.apache.spark.sql.hudi.HoodieSparkSessionExtension")
        .config(
            "spark.sql.catalog.spark_catalog", "org.apache.spark.sql.hudi.catalog.HoodieCatalog"
        )
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.default.parallelism", "1")
        .config("spark.sql.warehouse.dir", str(warehouse))
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "2g")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.extraJavaOptions", "-Duser.timezone=UTC")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    return session


if __name__ == "__main__":
    main(*sys.argv[1:])
