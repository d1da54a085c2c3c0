"""The three answers to a predicate: by index, by scan, by Spark."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from hudi_index_service import IndexedTable, open_table
from hudi_index_service.config import ReadSettings, Settings
from hudi_index_service.errors import PredicateUnsupported, TableFeatureUnsupported
from hudi_index_service.hudi.spark import collected
from hudi_index_service.optimizer import decide
from hudi_index_service.optimizer.cost.constants import ASKED_WHILE_OPEN
from hudi_index_service.optimizer.plan import Access
from hudi_index_service.read.scan import Scan

Rows = tuple[int, ...]

METHOD_STRIDE = 4  # one in this many predicates is also checked by another method


@dataclass(frozen=True)
class View:
    """Which rows of a table are queried.

    Attributes:
        as_of: The instant travelled to; None for the latest.
        query_type: ``snapshot``, or ``read_optimized`` for base files alone.
    """

    path: Path
    time_zone: str
    as_of: str | None = None
    query_type: str = "snapshot"

    def scan(self, where: str | None, **options: Any) -> Scan:
        """The service's scan of these rows."""
        table = opened(self.path, self.time_zone)
        return table.scan(where, as_of=self.as_of, query_type=self.query_type, **options)


@dataclass(frozen=True)
class OurAnswer:
    """The service's answer; rows are sorted values of the column `row`.

    Attributes:
        refused: Why the predicate is not answered; nothing else is set then.
        by_index: The rows with the index.
        by_scan: The rows without it.
        method: Which other method was checked with the index; empty for none…
        wrong: … and its result, if that differs.
        slices: Slices of the table.
        indexed: Slices that were read by row ids, or skipped because of their entry.
        merged: Slices whose log files were merged, whole or only the log rows.
    """

    refused: str = ""
    by_index: Rows = ()
    by_scan: Rows = ()
    method: str = ""
    wrong: str = ""
    slices: int = 0
    indexed: int = 0
    merged: int = 0


_tables: dict[tuple[Path, str], IndexedTable] = {}


def opened(path: Path, time_zone: str) -> IndexedTable:
    """The table, opened once per process. Rows are read by page, however small the table is."""
    if (path, time_zone) not in _tables:
        read = ReadSettings(
            scan_fraction=1, max_predicates=1_000, parallelism=1, time_zone=time_zone
        )
        _tables[path, time_zone] = open_table(path, settings=Settings(read=read))
    return _tables[path, time_zone]


def our_answers(view: View, wheres: Sequence[str]) -> list[OurAnswer]:
    """The service's answer to each predicate."""
    answers = []
    for number, where in enumerate(wheres):
        method = ""
        if number % METHOD_STRIDE == 0:
            method = list(METHODS)[number // METHOD_STRIDE % len(METHODS)]
        # As if the table had many files: open entries are asked before slices are planned.
        fewest = 1 if (number // METHOD_STRIDE + number) % 2 else ASKED_WHILE_OPEN
        try:
            with patch.object(decide, "ASKED_WHILE_OPEN", fewest):
                answers.append(_our_answer(view, where, method))
        except Exception as error:
            error.add_note(f"{where} on {view}")
            raise
    return answers


def _our_answer(view: View, where: str, method: str) -> OurAnswer:
    try:
        scan = view.scan(where, columns=["row"])
        by_index = _sorted(scan.to_arrow())
        # Only a scan may meet a row that Spark alone can test.
        by_scan = _sorted(view.scan(where, columns=["row"], use_index="never").to_arrow())
    except (PredicateUnsupported, TableFeatureUnsupported) as error:
        return OurAnswer(refused=str(error))
    statistics = scan.statistics
    assert statistics is not None
    whole = statistics.count(Access.MERGE)
    if whole and method == "row_ids":
        method = "exists"
    return OurAnswer(
        by_index=by_index,
        by_scan=by_scan,
        method=method,
        wrong=METHODS[method](view, where, by_index) if method else "",
        slices=len(statistics.slices),
        indexed=statistics.count(Access.INDEX) + statistics.count(Access.SKIP),
        merged=whole + sum(each.log_rows is not None for each in statistics.slices),
    )


def _count(view: View, where: str, rows: Rows) -> str:
    count = view.scan(where).count()
    return "" if count == len(rows) else f"count {count}"


def _exists(view: View, where: str, rows: Rows) -> str:
    exists = view.scan(where).exists()
    return "" if exists == bool(rows) else f"exists {exists}"


def _row_ids(view: View, where: str, rows: Rows) -> str:
    by_file = view.scan(where).row_ids()
    found = [
        _row_column(view.path / file).take(list(ids)).to_pylist() for file, ids in by_file.items()
    ]
    in_base_files = Counter(row for each in found for row in each)
    same = in_base_files.total() + by_file.in_log_files == len(rows)
    return "" if same and in_base_files <= Counter(rows) else f"row ids {by_file}"


@lru_cache(maxsize=64)
def _row_column(file: Path) -> pa.ChunkedArray:
    return pq.read_table(file, columns=["row"], partitioning=None).column("row")


def _limited(view: View, where: str, rows: Rows) -> str:
    limit = len(rows) // 2 + 1
    some = _sorted(view.scan(where, columns=["row"], limit=limit).to_arrow())
    fits = len(some) == min(limit, len(rows)) and set(some) <= set(rows)
    return "" if fits else f"of {limit} rows {some}"


def _batches(view: View, where: str, rows: Rows) -> str:
    batches = view.scan(where, columns=["row"]).to_batches()
    found = tuple(sorted(row for each in batches for row in each.column("row").to_pylist()))
    return "" if found == rows else f"batches {found}"


METHODS: dict[str, Callable[[View, str, Rows], str]] = {
    "count": _count,
    "exists": _exists,
    "row_ids": _row_ids,
    "limit": _limited,
    "to_batches": _batches,
}
"""The other methods by name: each gives its result if that contradicts the rows, else nothing."""


def _sorted(found: pa.Table) -> Rows:
    return tuple(sorted(found.column("row").to_pylist()))


# Compiling hundreds of expressions takes far longer than interpreting them.
INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


def time_zone_of(spark: SparkSession, time_zone: str) -> AbstractContextManager[None]:
    """Sets the time zone of Spark's session within the block."""
    return settings_of(spark, {"spark.sql.session.timeZone": time_zone})


@contextmanager
def settings_of(spark: SparkSession, values: Mapping[str, str]) -> Iterator[None]:
    """Sets these settings of Spark's session within the block."""
    previous = {key: spark.conf.get(key) for key in values}
    for key, value in values.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, value in previous.items():
            spark.conf.set(key, value)


class SparksAnswers:
    """Spark's answers to many predicates in one job.

    Args:
        frame: All rows of the tables, with the columns `table` and `row`.
    """

    def __init__(self, frame: DataFrame, time_zone: str) -> None:
        self._frame = frame
        self._spark = frame.sparkSession
        self._time_zone = time_zone

    def evaluate(self, wheres: Sequence[str]) -> list[dict[int, Rows] | None]:
        """For each predicate, by table the sorted values of `row`; None where Spark refuses."""
        with settings_of(self._spark, INTERPRETED), time_zone_of(self._spark, self._time_zone):
            return self._evaluate(wheres)

    def _evaluate(self, wheres: Sequence[str]) -> list[dict[int, Rows] | None]:
        try:
            truths = [f"({where}) AS p{number}" for number, where in enumerate(wheres)]
            result = collected(self._frame.selectExpr("`table`", "`row`", *truths))
        except PySparkException:
            if len(wheres) == 1:
                return [None]
            half = len(wheres) // 2
            return self._evaluate(wheres[:half]) + self._evaluate(wheres[half:])
        result = result.sort_by([("table", "ascending"), ("row", "ascending")])
        tables, rows = (result.column(name).to_numpy() for name in ("table", "row"))
        parts = {int(table): tables == table for table in np.unique(tables)}
        answers: list[dict[int, Rows] | None] = []
        for number in range(len(wheres)):
            true = result.column(number + 2).fill_null(False).to_numpy()
            answers.append({t: tuple(rows[true & part].tolist()) for t, part in parts.items()})
        return answers
