"""Writes the tables of the reading benchmark, by Spark in a process of its own, which ends before
the measurements begin.

`python -m benchmarks.bench_read_tables <folder> <rows> <codecs> <file counts>`: for each codec a
clustered table of one base file, for gzip with Hudi's record index and its secondary index on
`sender`; for each number of files a small table.
"""

import shutil
import sys
from pathlib import Path

from benchmarks.bench_contestants import record_index
from benchmarks.bench_table import NAME, cluster, spark_session, write_table

ROWS_A_FILE = 2_000


def clustered(folder: Path, codec: str) -> Path:
    """The table of this codec."""
    return folder / f"clustered-{codec}"


def of_files(folder: Path, files: int) -> Path:
    """The table of so many base files."""
    return folder / f"files-{files}"


def main(where: str, rows: str, codecs: str, file_counts: str) -> None:
    """Writes them all."""
    folder = Path(where)
    spark = spark_session(folder)
    written = folder / "written"
    print(f"Writing {int(rows):,} rows …", file=sys.stderr, flush=True)
    write_table(spark, written, int(rows), files=8)
    for codec in codecs.split(","):
        print(f"Clustering, {codec} …", file=sys.stderr, flush=True)
        table = clustered(folder, codec)
        shutil.copytree(written, table)
        cluster(spark, table, codec)
        if codec == "gzip":
            print("Hudi's own indexes …", file=sys.stderr, flush=True)
            spark.sql(f"create table {NAME} using hudi location '{table}'")
            with record_index(spark):
                spark.sql(f"create index record_index on {NAME} (key)")
                spark.sql(f"create index secondary on {NAME} (sender)")
    shutil.rmtree(written)
    for files in map(int, file_counts.split(",")):
        write_table(spark, of_files(folder, files), files * ROWS_A_FILE, files)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
