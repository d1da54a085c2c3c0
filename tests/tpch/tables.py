"""The eight tables of TPC-H as Hudi tables: `orders` and `lineitem` clustered, merge-on-read, with
log files above one of their base files.

``python -m tests.tpch.tables FOLDER`` writes them below ``FOLDER``; `written` keeps what it writes.

The rows come from tpchgen-cli and are the same in every run. `orders` is sorted by order date, as
such tables usually are, and `lineitem` by shipping date. Both have one base file per year.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import reduce
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from dev import jars
from dev.paths import ROOT
from hudi_index_service import open_table
from tests import java_options
from tests.hudi_tables import hudi_options, read_rows, run_clustering, write
from tests.kept_tables import kept
from tests.spark_session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCALE = "0.1"

KEYS = {
    "region": "r_regionkey",
    "nation": "n_nationkey",
    "supplier": "s_suppkey",
    "customer": "c_custkey",
    "part": "p_partkey",
    "partsupp": "ps_partkey,ps_suppkey",
    "orders": "o_orderkey",
    "lineitem": "l_orderkey,l_linenumber",
}

CLUSTERED_BY = {"orders": "o_orderdate", "lineitem": "l_shipdate"}

YEARS = range(1992, 1999)
"""The years of the clustered tables, which have a base file for each."""

INDEXED = {
    "orders": "o_orderkey, o_custkey, o_orderdate, o_orderstatus, o_orderpriority, o_comment",
    "lineitem": "l_orderkey, l_partkey, l_suppkey, l_quantity, l_discount, l_returnflag, "
    "l_shipdate, l_commitdate, l_receiptdate, l_shipinstruct, l_shipmode",
}
"""The columns in the queries' conditions."""


_NEW = {
    "orders": [
        ("o_orderstatus", "'F'"),
        ("o_totalprice", "o_totalprice * 2"),
        ("o_orderdate", "date_add(DATE'1993-08-01', cast(o_orderkey % 90 AS int))"),
        ("o_orderpriority", "'1-URGENT'"),
        ("o_comment", "concat('special packed requests of ', o_comment)"),
    ],
    "lineitem": [
        ("l_quantity", "l_quantity % 20 + 1"),
        ("l_discount", "0.06"),
        ("l_returnflag", "'R'"),
        ("l_shipdate", "date_add(DATE'1994-06-01', cast(l_orderkey % 30 AS int))"),
        ("l_commitdate", "DATE'1994-07-01'"),
        ("l_receiptdate", "DATE'1994-08-01'"),
        ("l_shipmode", "if(l_partkey % 2 = 0, 'MAIL', 'AIR')"),
    ],
}
"""The updates: column and value expression by table."""


def generate(folder: Path, scale: str = SCALE) -> None:
    """Generates the rows, one Parquet file per table."""
    command = [str(Path(sys.executable).parent / "tpchgen-cli"), "parquet", "--quiet"]
    subprocess.run([*command, "--scale-factor", scale, "--output-dir", str(folder)], check=True)


def write_table(
    spark: "SparkSession", generated: Path, folder: Path, name: str, table_type: str
) -> None:
    """Writes a table to the folder of its name, and clusters it if it is in `CLUSTERED_BY`."""
    rows = spark.read.parquet(str(generated / f"{name}.parquet"))
    clustered = CLUSTERED_BY.get(name)
    parts = [rows.coalesce(1)]
    if clustered:
        parts = [rows.where(F.year(clustered) == year).coalesce(1) for year in YEARS]
    options = hudi_options(name, table_type, record_key=KEYS[name], ordering_column=None)
    path = folder / name
    write(reduce(DataFrame.union, parts), path, options, "bulk_insert")
    if clustered:
        # Each file is clustered by itself, so that every run groups rows in the same way.
        strategy = "hoodie.clustering.plan.strategy"
        settings = [f"{strategy}.sort.columns={clustered}", f"{strategy}.max.bytes.per.group=1"]
        assert run_clustering(spark, path, options=",".join(settings))


def index(folder: Path, name: str) -> None:
    """Indexes one of the clustered tables."""
    with open_table(folder / name) as table:
        table.create_index("by_conditions", INDEXED[name].split(", "))
        table.build(strategy="all").raise_for_failures()


def change(spark: "SparkSession", folder: Path) -> None:
    """Updates and deletes rows of the merge-on-read tables, all in the base files of one year,
    which thereby get log files. The updated rows contradict the base files' statistics: they have
    other years and other values of the columns in the queries' conditions."""
    for name, key in (("orders", "o_orderkey"), ("lineitem", "l_orderkey")):
        rows = read_rows(spark, folder / name)
        columns = [each for each in rows.columns if not each.startswith("_hoodie")]
        year = rows.select(columns).where(F.year(CLUSTERED_BY[name]) == 1996)
        new = {
            column: F.expr(value).cast(rows.schema[column].dataType) for column, value in _NEW[name]
        }
        options = hudi_options(name, "MERGE_ON_READ", record_key=KEYS[name], ordering_column=None)
        write(year.where(F.col(key) % 7 == 0).withColumns(new), folder / name, options)
        write(year.where(F.col(key) % 11 == 1), folder / name, options, "delete")


def write_all(folder: Path) -> None:
    """Writes the tables."""
    folder.mkdir(parents=True, exist_ok=True)
    generate(folder / "generated")
    with spark_session(folder / "warehouse") as spark:
        for name in KEYS:
            print(f"writing {name} …", flush=True)
            table_type = "MERGE_ON_READ" if name in CLUSTERED_BY else "COPY_ON_WRITE"
            write_table(spark, folder / "generated", folder, name, table_type)
        print("updating and deleting …", flush=True)
        change(spark, folder)
    for each in ("generated", "warehouse"):
        shutil.rmtree(folder / each)


def written() -> Path:
    """The folder of the tables, without indexes. It must not be changed."""
    digest = sha256()
    for script in ("tpch/tables.py", "hudi_tables.py", "spark_session.py"):
        digest.update((ROOT / "tests" / script).read_bytes())
    versions = (jars.hudi_bundle().sha256, version("pyspark"), version("tpchgen-cli"))
    digest.update(" ".join(versions).encode())

    def write(folder: Path) -> None:
        command = [sys.executable, "-m", "tests.tpch.tables", str(folder)]
        # Unlike small tables, these are written sooner with Java's usual options.
        environment = {**os.environ, java_options.VARIABLE: ""}
        subprocess.run(command, cwd=ROOT, env=environment, check=True)

    return kept("tpch", digest.hexdigest(), write)


@contextmanager
def registered(spark: "SparkSession", database: str, folders: dict[str, Path]) -> Iterator[None]:
    """Makes a database with the tables the current one.

    Args:
        folders: Each table's parent folder.
    """
    spark.sql(f"CREATE DATABASE {database}")
    spark.sql(f"USE {database}")
    for name, folder in folders.items():
        spark.sql(f"CREATE TABLE {name} USING hudi LOCATION '{folder / name}'")
    yield
    spark.sql("USE default")
    spark.sql(f"DROP DATABASE {database} CASCADE")


if __name__ == "__main__":
    write_all(Path(sys.argv[1]))
