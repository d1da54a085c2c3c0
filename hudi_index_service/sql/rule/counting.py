"""Counts rows of a relation by the index alone: in total, for each value of a text column, or only
up to a limit, as tests of existence do."""

from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa

from hudi_index_service.arrow import integers_array, utf8_array
from hudi_index_service.columns import column_path
from hudi_index_service.optimizer.plan import OTHERS, Access, SlicePlan
from hudi_index_service.predicate.values import identifier_sql
from hudi_index_service.read.execution import Execution
from hudi_index_service.read.slices.counting import most_values
from hudi_index_service.read.statistics import ReadStatistics
from hudi_index_service.sql.rule.columns import as_spark_sees
from hudi_index_service.sql.rule.condition import Translation
from hudi_index_service.sql.rule.decision import Decision, serving_indexes, with_others
from hudi_index_service.sql.rule.request import Condition, Counts, Request, pinned
from hudi_index_service.sql.rule.weighing import scanned_alone
from hudi_index_service.table import IndexedTable

_NOT_ALONE = "the index does not count its rows alone"


def by_counting(table: IndexedTable, request: Request, counts: Counts) -> Decision:
    """Whether the index counts rows of an indexed table, except for a few bytes to scan. Every
    condition has to be answered exactly, since nothing tests the rows again.

    Raises:
        IndexServiceError, OSError: the table cannot be planned.
    """
    translation = Translation.on(table)

    def where_text(conditions: list[Condition]) -> str | None:
        if not conditions:
            return every_row(table, counts.group)
        return translation.exact_where_text(conditions)

    where = where_text(request.where)
    of_counts = [where_text([*request.where, *each]) for each in counts.of]
    wheres = [each for each in of_counts if each is not None]
    if where is None or len(wheres) < len(of_counts):
        return Decision.spark("no index answers all conditions exactly")
    runs = {}
    for each in dict.fromkeys(wheres if counts.group is None else [where, *wheres]):
        run = _counting(table, request, each, counts.group)
        if isinstance(run, str):
            return Decision.spark(run)
        runs[each] = run
    run = next(iter(runs.values()))
    slices = (each.for_counting() for each in run.plan.slices)
    served = [each for each in slices if each.access is Access.INDEX]
    others = sum(map(run.plan.count, OTHERS))
    return Decision(
        "driver",
        with_others("the index counts its rows", others),
        _most_rows(counts, served),
        sum(each.total for each in served),
        serving_indexes(table.indexes(), run.plan),
        where,
        run.plan.snapshot.instant,
        run,
        partial(_read, counts, runs, where, wheres),
    )


def _most_rows(counts: Counts, served: list[SlicePlan]) -> int:
    """The most rows of the result."""
    if counts.most is not None:
        return counts.most
    group = counts.group
    return 1 if group is None else sum(most_values(each, group) for each in served)


def _read(
    counts: Counts,
    planned: dict[str, Execution],
    where: str,
    wheres: list[str],
    session: Any,
    statistics: ReadStatistics,
    *_: Any,
) -> pa.Table | str:
    """The numbers. Raises what counting raises.

    Args:
        planned: Where text → the query on its rows.
        where: The condition on all rows.
        wheres: That on the rows of each count.
        statistics: Receives what the first query reads.
    """
    runs = {
        each: replace(run, statistics=ReadStatistics() if number else statistics)
        for number, (each, run) in enumerate(planned.items())
    }

    def table(*columns: pa.Array) -> pa.Table:
        return pa.Table.from_arrays(columns, names=counts.names)

    group, most = counts.group, counts.most
    if most is not None:
        [run] = runs.values()
        rows = int(run.exists()) if most == 1 else run.count()
        if counts.all and rows > most:
            return "the index only counts its rows, and they are many"
        return table(integers_array(range(min(rows, most)), pa.int64()))
    if group is None:
        totals = {each: run.count() for each, run in runs.items()}
        return table(*(integers_array([totals[each]], pa.int64()) for each in wheres))
    by_value = {each: run.value_counts(group) for each, run in runs.items()}
    values = list(by_value[where])
    numbers = [[by_value[each][value] for value in values] for each in wheres]
    return table(utf8_array(values), *(integers_array(each, pa.int64()) for each in numbers))


def _counting(
    table: IndexedTable, request: Request, where: str, group: str | None
) -> Execution | str:
    run = pinned(table, request, where, [] if group is None else [group])
    if isinstance(run, str):
        return run
    query = run.reader.query
    if group is not None and query.output.types != [pa.string()]:
        return _NOT_ALONE
    known = {each.name: each for each in query.table if each.name in request.names}
    if known.keys() != set(request.names) or (
        as_spark_sees(pa.schema([known[each] for each in request.names]), request.types) is None
    ):
        return "Spark sees its columns in other types"
    return run if scanned_alone(run, group) else _NOT_ALONE


def every_row(table: IndexedTable, group: str | None) -> str | None:
    """A condition that is TRUE for every row by the index alone; None if no index has a column for
    it.

    Args:
        group: The column whose values are counted apart, in any case; only an index on it serves.
    """
    columns = [column.name for index in table.indexes() for column in index.columns]
    if group is not None:
        columns = [each for each in columns if each.lower() == group.lower()]
    if not columns:
        return None
    column = ".".join(identifier_sql(part) for part in column_path(columns[0]))
    return f"({column} IS NULL) OR ({column} IS NOT NULL)"
