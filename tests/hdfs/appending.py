"""Writes a merge-on-read table with a Hudi release that appends to its log files in HDFS.

`python -m tests.hdfs.appending BUNDLE TABLE FOLDER` does a step for each line of its input: it
writes to the table, stores Spark's rows as ``FOLDER/<step>.parquet``, and prints a line.
"""

import sys
from pathlib import Path

import pyarrow.parquet as pq

from hudi_index_service.hudi.spark import SparkHudiReader, local_session
from tests.hudi_tables import NO_METADATA_TABLE, hudi_options, numbered_rows, write


def main(bundle: str, table: str, folder: Path) -> None:
    """Inserts 40 rows, then updates ten of them in each further step."""
    # Appending needs as many data nodes as the file has replicas.
    settings = {"spark.sql.shuffle.partitions": "1", "spark.hadoop.dfs.replication": "2"}
    spark = local_session(
        "appending", folder, cores=1, memory="1g", bundle=bundle, settings=settings
    )
    # That release cannot read its metadata table in HDFS by Hadoop 3.
    options = hudi_options("appended", "MERGE_ON_READ", **NO_METADATA_TABLE)
    for step, _ in enumerate(sys.stdin):
        if step == 0:
            write(numbered_rows(spark, 0, 40).coalesce(1), table, options, "bulk_insert")
        else:
            write(numbered_rows(spark, 5 * step, 5 * step + 10, step), table, options)
        columns = spark.read.format("hudi").load(table).columns
        pq.write_table(SparkHudiReader(spark, table).read(columns), folder / f"{step}.parquet")
        print(f"written {step}", flush=True)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
