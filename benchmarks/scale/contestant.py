"""A contestant, in a process of its own that answers line by line.

`python -m benchmarks.scale.contestant NAME TABLE` reads one JSON object a line, such as
``{"wheres": ["u = 'u7'"], "columns": ["key"], "counts": false}``, asks each of the conditions once,
and prints one: milliseconds of each, rows of all, and the process's anonymous memory in MiB.
"""

import sys
from abc import ABC, abstractmethod
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.bench_process import AnsweringProcess, answer_lines
from benchmarks.bench_table import base_files


class Contestant(AnsweringProcess):
    """Starts a contestant, and asks it."""

    def __init__(self, name: str, table: Path) -> None:
        super().__init__("benchmarks.scale.contestant", name, str(table))

    def ask(self, wheres: list[str], **options: Any) -> dict[str, Any]:
        """The answer to these conditions, each asked once.

        Args:
            options: ``columns``; ``counts``; ``words``, what Lance's full-text index is asked
                instead; ``threads``, in which the conditions are shared out.
        """
        return self.answer({"wheres": wheres, **options})


class Answering(ABC):
    """The side that answers."""

    @abstractmethod
    def rows(self, where: str, columns: list[str], counts: bool, words: str) -> int:
        """Asks once; returns how many rows there are."""


class Ours(Answering):
    """The service, without any Spark session in the process."""

    def __init__(self, table: Path) -> None:
        from hudi_index_service import open_table

        self._table = open_table(table)

    def rows(self, where: str, columns: list[str], counts: bool, words: str) -> int:
        scan = self._table.scan(f"match(msg, '{words}')" if words else where, columns=columns)
        return int(scan.count() if counts else scan.to_arrow().num_rows)


class DuckDB(Answering):
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
        found = self._database.cursor().sql(query).to_arrow_table()
        return int(found.column(0)[0].as_py() if counts else found.num_rows)


class Lance(Answering):
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
        asked = (
            {"full_text_query": words, "disable_scoring_autoprojection": True}
            if words
            else {"filter": where}
        )
        if counts and not words:
            return int(self._dataset.count_rows(where))
        return int(self._dataset.scanner(columns=columns, **asked).to_table().num_rows)


ANSWERING: dict[str, type[Answering]] = {"ours": Ours, "duckdb": DuckDB, "lance": Lance}


def anonymous_mib() -> float:
    """The process's own memory, without mapped files."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon:")) / 1024


def answered(answering: Answering, request: dict[str, Any]) -> dict[str, Any]:
    """The answer to a request."""
    columns, counts = request.get("columns", ["key"]), request.get("counts", False)
    words, several = request.get("words", ""), request.get("threads", 1)

    def ask(where: str) -> tuple[float, int]:
        started = perf_counter()
        rows = answering.rows(where, columns, counts, words)
        return round((perf_counter() - started) * 1000, 3), rows

    began = perf_counter()
    if several == 1:
        asked = list(map(ask, request["wheres"]))
    else:
        with ThreadPoolExecutor(several) as threads:
            asked = list(threads.map(ask, request["wheres"]))
    return {
        "ms": [ms for ms, _ in asked],
        "rows": sum(rows for _, rows in asked),
        "seconds": perf_counter() - began,
        "anonymous_mib": anonymous_mib(),
    }


def main(name: str, table: str) -> None:
    """Answers until there are no more questions."""
    answer_lines(lambda: partial(answered, ANSWERING[name](Path(table))))


if __name__ == "__main__":
    main(*sys.argv[1:])
