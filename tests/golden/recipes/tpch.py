"""The clustered TPC-H tables, small: a base file per year, with the queries' columns."""

from functools import reduce
from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.golden.recipe import Recipe, Writing, put
from tests.hudi_tables import NO_METADATA_TABLE, hudi_options
from tests.tpch import tables
from tests.tpch.predicates import OF_TABLE

_SCALE = "0.001"


def _table(name: str) -> Recipe:
    date, key = tables.CLUSTERED_BY[name], tables.KEYS[name]
    columns = list(dict.fromkeys([*key.split(","), *tables.INDEXED[name].split(", ")]))

    def by_year(spark: SparkSession, folder: str) -> DataFrame:
        rows = spark.read.parquet(str(Path(folder, f"{name}.parquet"))).select(columns)
        years = [rows.where(F.year(date) == year).coalesce(1) for year in tables.YEARS]
        return reduce(DataFrame.union, years)

    def step(table: Writing) -> None:
        with TemporaryDirectory() as generated:
            tables.generate(Path(generated), _SCALE)
            put(by_year, generated, answers=list(OF_TABLE[name].values()))(table)

    options = hudi_options(name, record_key=key, ordering_column=None, **NO_METADATA_TABLE)
    return Recipe(options, step)


tpch_orders = _table("orders")  # 1,500
tpch_lineitem = _table("lineitem")  # their 6,005 lines
