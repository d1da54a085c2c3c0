"""The driver program: builds like `submit/spark.py`, then reports the workers' environment.

spark-submit … driver.py TABLE REPORT.json
"""

import json
import sys
from pathlib import Path
from typing import Any

from pyspark import BarrierTaskContext
from pyspark.sql import SparkSession

from hudi_index_service.submit.spark import main


def worker_report(_: object) -> list[dict[str, Any]]:
    """The environment of one worker process."""
    import os
    import resource

    from hudi_index_service.index.lucene import jvm

    BarrierTaskContext.get().barrier()
    lucene = jvm.attach()
    maps = Path("/proc/self/maps").read_text().splitlines()
    mapped = {line.split(maxsplit=5)[5] for line in maps if "/" in line}
    modules = {getattr(module, "__file__", None) or "" for module in list(sys.modules.values())}
    return [
        {
            "folder": str(Path.cwd()),
            "executable": os.path.realpath(sys.executable),
            "lucene": os.path.realpath(lucene.__file__),
            "address_space_mb": resource.getrlimit(resource.RLIMIT_AS)[0] >> 20,
            "files": sorted(os.path.realpath(file) for file in mapped | modules if "/" in file),
        }
    ]


if __name__ == "__main__":
    table, report = sys.argv[1:]
    spark = SparkSession.builder.appName("tests/cluster").getOrCreate()
    status = main(["--table", table, "--strategy", "all"])
    workers = (
        spark.sparkContext.parallelize(range(2), 2).barrier().mapPartitions(worker_report).collect()
    )
    Path(report).write_text(json.dumps(workers))
    spark.stop()
    sys.exit(status)
