"""The rows of a relation that an index finds: whether that pays, and who reads them.

With conditions on values that are known when the query runs, such as that of a scalar sub-query, it
is decided then.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession

from hudi_index_service.errors import ColumnNotFound, PredicateInvalid, PredicateUnsupported
from hudi_index_service.index.metadata.definitions import IndexDefinition
from hudi_index_service.optimizer.cost.constants import DRIVER_SLICES
from hudi_index_service.optimizer.cost.in_spark import SessionReaders
from hudi_index_service.optimizer.plan import Access, SlicePlan
from hudi_index_service.predicate.values import identifier_sql
from hudi_index_service.read.execution import Execution
from hudi_index_service.read.slices.index_estimates import with_index_estimates
from hudi_index_service.read.spark.frames import rows_by_tasks
from hudi_index_service.read.statistics import ReadStatistics, SliceStatistics
from hudi_index_service.sql.rule.best import LARGE
from hudi_index_service.sql.rule.columns import Columns, as_spark_sees
from hudi_index_service.sql.rule.condition import Translation
from hudi_index_service.sql.rule.full_text import FullTextCalls
from hudi_index_service.sql.rule.request import Key, Request, pinned, searches
from hudi_index_service.sql.rule.weighing import (
    Candidates,
    LeftToSpark,
    candidates,
    candidates_of_keys,
    serving_indexes,
    too_little_indexed,
    with_others,
)
from hudi_index_service.table import IndexedTable
from hudi_index_service.wording import counted

AWAITED = "awaited"
"""The `op` of conditions with such a value."""


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
        most_bytes: Bytes in memory of rows that are handed to Spark at once.
    """

    run: Execution
    rows: Candidates
    total: int
    where: str
    indexes: tuple[str, ...]
    key: Key | None
    columns: Columns
    most_bytes: int

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
        self,
        session: Any,
        statistics: ReadStatistics,
        observe: Callable[[SliceStatistics], None] | None,
    ) -> pa.Table | DataFrame | LeftToSpark:
        """The rows. Raises what reading raises.

        Args:
            session: The JVM's session, by whose settings tasks read.
            statistics: Receives what the driver reads.
            observe: Receives what a task has read of a slice; None if nobody wants it.
        """
        # As if for the first time: a decision may serve several queries.
        run = replace(self.run, statistics=statistics)
        if self.rows.few:
            table = run.table()
            if table.nbytes <= self.most_bytes:
                return self.columns.table(table)
            if not self.rows.by_tasks:
                return LeftToSpark(LARGE)
        frame = rows_by_tasks(
            in_python(session),
            run.reader,
            run.plan,
            None,
            history=run.history,
            observe=observe,
        )
        return self.columns.frame(frame)


@dataclass(frozen=True, slots=True)
class Planned:
    """A relation that an index can read, whatever that costs.

    Attributes:
        run: Reads the rows.
        where: The condition for the service.
        key: Restricts the rows further, once the query runs; None if nothing does.
        columns: The columns of the result.
    """

    run: Execution
    where: str
    key: Key | None
    columns: Columns


def planned(table: IndexedTable, request: Request, calls: FullTextCalls) -> Planned | LeftToSpark:
    """How an index reads a relation of an indexed table.

    Raises:
        IndexServiceError, OSError: the table cannot be planned.
    """
    try:
        # As if the table supported every condition: to bind them together tells if it does.
        return _planned(table, request, calls, Translation.of_all(table))
    except (ColumnNotFound, PredicateInvalid, PredicateUnsupported):
        return _planned(table, request, calls, Translation.on(table))


def _planned(
    table: IndexedTable, request: Request, calls: FullTextCalls, translation: Translation
) -> Planned | LeftToSpark:
    where = translation.where_text(request.where)
    if request.key is not None:
        where = _with_key(where, request.key, translation.can_answer)
    if where is None:
        return LeftToSpark("no index answers a condition on it")
    met = searches([each for each in request.where if translation.finds(each)])
    columns = Columns.of(request, met, calls)
    run = pinned(table, request, where, [*request.names, *columns.texts])
    if isinstance(run, str):
        return LeftToSpark(run, where)
    read = list(run.reader.query.output)
    wanted = len(request.names)
    output = as_spark_sees(read[:wanted], request.types)
    if output is None:
        return LeftToSpark("Spark sees its columns in other types", where)
    run = run.narrowed(pa.schema([*output, *read[wanted:]]))
    return Planned(run, where, request.key, columns)


def by_index(
    indexes: Iterable[IndexDefinition], by: Planned, readers: SessionReaders
) -> ByIndex | LeftToSpark:
    """Whether it pays that an index reads a relation.

    Args:
        indexes: Those of the table.
        readers: What can read for the session.

    Raises:
        IndexServiceError, OSError: the index cannot be looked up.
    """
    run = by.run
    rows = _candidates(run, by.key, readers)
    if isinstance(rows, LeftToSpark):
        return replace(rows, where=by.where, instant=run.plan.snapshot.instant)
    served = [each.for_counting() for each in run.plan.slices]
    total = sum(each.total for each in served if each.access is Access.INDEX)
    serving = serving_indexes(indexes, run.plan)
    return ByIndex(run, rows, total, by.where, serving, by.key, by.columns, readers.most_bytes)


def _candidates(
    run: Execution, key: Key | None, readers: SessionReaders
) -> Candidates | LeftToSpark:
    if key is not None:
        return candidates_of_keys(run, readers, key.column, key.most)
    rows = candidates(run, readers)
    if isinstance(rows, LeftToSpark) or rows.exact:
        return rows
    if len(run.plan.slices) <= DRIVER_SLICES:
        # Spark plans its joins by the number of rows, and reading opens the entries anyway.
        return rows.with_estimates(with_index_estimates(run.plan, run.reader))
    return rows


def _with_key(where: str | None, key: Key, can_answer: Callable[[str], bool]) -> str | None:
    """A condition that is TRUE for the rows with any value of a key's column; None if no index
    answers it."""
    column = f"{identifier_sql(key.column)} IS NOT NULL"
    if not can_answer(column):
        return None
    return column if where is None else f"({where}) AND ({column})"


@dataclass(frozen=True, slots=True)
class Undecided:
    """A relation whose reader is decided when the query runs.

    Attributes:
        reason: Why, in one sentence without full stop.
        instant: The instant at which it would be read.
        indexes: The names of the indexes that may serve.
    """

    reason: str
    instant: str
    indexes: tuple[str, ...]


def undecided(table: IndexedTable, request: Request) -> Undecided | None:
    """Whether an index may serve once the awaited values are known; None if it cannot.

    Raises:
        IndexServiceError, OSError: the table cannot be planned.
    """
    if request.key is not None or request.counts is not None or request.best is not None:
        return None
    can_answer = Translation.on(table).can_answer
    columns = [
        ".".join(map(identifier_sql, each["column"]))
        for each in request.where
        if each["op"] == AWAITED
    ]
    awaited = [each for each in dict.fromkeys(columns) if can_answer(f"{each} IS NOT NULL")]
    if not awaited:
        return None
    where = " AND ".join(f"{each} IS NOT NULL" for each in awaited)
    run = pinned(table, request, where, request.names)
    if isinstance(run, str) or too_little_indexed(run.plan) is not None:
        return None
    # Reading all rows that are not NULL may cost more than a scan; few of them will not.
    looked_up = replace(run.plan, slices=tuple(map(SlicePlan.for_counting, run.plan.slices)))
    indexes = serving_indexes(table.indexes(), looked_up)
    reason = f"the value is not known yet that {', '.join(awaited)} is compared with"
    return Undecided(reason, run.plan.snapshot.instant, indexes) if indexes else None


def in_python(session: Any) -> SparkSession:
    """The same session for PySpark."""
    return SparkSession(SparkContext.getOrCreate(), session)


def session_readers(spark: SparkSession) -> SessionReaders:
    """What can read for a session of this process."""
    return SessionReaders(int(spark.sparkContext.defaultParallelism))
