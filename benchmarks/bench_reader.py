"""A contestant of the reading benchmark, in a process of its own.

`python -m benchmarks.bench_reader <name> <table>`: reads one JSON object a line, such as
``{"query": "sender", "repeat": 5}``, and prints one: the milliseconds of each repetition, the
number of rows, and the contestant's details of the query. `Contestant` is the client side.
"""

import sys
from abc import ABC, abstractmethod
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.bench_process import ContestantProcess, serve
from benchmarks.bench_queries import HALF, Query, queries
from benchmarks.bench_table import base_files, spark_session


class Contestant(ContestantProcess):
    """Starts a contestant and sends it queries.

    Args:
        name: One of `ENGINES`.
        table: The table's folder.
        key: See `queries`.
    """

    def __init__(self, name: str, table: Path, key: str) -> None:
        super().__init__("benchmarks.bench_reader", name, str(table), key)

    def run(self, query: str, repeat: int = 1, **options: Any) -> dict[str, Any]:
        """Runs the query of this name `repeat` times, and for at least ``least_seconds``."""
        return self.request({"query": query, "repeat": repeat, **options})


class Engine(ABC):
    """What runs the queries, in the contestant's process."""

    def __init__(self, table: Path) -> None:
        self.table = table
        self.base_file = max(base_files(table), key=lambda path: path.stat().st_size)

    @abstractmethod
    def rows(self, query: Query, **options: Any) -> int:
        """Runs the query once; returns the number of its rows, or its count."""

    def details(self, query: Query, **options: Any) -> dict[str, Any]:
        """Further measurements of the query."""
        return {}


class Ours(Engine):
    """The service, without any Spark session in the process."""

    def __init__(self, table: Path) -> None:
        super().__init__(table)
        from hudi_index_service import open_table

        self._open = open_table
        self._table = open_table(table)

    def rows(self, query: Query, *, use_index: str = "auto", **options: Any) -> int:
        return self._scanned(self._table, query, use_index)

    def _scanned(self, table: Any, query: Query, use_index: str) -> int:
        scan = table.scan(query.where, columns=list(query.columns) or None, use_index=use_index)
        self._scan = scan
        return int(scan.count() if query.counts else scan.to_arrow().num_rows)

    def details(self, query: Query, *, use_index: str = "auto", **options: Any) -> dict[str, Any]:
        read = self._scan.statistics
        with self._open(self.table) as cold:
            started = perf_counter()
            self._scanned(cold, query, use_index)
            cold_ms = (perf_counter() - started) * 1000
        return {
            "bytes_read": read.bytes_read,
            "pages": read.pages,
            "floor_bytes": 0 if query.counts else self._floor(query),
            "cold_ms": cold_ms,
        }

    def _floor(self, query: Query) -> int:
        """Bytes of the pages of the selected columns that hold a matching row."""
        import hudi_index_parquet
        import numpy as np

        floor = 0
        columns = list(query.columns) or self._table.schema().names
        for path, row_ids in self._table.scan(query.where).row_ids().items():
            footer = hudi_index_parquet.stripped_footer(Path(self.table, path))
            positions = np.frombuffer(row_ids.to_array(), np.uint32).astype(np.int64)
            floor += hudi_index_parquet.Footer(footer).plan(positions.data, columns).page_bytes
        return floor


class Spark(Engine):
    """Spark with Hudi: ``indexed`` with Hudi's own indexes and data skipping, else without."""

    def __init__(self, table: Path) -> None:
        super().__init__(table)
        self._spark = spark_session(table.parent)

    def rows(self, query: Query, *, indexed: bool = False, **options: Any) -> int:
        on = str(indexed).lower()
        frame = (
            self._spark.read.format("hudi")
            .option("hoodie.metadata.enable", on)
            .option("hoodie.enable.data.skipping", on)
            .load(str(self.table))
            .where(query.sql)
        )
        if query.counts:
            return int(frame.count())
        return len((frame.select(*query.columns) if query.columns else frame).collect())


class DuckDB(Engine):
    """DuckDB on the base file."""

    def __init__(self, table: Path) -> None:
        super().__init__(table)
        import duckdb

        self._database = duckdb.connect()
        self._database.execute("SET parquet_metadata_cache = true")

    def rows(self, query: Query, **options: Any) -> int:
        relation = self._database.sql(query.select(f"read_parquet('{self.base_file}')"))
        table = relation.to_arrow_table()
        return int(table.column(0)[0].as_py() if query.counts else table.num_rows)


class Lance(Engine):
    """Lance on a copy in its own format: B-trees, a bitmap on city, an inverted index on msg."""

    def __init__(self, table: Path) -> None:
        super().__init__(table)
        import lance
        import pyarrow.parquet as pq

        with pq.ParquetFile(self.base_file) as file:
            batches = file.iter_batches(65_536)
            folder = str(table.parent / "lance")
            self._dataset = lance.write_dataset(
                batches, folder, schema=file.schema_arrow, mode="overwrite"
            )
        for column in ("sender", "amount", "key"):
            self._dataset.create_scalar_index(column, "BTREE")
        self._dataset.create_scalar_index("city", "BITMAP")
        self._dataset.create_scalar_index("msg", "INVERTED")

    def rows(self, query: Query, **options: Any) -> int:
        if query.counts:
            return int(self._dataset.count_rows(query.sql))
        columns = list(query.columns) or None
        if query.words:
            scanner = self._dataset.scanner(
                columns=columns,
                full_text_query=query.words,
                disable_scoring_autoprojection=True,
            )
            return int(scanner.to_table().num_rows)
        return int(self._dataset.to_table(columns=columns, filter=query.sql).num_rows)


ENGINES: dict[str, type[Engine]] = {
    "ours": Ours,
    "spark": Spark,
    "duckdb": DuckDB,
    "lance": Lance,
}


def measured(engine: Engine, by_name: dict[str, Query], request: dict[str, Any]) -> dict[str, Any]:
    """Runs the query of a request; returns the response."""
    query, repeat = by_name[request.pop("query")], request.pop("repeat")
    until = perf_counter() + request.pop("least_seconds", 0.0)
    milliseconds: list[float] = []
    while len(milliseconds) < repeat or perf_counter() < until:
        started = perf_counter()
        rows = engine.rows(query, **request)
        milliseconds.append(round((perf_counter() - started) * 1000, 3))
    return {"ms": milliseconds, "rows": rows, **engine.details(query, **request)}


def main(name: str, table: str, key: str) -> None:
    """Handles requests until there are no more."""
    by_name = {query.name: query for query in [*queries(key), HALF]}
    serve(lambda: partial(measured, ENGINES[name](Path(table)), by_name))


if __name__ == "__main__":
    main(*sys.argv[1:])
