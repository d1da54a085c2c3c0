"""The clustered TPC-H tables, small: a base file per year, with the queries' columns."""

from functools import reduce
from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tests.golden.recipe import Writing, recipe
from tests.hudi_tables import NO_METADATA_TABLE, hudi_options, write
from tests.tpch import tables
from tests.tpch.predicates import OF_TABLE

_SCALE = "0.001"


@recipe
def tpch_orders(table: Writing) -> None:
    """1,500 orders."""
    _write(table, "orders")


@recipe
def tpch_lineitem(table: Writing) -> None:
    """Their 6,005 lines."""
    _write(table, "lineitem")


def _write(table: Writing, name: str) -> None:
    date, key = tables.CLUSTERED_BY[name], tables.KEYS[name]
    columns = list(dict.fromkeys([*key.split(","), *tables.INDEXED[name].split(", ")]))
    options = hudi_options(name, record_key=key, ordering_column=None, **NO_METADATA_TABLE)
    with TemporaryDirectory() as generated:
        tables.generate(Path(generated), _SCALE)
        rows = table.spark.read.parquet(str(Path(generated, f"{name}.parquet"))).select(columns)
        years = [rows.where(F.year(date) == year).coalesce(1) for year in tables.YEARS]
        write(reduce(DataFrame.union, years), table.path, options, "bulk_insert")
    table.keep("written", list(OF_TABLE[name].values()))
