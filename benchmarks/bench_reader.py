"""A contestant of the reading benchmark, in a process of its own that answers line by line.

`python -m benchmarks.bench_reader <name> <table>`: reads one JSON object a line, such as
``{"query": "sender", "repeat": 5}``, and prints one: the milliseconds of each repetition, the rows
of the answer, and what else the contestant says. `Contestant` is the asking side.
"""

import sys
from abc import ABC, abstractmethod
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.bench_process import AnsweringProcess, answer_lines
from benchmarks.bench_queries import HALF, Query, queries
from benchmarks.bench_table import base_files, spark_session


class Contestant(AnsweringProcess):
    """Starts a contestant, and asks it.

    Args:
        name: One of `ANSWERING`.
        table: The table's folder.
        key: See `queries`.
    """

    def __init__(self, name: str, table: Path, key: str) -> None:
        super().__init__("benchmarks.bench_reader", name, str(table), key)

    def ask(self, query: str, repeat: int = 1, **options: Any) -> dict[str, Any]:
        """The contestant's answer to a query, by the query's name: asked so often, and for at least
        ``least_seconds``."""
        return self.answer({"query": query, "repeat": repeat, **options})


class Answering(ABC):
    """The side that answers."""

    def __init__(self, table: Path) -> None:
        self.table = table
        self.base_file = max(base_files(table), key=lambda path: path.stat().st_size)

    @abstractmethod
    def rows(self, query: Query, **options: Any) -> int:
        """Asks the query once; returns how many rows it gives, or what it counts."""

    def more(self, query: Query, **options: Any) -> dict[str, Any]:
        """What else is to be said of the query."""
        return {}


class Ours(Answering):
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

    def more(self, query: Query, *, use_index: str = "auto", **options: Any) -> dict[str, Any]:
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
        """Bytes of the pages that hold a matching row, of the columns asked for."""
        import hudi_index_parquet
        import numpy as np

        floor = 0
        columns = list(query.columns) or self._table.schema().names
        for path, found in self._table.scan(query.where).row_ids().items():
            footer = hudi_index_parquet.stripped_footer(Path(self.table, path))
            positions = np.frombuffer(found.to_array(), np.uint32).astype(np.int64)
            floor += hudi_index_parquet.plan_rows(footer, positions.data, columns).page_bytes
        return floor


class Spark(Answering):
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


class DuckDB(Answering):
    """DuckDB on the base file."""

    def __init__(self, table: Path) -> None:
        super().__init__(table)
        import duckdb

        self._database = duckdb.connect()
        self._database.execute("SET parquet_metadata_cache = true")

    def rows(self, query: Query, **options: Any) -> int:
        found = self._database.sql(query.select(f"read_parquet('{self.base_file}')"))
        table = found.to_arrow_table()
        return int(table.column(0)[0].as_py() if query.counts else table.num_rows)


class Lance(Answering):
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


ANSWERING: dict[str, type[Answering]] = {
    "ours": Ours,
    "spark": Spark,
    "duckdb": DuckDB,
    "lance": Lance,
}


def answered(
    answering: Answering, by_name: dict[str, Query], request: dict[str, Any]
) -> dict[str, Any]:
    """The answer to a request."""
    query, repeat = by_name[request.pop("query")], request.pop("repeat")
    until = perf_counter() + request.pop("least_seconds", 0.0)
    milliseconds: list[float] = []
    while len(milliseconds) < repeat or perf_counter() < until:
        started = perf_counter()
        rows = answering.rows(query, **request)
        milliseconds.append(round((perf_counter() - started) * 1000, 3))
    return {"ms": milliseconds, "rows": rows, **answering.more(query, **request)}


def main(name: str, table: str, key: str) -> None:
    """Answers until there are no more questions."""
    by_name = {query.name: query for query in [*queries(key), HALF]}
    answer_lines(lambda: partial(answered, ANSWERING[name](Path(table)), by_name))


if __name__ == "__main__":
    main(*sys.argv[1:])
