"""One side of the comparison: `python -m tests.oracle.runner` reads one JSON object a line, with a
table and questions on it, and prints one with the answers of the service that its environment has.

This module runs beside the oracle and beside the working tree. So it uses what both have.
"""

from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import Any

import hudi_index_service
from benchmarks.bench_process import serve
from hudi_index_service import IndexedTable, open_table
from hudi_index_service.config import HistorySettings, ReadSettings, Settings
from hudi_index_service.errors import IndexServiceError
from hudi_index_service.optimizer.plan import Access
from hudi_index_service.read.scan import Scan

WORK = ("opened", "pages", "ranges", "bytes_read", "rows_checked", "index_requests")
"""What is counted of a query: entries opened, pages and their ranges, compressed bytes, rows that
the residual checked, and requests for the index."""

Answer = dict[str, Any]


def _rows(scan: Scan) -> list[Any]:
    return sorted(scan.to_arrow().column(0).to_pylist())


def _row_ids(scan: Scan) -> Any:
    found = scan.row_ids()
    return {"in log files": found.in_log_files, **{file: list(ids) for file, ids in found.items()}}


METHODS: dict[str, Callable[[Scan], Any]] = {
    "rows": _rows,
    "count": Scan.count,
    "exists": Scan.exists,
    "row_ids": _row_ids,
    "limited": lambda scan: scan.to_arrow().num_rows,
}
LIMIT = 3
"""Rows of a query that is ``limited``: which ones is left open."""


@cache
def _opened(table: str, time_zone: str, forced: bool, storage: tuple[Any, ...]) -> IndexedTable:
    pages = {"scan_fraction": 1, "max_predicates": 1_000, "parallelism": 1} if forced else {}
    settings = Settings(
        read=ReadSettings(time_zone=time_zone, **pages), history=HistorySettings(enabled=False)
    )
    return open_table(table, settings=settings, storage_options=dict(storage))


def answer(table: IndexedTable, question: dict[str, Any], **view: Any) -> Answer:
    """Answers one question."""
    method = question["method"]
    limit = LIMIT if method == "limited" else None
    try:
        scan = table.scan(question["where"], columns=[question["column"]], limit=limit, **view)
        value = METHODS[method](scan)
    except IndexServiceError as error:
        return {"value": None, "error": error.code, "accesses": {}, "work": {}}
    statistics = scan.statistics
    work: Counter[str] = Counter()
    accesses: dict[str, int] = {}
    if statistics is not None:
        accesses = {each.name: statistics.count(each) for each in Access}
        for name in WORK:
            work[name] = sum(getattr(each, name) for each in statistics.slices)
    return {"value": value, "error": "", "accesses": accesses, "work": work}


def _handled(request: dict[str, Any]) -> dict[str, Any]:
    if "table" not in request:
        return {"package": hudi_index_service.__file__}
    options = dict(request["options"])
    zone = options.pop("time_zone", "UTC")
    storage = tuple(sorted(options.pop("storage_options", {}).items()))
    answers = []
    for each in request["questions"]:
        table = _opened(request["table"], zone, each["forced"], storage)
        answers.append(answer(table, each, **options))
    return {"answers": answers}


if __name__ == "__main__":
    serve(lambda: _handled)
