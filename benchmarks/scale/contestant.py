"""A contestant in a process of its own.

`python -m benchmarks.scale.contestant NAME TABLE` reads one JSON object a line, such as
``{"wheres": ["u = 'u7'"], "columns": ["key"], "counts": false}``, runs a query for each of the
conditions, and prints one: the milliseconds of each, and those of reading base files, the rows of
all, and the process's anonymous memory in MiB.
"""

import sys
from abc import ABC, abstractmethod
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

from benchmarks.bench_process import ContestantProcess, serve
from benchmarks.bench_table import base_files


class Contestant(ContestantProcess):
    """Starts a contestant and sends it queries."""

    def __init__(self, name: str, table: Path) -> None:
        super().__init__("benchmarks.scale.contestant", name, str(table))

    def run(self, wheres: list[str], **options: Any) -> dict[str, Any]:
        """Runs a query for each of these conditions.

        Args:
            options: ``columns``; ``counts``; ``words``, the query for Lance's full-text index, in
                place of the condition; ``threads``, which share the conditions.
        """
        return self.request({"wheres": wheres, **options})


class Engine(ABC):
    """What runs the queries, in the contestant's process."""

    reading_ms = 0.0
    """The time that the last query took to read rows of base files and to check them, as far as it
    is known."""

    @abstractmethod
    def rows(self, where: str, columns: list[str], counts: bool, words: str) -> int:
        """Runs a query; returns the number of its rows."""


class Ours(Engine):
    """The service, without any Spark session in the process."""

    def __init__(self, table: Path) -> None:
        from hudi_index_service import open_table

        self._table = open_table(table)

    def rows(self, where: str, columns: list[str], counts: bool, words: str) -> int:
        scan = self._table.scan(f"match(msg, '{words}')" if words else where, columns=columns)
        rows = int(scan.count() if counts else scan.to_arrow().num_rows)
        assert scan.statistics is not None
        slices = scan.statistics.begun.values()
        self.reading_ms = sum(each.ms - each.lookup_ms for each in slices)
        return rows


class DuckDB(Engine):
    """DuckDB on the snapshot's base files."""

    def __init__(self, table: Path) -> None:
        import duckdb

        self._database = duckdb.connect()
        self._database.execute("SET parquet_metadata_cache = true")
        files = ", ".join(f"'{each}'" for each in base_files(table))
        view = f"CREATE VIEW t AS SELECT * FROM read_parquet([{files}])"  # noqa: S608 - paths
        self._database.execute(view)

    def rows(self, where: str, columns: list[str], counts: bool, words: str) -> int:
        what = "count(*)" if counts else ", ".join(columns)
        query = f"SELECT {what} FROM t WHERE {where}"  # noqa: S608 - all constants
        # A cursor for each thread.
        result = self._database.cursor().sql(query).to_arrow_table()
        return int(result.column(0)[0].as_py() if counts else result.num_rows)


class Lance(Engine):
    """Lance on a copy in its own format, with an index on each column that ours has."""

    def __init__(self, table: Path) -> None:
        import lance
        import pyarrow.dataset as ds

        folder = table.with_name(f"{table.name}.lance")
        if not folder.is_dir():
            rows = ds.dataset([str(each) for each in base_files(table)], format="parquet")
            batches = rows.scanner(batch_size=65_536).to_batches()
            dataset = lance.write_dataset(batches, str(folder), schema=rows.schema)
            for column in ("key", "u", "v", "seq", "amount"):
                dataset.create_scalar_index(column, "BTREE")
            dataset.create_scalar_index("city", "BITMAP")
            dataset.create_scalar_index("msg", "INVERTED")
        self._dataset = lance.dataset(str(folder))

    def rows(self, where: str, columns: list[str], counts: bool, words: str) -> int:
        condition = (
            {"full_text_query": words, "disable_scoring_autoprojection": True}
            if words
            else {"filter": where}
        )
        if counts and not words:
            return int(self._dataset.count_rows(where))
        return int(self._dataset.scanner(columns=columns, **condition).to_table().num_rows)


ENGINES: dict[str, type[Engine]] = {"ours": Ours, "duckdb": DuckDB, "lance": Lance}


def anonymous_mib() -> float:
    """The process's own memory, without mapped files."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon:")) / 1024


def measured(engine: Engine, request: dict[str, Any]) -> dict[str, Any]:
    """Runs the queries of a request; returns the response."""
    columns, counts = request.get("columns", ["key"]), request.get("counts", False)
    words, several = request.get("words", ""), request.get("threads", 1)

    def run(where: str) -> tuple[float, float, int]:
        started = perf_counter()
        rows = engine.rows(where, columns, counts, words)
        ms = round((perf_counter() - started) * 1000, 3)
        return ms, min(ms, round(engine.reading_ms, 3)), rows

    began, cpu = perf_counter(), process_time()
    if several == 1:
        results = list(map(run, request["wheres"]))
    else:
        with ThreadPoolExecutor(several) as threads:
            results = list(threads.map(run, request["wheres"]))
    return {
        "ms": [ms for ms, _, _ in results],
        "reading_ms": [reading_ms for _, reading_ms, _ in results],
        "rows": sum(rows for _, _, rows in results),
        "seconds": perf_counter() - began,
        "cpu_seconds": process_time() - cpu,
        "anonymous_mib": anonymous_mib(),
    }


def main(name: str, table: str) -> None:
    """Handles requests until there are no more."""
    serve(lambda: partial(measured, ENGINES[name](Path(table))))


if __name__ == "__main__":
    main(*sys.argv[1:])
