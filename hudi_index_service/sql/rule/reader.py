"""Decides who reads the rows of a request, and reads them when the query runs."""

import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING

import pyarrow as pa

from hudi_index_service.columns import column_name
from hudi_index_service.config import Settings
from hudi_index_service.optimizer.cost.constants import DRIVER_BYTES, DRIVER_SLICES
from hudi_index_service.optimizer.plan import Access
from hudi_index_service.predicate.spark_sql import identifier_sql
from hudi_index_service.read.execution import Execution
from hudi_index_service.read.slices.index_estimates import with_index_estimates
from hudi_index_service.read.spark.frames import rows_by_tasks
from hudi_index_service.read.statistics import ReadStatistics
from hudi_index_service.sql.catalyst.scala import cores
from hudi_index_service.sql.full_text.conditions import answers
from hudi_index_service.sql.relations.decision import serving_indexes, with_others
from hudi_index_service.sql.relations.keys import candidates_of_keys
from hudi_index_service.sql.relations.pinned import pinned
from hudi_index_service.sql.relations.spark_types import as_spark_sees
from hudi_index_service.sql.relations.weighing import Candidates, KeepSparkScan, candidates
from hudi_index_service.sql.rule.best import LARGE, BestRows, best_rows
from hudi_index_service.sql.rule.computed import Columns
from hudi_index_service.sql.rule.condition import where_text
from hudi_index_service.sql.rule.counting import Counted, by_counting
from hudi_index_service.sql.rule.full_text import FullTextCalls, can_search, condition_of
from hudi_index_service.sql.rule.request import Computed, Key, Request, read_request, searches
from hudi_index_service.table import IndexedTable, open_table
from hudi_index_service.wording import counted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

log = logging.getLogger(__name__)

_KEPT = 64
"""Plans that are kept from a decision until the query runs."""

_READS = 256
"""Uses of relations whose statistics are kept."""

_FRESH_SECONDS = 10.0
"""How long: after that, the plan is made again, since files may have gone, or entries come."""


@dataclass(frozen=True, slots=True)
class ByIndex:
    """A relation that the index pays for.

    Attributes:
        run: Reads the rows.
        rows: How many there are, and who reads them.
        total: The number of rows in the slices that an index serves.
        where: The condition for the service.
        indexes: The names of the indexes that serve.
        key: Restricts the rows further, once the query runs; None if nothing does.
        columns: The columns of the result.
    """

    run: Execution
    rows: Candidates
    total: int
    where: str
    indexes: tuple[str, ...]
    key: Key | None
    columns: Columns

    @property
    def reader(self) -> str:
        """Who reads the rows."""
        return "driver" if self.rows.few else "tasks"

    @property
    def expected(self) -> int:
        """The most rows that the index finds."""
        return self.rows.rows

    @property
    def reason(self) -> str:
        """Why, in one sentence without full stop."""
        number = counted(self.rows.rows, "row")
        if self.key is not None:
            keys = counted(self.key.most, "key")
            return f"the index finds at most {number} by {keys} of a join"
        rows = number if self.rows.exact else f"at most {number}"
        return with_others(f"the index finds {rows}", self.rows.scanned)

    def read(
        self, spark: "SparkSession", statistics: ReadStatistics
    ) -> "pa.Table | DataFrame | KeepSparkScan":
        """The rows. Raises what reading raises.

        Args:
            statistics: Receives those of the driver's read.
        """
        # As if for the first time: a decision may serve several queries.
        run = replace(self.run, statistics=statistics)
        if self.rows.few:
            table = run.table()
            if table.nbytes <= DRIVER_BYTES:
                return self.columns.table(table)
            if not self.rows.by_tasks:
                return KeepSparkScan(LARGE)
        frame = rows_by_tasks(spark, run.reader, run.plan, None, history=run.history)
        return self.columns.frame(frame)


Kept = ByIndex | BestRows | Counted
Decided = Kept | KeepSparkScan


@dataclass(frozen=True, slots=True)
class Read:
    """What the index has read for a relation of a query.

    Attributes:
        where: The condition, with the keys of a join.
        statistics: Of the driver's read; None if tasks read, or a search for the best rows.
    """

    where: str
    statistics: ReadStatistics | None


class RelationReader:
    """Answers the requests of one session's queries, and keeps their tables open.

    Args: as for `enable`.
    """

    def __init__(
        self,
        spark: "SparkSession",
        storage_options: Mapping[str, str] | None,
        settings: Settings | None,
    ) -> None:
        self._spark = spark
        self._cores = cores(spark)
        self._storage_options = storage_options
        self._settings = settings
        self._tables: dict[str, IndexedTable] = {}
        self._kept: OrderedDict[str, tuple[Kept, float]] = OrderedDict()
        self._reads: OrderedDict[int, Read] = OrderedDict()
        self._lock = Lock()
        self.calls = FullTextCalls(self._table)
        """Answers questions about full-text calls."""

    def has(self, storage_options: Mapping[str, str] | None, settings: Settings | None) -> bool:
        """Whether it was made with these arguments."""
        return (self._storage_options, self._settings) == (storage_options, settings)

    def decide(self, text: str) -> Decided:
        """Who reads the rows of a request, or counts them. Looks into the index and reads no row.

        Raises:
            IndexServiceError, OSError: the table cannot be opened, planned or looked up.
        """
        request = read_request(text)
        if isinstance(request, str):
            return KeepSparkScan(request)
        decided = self._decided(request)
        log.info(
            "%s is read by %s: %s.",
            request.uri,
            "Spark" if isinstance(decided, KeepSparkScan) else "index",
            decided.reason,
        )
        if not isinstance(decided, KeepSparkScan) and request.key is None:
            self._keep(text, decided)
        return decided

    def rows(self, text: str, use: int) -> "pa.Table | DataFrame | KeepSparkScan":
        """The rows of a request: a table of few, a DataFrame whose tasks read many.

        Args:
            use: The number of the relation's use.

        Raises:
            IndexServiceError, OSError, pa.ArrowException, PySparkException, Py4JJavaError: they
                cannot be read.
        """
        decided: Decided = self._fresh(text) or self.decide(text)
        if isinstance(decided, KeepSparkScan):
            return decided
        statistics = ReadStatistics()
        rows = decided.read(self._spark, statistics)
        if not isinstance(rows, KeepSparkScan):
            in_driver = isinstance(rows, pa.Table) and not isinstance(decided, BestRows)
            self._remember(use, Read(decided.where, statistics if in_driver else None))
        return rows

    def read(self, use: int) -> "Read | None":
        """What has been read for a use, by its number; None if nothing was, or long ago."""
        with self._lock:
            return self._reads.get(use)

    def _remember(self, use: int, read: "Read") -> None:
        with self._lock:
            self._reads[use] = read
            while len(self._reads) > _READS:
                self._reads.popitem(last=False)

    def close(self) -> None:
        """Closes the tables and their open index files."""
        with self._lock:
            tables, self._tables = self._tables, {}
            self._kept.clear()
        for table in tables.values():
            table.close()

    def _decided(self, request: Request) -> Decided:
        table = self._table(request.uri)
        indexes = table.indexes()
        if not indexes:
            return KeepSparkScan("the table has no index")
        if request.counts is not None:
            return by_counting(table, request, request.counts)
        if request.best is not None:
            return best_rows(table, request, request.best, self.calls, self._cores)
        schema = table.schema()
        where = where_text(
            request.where, lambda text: answers(schema, text), partial(can_search, table)
        )
        if request.key is not None:
            where = _with_key(where, request.key, lambda text: answers(schema, text))
        if where is None:
            return KeepSparkScan("no index answers a condition on it")
        met = [each for each in searches(request.where) if _is_searched(table, each)]
        columns = Columns.of(request, met, self.calls)
        run = pinned(table, request, where, [*request.names, *columns.texts])
        if isinstance(run, str):
            return KeepSparkScan(run)
        read = run.reader.query.output
        wanted = len(request.names)
        output = as_spark_sees(pa.schema(list(read)[:wanted]), request.types)
        if output is None:
            return KeepSparkScan("Spark sees its columns in other types")
        run = run.narrowed(pa.schema([*output, *list(read)[wanted:]]))
        rows = self._candidates(run, request.key)
        if isinstance(rows, KeepSparkScan):
            return rows
        served = [each.for_counting() for each in run.plan.slices]
        total = sum(each.total for each in served if each.access is Access.INDEX)
        serving = serving_indexes(indexes, run.plan)
        return ByIndex(run, rows, total, where, serving, request.key, columns)

    def _candidates(self, run: Execution, key: Key | None) -> Candidates | KeepSparkScan:
        if key is not None:
            return candidates_of_keys(run, self._cores, key.column, key.most)
        rows = candidates(run, self._cores)
        if isinstance(rows, KeepSparkScan) or rows.exact:
            return rows
        if len(run.plan.slices) <= DRIVER_SLICES:
            # Spark plans its joins by the number of rows, and reading opens the entries anyway.
            return rows.with_estimates(with_index_estimates(run.plan, run.reader))
        return rows

    def _table(self, uri: str) -> IndexedTable:
        with self._lock:
            table = self._tables.get(uri)
            if table is None:
                table = open_table(
                    uri, storage_options=self._storage_options, settings=self._settings
                )
                self._tables[uri] = table
            return table

    def _keep(self, text: str, decided: Kept) -> None:
        with self._lock:
            self._kept[text] = decided, monotonic()
            self._kept.move_to_end(text)
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)

    def _fresh(self, text: str) -> Kept | None:
        with self._lock:
            decided, since = self._kept.get(text, (None, 0.0))
        return decided if monotonic() - since < _FRESH_SECONDS else None


def _is_searched(table: IndexedTable, search: Computed) -> bool:
    condition = condition_of(search.call, column_name(search.of))
    return can_search(table, condition, search.call["analyzer"])


def _with_key(where: str | None, key: Key, can_answer: Callable[[str], bool]) -> str | None:
    """A condition that is TRUE for the rows with any value of a key's column; None if no index
    answers it."""
    column = f"{identifier_sql(key.column)} IS NOT NULL"
    if not can_answer(column):
        return None
    return column if where is None else f"({where}) AND ({column})"
