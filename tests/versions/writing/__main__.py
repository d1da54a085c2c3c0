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

from hudi_index_service.hudi.spark import local_session
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
    settings = {
        "spark.sql.shuffle.partitions": "1",
        "spark.default.parallelism": "1",
        "spark.driver.extraJavaOptions": "-Duser.timezone=UTC",
    }
    return local_session(
        "hudi-index-versions",
        warehouse,
        cores=1,
        memory="2g",
        bundle=bundle,
        settings=settings,
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
