"""Polars and DuckDB through the index, in turn with the same engine on the snapshot's Parquet
files: a contestant in a process of its own. `python -m benchmarks.doors.engines TABLE FILES`."""

import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import duckdb
import polars as pl

from benchmarks.bench_process import serve
from benchmarks.scale.tables import V_VALUES, distinct_u
from hudi_index_service import open_table
from hudi_index_service.engines.dataset import HudiDataset
from hudi_index_service.engines.polars import scan_hudi

COLUMNS = ["key", "v", "msg"]

Run = Callable[[int], object]
"""Runs a query with other literals for each number."""


def prepare() -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Opens the table."""
    table, files = open_table(Path(sys.argv[1])), int(sys.argv[2])
    plan = table.scan().planned().plan
    paths = [f"{table.uri}/{each.file_slice.base_file.path}" for each in plan.slices]
    values = distinct_u(files)

    def by_polars(frame: pl.LazyFrame) -> dict[str, Run]:
        def half(number: int) -> pl.LazyFrame:
            return frame.filter(pl.col("v") < V_VALUES // 2 + number)

        return {
            "one_value": lambda number: (
                frame.filter(pl.col("u") == f"u{number * 7919 % values}").select(COLUMNS).collect()
            ),
            "half": lambda number: half(number).select(COLUMNS).collect(),
            "sum_of_half": lambda number: half(number).select(pl.col("amount").sum()).collect(),
        }

    def by_duckdb(source: object) -> dict[str, Run]:
        connection = duckdb.connect()
        if isinstance(source, list):
            source = connection.read_parquet(source)
        connection.register("rows", source)
        names = ", ".join(COLUMNS)

        def queried(what: str, condition: str) -> object:
            # The queries are the benchmark's own.
            query = f"SELECT {what} FROM rows WHERE {condition}"  # noqa: S608
            return connection.sql(query).to_arrow_table()

        return {
            "one_value": lambda number: queried(names, f"u = 'u{number * 7919 % values}'"),
            "half": lambda number: queried(names, f"v < {V_VALUES // 2 + number}"),
            "sum_of_half": lambda number: queried("sum(amount)", f"v < {V_VALUES // 2 + number}"),
        }

    ways = {
        "polars": (by_polars(scan_hudi(table)), by_polars(pl.scan_parquet(paths))),
        "duckdb": (by_duckdb(HudiDataset(table)), by_duckdb(paths)),
    }

    def handle(request: dict[str, Any]) -> dict[str, Any]:
        numbers = count(1)
        return {
            engine: {
                key: value
                for query in ours
                for key, value in _over(query, ours[query], plain[query], numbers, request).items()
            }
            for engine, (ours, plain) in ways.items()
        }

    return handle


def _over(
    query: str, ours: Run, plain: Run, numbers: "count[int]", request: dict[str, Any]
) -> dict[str, float]:
    """The ratio of the times, with the medians of both."""
    for run in (ours, plain):  # opens entries, reads footers
        run(next(numbers))
    taken: dict[Run, list[float]] = {ours: [], plain: []}
    for turn in range(request["rounds"]):
        for run in (ours, plain)[:: 1 if turn % 2 else -1]:
            number, began = next(numbers), perf_counter()
            run(number)
            taken[run].append(1000 * (perf_counter() - began))
    ratios = [own / other for own, other in zip(taken[ours], taken[plain], strict=True)]
    return {
        query: round(median(ratios), 3),
        f"{query}_ms": round(median(taken[ours]), 1),
        f"{query}_plain_ms": round(median(taken[plain]), 1),
    }


if __name__ == "__main__":
    serve(prepare)
