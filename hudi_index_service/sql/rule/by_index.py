"""The rows of a relation that an index finds, or the best rows of a search: whether that pays, and
who reads them.

With conditions on values that are known when the query runs, such as that of a scalar sub-query, it
is decided then.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark import SparkContext
from pyspark.sql import SparkSession

from hudi_index_service.columns import column_name
from hudi_index_service.optimizer.cost.constants import DRIVER_BYTES, DRIVER_SLICES, DRIVER_VALUES
from hudi_index_service.optimizer.cost.in_spark import SessionReaders
from hudi_index_service.optimizer.plan import Access, SlicePlan
from hudi_index_service.predicate.expression import MatchMode, Predicate, conjunction
from hudi_index_service.predicate.values import identifier_sql
from hudi_index_service.read.execution import Execution
from hudi_index_service.read.slices.index_estimates import with_index_estimates
from hudi_index_service.read.spark.frames import rows_by_tasks
from hudi_index_service.read.statistics import ReadStatistics, SliceStatistics
from hudi_index_service.sql.rule.columns import Columns, as_spark_sees
from hudi_index_service.sql.rule.condition import NoCondition, Translation, bound
from hudi_index_service.sql.rule.decision import Decision, serving_indexes, with_others
from hudi_index_service.sql.rule.full_text import WORDS, FullTextCalls
from hudi_index_service.sql.rule.request import Best, Condition, Key, Request, pinned, searches
from hudi_index_service.sql.rule.weighing import (
    Candidates,
    candidates,
    candidates_of_keys,
    too_little_indexed,
)
from hudi_index_service.table import IndexedTable
from hudi_index_service.wording import counted

if TYPE_CHECKING:
    from hudi_index_service.sql.rule.decision import RowsRead

AWAITED = "awaited"
"""The `op` of conditions with such a value."""

_LARGE = "the rows that the index finds are large, and Spark scans them faster"


def by_index(
    table: IndexedTable, request: Request, calls: FullTextCalls, readers: SessionReaders
) -> Decision:
    """Whether it pays that an index reads a relation of an indexed table.

    Raises:
        IndexServiceError, OSError: the table cannot be planned, or the index looked up.
    """
    try:
        planned = _planned(table, request, calls)
    except NoCondition as error:
        return Decision.spark(error.message)
    if isinstance(planned, Decision):
        return planned
    run, where, columns = planned
    rows = _candidates(run, request.key, readers)
    if isinstance(rows, str):
        return Decision.spark(rows, where, run)
    served = [each.for_counting() for each in run.plan.slices]
    return Decision(
        "driver" if rows.few else "tasks",
        _reason(rows, request.key),
        rows.rows,
        sum(each.total for each in served if each.access is Access.INDEX),
        serving_indexes(table.indexes(), run.plan),
        where,
        run.plan.snapshot.instant,
        run,
        partial(_read, run, columns, rows, readers.tasks),
    )


def _planned(
    table: IndexedTable, request: Request, calls: FullTextCalls
) -> tuple[Execution, str, Columns] | Decision:
    """How an index reads the relation, whatever that costs: the query, the condition for the
    service, and the columns of the result."""
    met = searches(request.where)
    if met:
        translation = Translation.on(table)
        met = searches([each for each in request.where if translation.finds(each)])
    columns = Columns(request, met, calls)
    where = bound(lambda translation: _condition(translation, request))
    run = pinned(table, request, where, [*request.names, *columns.texts])
    if isinstance(run, str):
        return Decision.spark(run, str(_condition(Translation.on(table), request) or ""))
    text = str(run.reader.query.predicate)
    read = list(run.reader.query.output)
    wanted = len(request.names)
    output = as_spark_sees(read[:wanted], request.types)
    if output is None:
        return Decision.spark("Spark sees its columns in other types", text)
    return run.narrowed(pa.schema([*output, *read[wanted:]])), text, columns


def _condition(translation: Translation, request: Request) -> Predicate | None:
    """That of the rows wanted, with any value of the key's column."""
    found = translation.implied(request.where)
    if request.key is None:
        return found
    has_key = translation.exact([_is_not_null([request.key.column])])
    if found is None or has_key is None:
        return has_key
    return conjunction((found, has_key))


def _is_not_null(column: list[str]) -> Condition:
    return {"op": "is not null", "column": column}


def _reason(rows: Candidates, key: Key | None) -> str:
    number = counted(rows.rows, "row")
    if key is not None:
        return f"the index finds at most {number} by {counted(key.most, 'key')} of a join"
    found = number if rows.exact else f"at most {number}"
    return with_others(f"the index finds {found}", rows.scanned)


def _read(
    planned: Execution,
    columns: Columns,
    rows: Candidates,
    tasks: bool,
    session: Any,
    statistics: ReadStatistics,
    observe: Callable[[SliceStatistics], None],
) -> "RowsRead":
    """The rows of a relation, see `ReadRows`. Raises what reading raises.

    Args:
        tasks: Whether Spark's tasks can read.
    """
    # As if for the first time: a decision may serve several queries.
    run = replace(planned, statistics=statistics)
    if not tasks:
        return _parts(run, columns, rows.rows)
    if rows.few:
        table = run.table()
        if table.nbytes <= DRIVER_BYTES:
            return columns.table(table)
        if not rows.by_tasks:
            return _LARGE
    return columns.frame(rows_by_tasks(in_python(session), run, observe=observe))


def _parts(run: Execution, columns: Columns, rows: int) -> Iterator[pa.Table]:
    """The rows in parts of some `DRIVER_BYTES`, which are read as they are taken. Raises what
    reading raises.

    Args:
        rows: So many are expected.
    """
    if rows * max(1, len(run.schema)) <= DRIVER_VALUES:
        yield columns.table(run.table())  # of several slices at once
        return
    part: list[pa.RecordBatch] = []
    for batch in run.batches():
        part.append(batch)
        if sum(each.nbytes for each in part) >= DRIVER_BYTES:
            yield columns.table(pa.Table.from_batches(part))
            part = []
    yield columns.table(pa.Table.from_batches(part, run.schema))


def _candidates(run: Execution, key: Key | None, readers: SessionReaders) -> Candidates | str:
    if key is not None:
        return candidates_of_keys(run, readers, key.column, key.most)
    rows = candidates(run, readers)
    if isinstance(rows, str) or rows.exact:
        return rows
    if len(run.plan.slices) <= DRIVER_SLICES:
        # Spark plans its joins by the number of rows, and reading opens the entries anyway.
        return rows.with_estimates(with_index_estimates(run.plan, run.reader.pool))
    return rows


def undecided(table: IndexedTable, request: Request) -> Decision | None:
    """The decision to decide when the query runs, since an index may serve once the awaited values
    are known; None if it cannot.

    Raises:
        IndexServiceError, OSError: the table cannot be planned.
    """
    if request.key is not None or request.counts is not None or request.best is not None:
        return None
    translation = Translation.on(table)
    known = [
        condition
        for each in request.where
        if each["op"] == AWAITED
        and translation.exact([condition := _is_not_null(each["column"])]) is not None
    ]
    if not known:
        return None
    run = pinned(table, request, bound(lambda translation: translation.exact(known)), request.names)
    if isinstance(run, str) or too_little_indexed(run.plan) is not None:
        return None
    # Reading all rows that are not NULL may cost more than a scan; few of them will not.
    looked_up = replace(run.plan, slices=tuple(map(SlicePlan.for_counting, run.plan.slices)))
    indexes = serving_indexes(table.indexes(), looked_up)
    columns = dict.fromkeys(".".join(map(identifier_sql, each["column"])) for each in known)
    reason = f"the value is not known yet that {', '.join(columns)} is compared with"
    instant = run.plan.snapshot.instant
    return Decision("undecided", reason, indexes=indexes, instant=instant) if indexes else None


def best_rows(
    table: IndexedTable, request: Request, best: Best, calls: FullTextCalls, readers: SessionReaders
) -> Decision:
    """Whether the index finds the best rows of an indexed table, for queries with ORDER BY score()
    DESC LIMIT k.

    Raises:
        IndexServiceError, OSError: the table cannot be planned.
    """
    score = best.score
    met = [
        each
        for each in searches(request.where)
        if each.of == score.of
        and (each.call["function"], each.call["text"]) == (score.call["mode"], score.call["text"])
    ]
    if not met:
        return Decision.spark("rows that the search does not find have a score, too")
    translation = Translation.on(table)
    of_search: Condition = {"op": "search", "call": met[0].call, "column": score.of}
    if not translation.finds(of_search):
        return Decision.spark("no index answers the search")
    other_conditions = [each for each in request.where if each != of_search]
    exact = translation.exact(other_conditions)
    if exact is None:
        return Decision.spark("no index answers all conditions exactly")
    others = str(exact) if other_conditions else None
    columns = Columns(request, met, calls)
    search = bound(lambda translation: translation.exact([of_search]))
    run = pinned(table, request, search, [*request.names, *columns.texts])
    if isinstance(run, str):
        return Decision.spark(run)
    output = pa.schema(list(run.reader.query.output)[: len(request.names)])
    if as_spark_sees(output, request.types) != output:
        return Decision.spark("Spark sees its columns in other types")
    if isinstance(reason := candidates(run, readers), str):
        return Decision.spark(reason)
    where = str(run.reader.query.predicate)
    return Decision(
        "driver",
        f"the index finds the {counted(best.rows, 'best row')}",
        best.rows,
        best.rows,  # they are no share of the rows that the index finds
        serving_indexes(table.indexes(), run.plan),
        where if others is None else f"({where}) AND ({others})",
        run.plan.snapshot.instant,
        run,
        partial(_read_best, table, run, best, others, columns),
    )


def _read_best(
    table: IndexedTable, run: Execution, best: Best, others: str | None, columns: Columns, *_: Any
) -> pa.Table | str:
    """The best rows of those that match the other conditions, too. Raises what
    `IndexedTable.search` raises."""
    score, names = best.score, list(run.reader.query.output.names)
    rows = table.search(
        column_name(score.of),
        score.call["text"],
        k=best.rows,
        where=others,
        columns=names,
        words=WORDS[MatchMode(score.call["mode"])],
        as_of=run.plan.snapshot.instant,
        query_type=score.call["query_type"],
    )
    if rows.nbytes > DRIVER_BYTES:
        return _LARGE
    known = [(score.call, rows.column(len(names)))]
    return columns.table(rows.select(range(len(names))), known)


def in_python(session: Any) -> SparkSession:
    """The same session for PySpark."""
    return SparkSession(SparkContext.getOrCreate(), session)


def session_readers(spark: SparkSession) -> SessionReaders:
    """What can read for a session of this process."""
    return SessionReaders(int(spark.sparkContext.defaultParallelism))
