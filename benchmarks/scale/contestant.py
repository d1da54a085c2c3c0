"""A contestant in a process of its own.

`python -m benchmarks.scale.contestant NAME TABLE` reads one JSON object a line, such as
``{"wheres": ["u = 'u7'"], "how": {"columns": ["key"]}, "threads": 1}``, runs a query for each of
the conditions, and prints one: the milliseconds and the rows of each, the seconds of all, and the
process's memory in MiB.
"""

import os
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

from benchmarks.bench_process import ContestantProcess, serve
from benchmarks.bench_table import base_files


@dataclass(frozen=True, kw_only=True)
class How:
    """What a query returns, and how it is run.

    Attributes:
        columns: The columns returned.
        counts: Only the number of rows is returned.
        exists: Only whether there are rows.
        first_batch: Only the first rows, as soon as there are some.
        limit: The maximum number of rows.
        words_of: A column with a full-text index; in place of a condition there is a word.
        locates: In place of a condition there are record keys, whose locations are returned.
        indexed: Whether indexes may be used.
    """

    columns: Sequence[str] = ("key", "amount")
    counts: bool = False
    exists: bool = False
    first_batch: bool = False
    limit: int | None = None
    words_of: str = ""
    locates: bool = False
    indexed: bool = True


class Contestant(ContestantProcess):
    """Starts a contestant and sends it queries."""

    def __init__(self, name: str, table: Path) -> None:
        module, arguments = "benchmarks.scale.contestant", ("ours", str(table))
        if name == "oracle":
            from dev import oracle

            frozen = (oracle.PYTHON, oracle.made(), oracle.environment())
            super().__init__(module, *arguments, frozen=frozen)
        else:
            super().__init__(module, name, str(table))

    def run(self, wheres: list[str], how: How, threads: int = 1) -> dict[str, Any]:
        """Runs a query for each of these conditions, which so many threads share."""
        return self.request({"wheres": wheres, "how": asdict(how), "threads": threads})


class Engine(ABC):
    """What runs the queries, in the contestant's process."""

    @abstractmethod
    def rows(self, where: str, how: How) -> int:
        """Runs a query; returns the number of its rows, 1 for those of a first batch."""


class Ours(Engine):
    """The service, without any Spark session in the process.

    Args:
        page_cache_mb: MiB of pages kept between queries, if not the default. They are the
            process's, so that a table's own settings do not say it.
    """

    def __init__(
        self, table: str, storage_options: Any = None, *, page_cache_mb: int | None = None
    ) -> None:
        if page_cache_mb is not None:
            os.environ["HUDI_INDEX_READ__PAGE_CACHE_MB"] = str(page_cache_mb)
        from hudi_index_service import open_table

        self._table = open_table(table, storage_options=storage_options)

    def rows(self, where: str, how: How) -> int:
        if how.locates:
            located = self._table.tag_location(where.split(","))
            return len(located) - int(located.column("file_id").null_count)
        scan = self._table.scan(
            f"match({how.words_of}, '{where}')" if how.words_of else where,
            columns=list(how.columns),
            limit=how.limit,
            use_index="auto" if how.indexed else "never",
        )
        if how.counts:
            return int(scan.count())
        if how.exists:
            return int(scan.exists())
        if how.first_batch:
            batches = scan.to_batches()
            return int(next(iter(batches)).num_rows > 0)
        return int(scan.to_arrow().num_rows)


class DuckDB(Engine):
    """DuckDB on the snapshot's base files."""

    def __init__(self, table: str) -> None:
        import duckdb

        self._database = duckdb.connect()
        self._database.execute("SET parquet_metadata_cache = true")
        files = ", ".join(f"'{each}'" for each in base_files(Path(table)))
        view = f"CREATE VIEW t AS SELECT * FROM read_parquet([{files}])"  # noqa: S608 - paths
        self._database.execute(view)

    def rows(self, where: str, how: How) -> int:
        what = "count(*)" if how.counts else ", ".join(how.columns)
        limit = 1 if how.exists or how.first_batch else how.limit
        if how.words_of:
            column = how.words_of
            where = f"contains({column}, '{where}') AND regexp_matches({column}, '\\b{where}\\b')"
        elif how.locates:
            what = "_hoodie_record_key, _hoodie_file_name"
            where = "_hoodie_record_key IN ('{}')".format(where.replace(",", "','"))
        query = f"SELECT {what} FROM t WHERE {where}"  # noqa: S608 - all constants
        query += f" LIMIT {limit}" if limit else ""
        # A cursor for each thread.
        result = self._database.cursor().sql(query).to_arrow_table()
        return int(result.column(0)[0].as_py() if how.counts else result.num_rows)


LANCE_INDEXES = [
    *((column, "BTREE") for column in ("key", "u", "v", "seq", "amount")),
    *(("city", "BITMAP"), ("msg", "INVERTED")),
    *((f"l_{name}", "BTREE") for name in ("orderkey", "partkey", "suppkey", "extendedprice")),
    *((f"l_{name}", "BTREE") for name in ("shipdate", "quantity", "comment")),
    *((f"l_{name}", "BITMAP") for name in ("shipmode", "returnflag")),
    ("l_comment", "INVERTED"),
]
"""The like of our indexes, of all tables: a column and the kind of its index."""


_DECIMAL = re.compile(r"\b\d+\.\d\d\b")
"""Numbers with two digits, which Lance would take for doubles."""


class Lance(Engine):
    """Lance on a copy in its own format, with an index on each column that ours has."""

    def __init__(self, table: str) -> None:
        import lance
        import pyarrow.dataset as ds

        folder = Path(f"{table}.lance")
        ready = folder.with_suffix(".lance-ready")
        if not ready.is_file():
            rows = ds.dataset([str(each) for each in base_files(Path(table))], format="parquet")
            batches = rows.scanner(batch_size=65_536).to_batches()
            mode = "overwrite" if folder.is_dir() else "create"
            dataset = lance.write_dataset(batches, str(folder), schema=rows.schema, mode=mode)
            words = {"stem": False, "remove_stop_words": False}
            for column, kind in LANCE_INDEXES:
                if column in rows.schema.names:
                    options = words if kind == "INVERTED" else {}
                    name = f"{column}_{kind.lower()}"
                    dataset.create_scalar_index(column, kind, name=name, **options)
            ready.touch()
        self._dataset = lance.dataset(str(folder))

    def rows(self, where: str, how: How) -> int:
        where = _DECIMAL.sub(r"decimal(15, 2) '\g<0>'", where)
        if how.counts and how.indexed and not how.words_of:
            return int(self._dataset.count_rows(where))
        options: dict[str, Any] = {"filter": where}
        if how.words_of:
            options = {"full_text_query": where, "disable_scoring_autoprojection": True}
        limit = 1 if how.exists or how.first_batch else how.limit
        options |= {"limit": limit} if limit else {}
        options |= {} if how.indexed else {"use_scalar_index": False}
        if how.counts:
            return int(self._dataset.scanner(**options).count_rows())
        return int(self._dataset.scanner(columns=list(how.columns), **options).to_table().num_rows)


ENGINES: dict[str, Any] = {
    "ours": Ours,
    "stored": Ours,
    "empty": partial(Ours, page_cache_mb=0),
    "filled": partial(Ours, page_cache_mb=2_048),
    "duckdb": DuckDB,
    "lance": Lance,
}


def memory_mib(kind: str) -> float:
    """The process's memory: ``RssAnon``, its own, or ``VmRSS``, with mapped files."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{kind}:")) / 1024


def measured(engine: Engine, request: dict[str, Any]) -> dict[str, Any]:
    """Runs the queries of a request; returns the response."""
    how, several = How(**request["how"]), request["threads"]

    def run(where: str) -> tuple[float, int]:
        started = perf_counter()
        rows = engine.rows(where, how)
        return round((perf_counter() - started) * 1000, 3), rows

    began, cpu = perf_counter(), process_time()
    if several == 1:
        results = list(map(run, request["wheres"]))
    else:
        with ThreadPoolExecutor(several) as threads:
            results = list(threads.map(run, request["wheres"]))
    return {
        "ms": [ms for ms, _ in results],
        "rows": [rows for _, rows in results],
        "seconds": perf_counter() - began,
        "cpu_seconds": process_time() - cpu,
        "anonymous_mib": memory_mib("RssAnon"),
        "resident_mib": memory_mib("VmRSS"),
    }


def main(name: str, table: str) -> None:
    """Handles requests until there are no more."""
    serve(lambda: partial(measured, ENGINES[name](table)))


if __name__ == "__main__":
    main(*sys.argv[1:])
