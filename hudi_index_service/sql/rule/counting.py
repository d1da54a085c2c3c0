"""Counts rows of a relation by the index alone: in total, for each value of a text column, or only
up to a limit, as tests of existence do."""

from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa

from hudi_index_service.arrow import integers_array, utf8_array
from hudi_index_service.columns import column_path
from hudi_index_service.optimizer.plan import OTHERS, Access, SlicePlan
from hudi_index_service.read.execution import Execution
from hudi_index_service.read.slices.counting import most_values
from hudi_index_service.read.statistics import ReadStatistics
from hudi_index_service.sql.rule.columns import as_spark_sees
from hudi_index_service.sql.rule.condition import Translation, bound
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
    asked = [request.where, *([*request.where, *each] for each in counts.of)]
    asked = [each or every_row(table, counts.group) for each in asked]
    exact = [translation.exact(each) if each else None for each in asked]
    if None in exact:
        return Decision.spark("no index answers all conditions exactly")
    where, *wheres = map(str, exact)
    conditions = dict(zip([where, *wheres], asked, strict=True))
    runs = {}
    for each in dict.fromkeys(wheres if counts.group is None else [where, *wheres]):
        run = _counting(table, request, conditions[each], counts.group)
        if isinstance(run, str):
            return Decision.spark(run)
        runs[each] = run
    run = next(iter(runs.values()))
    slices = [each.for_counting() for each in run.plan.slices]
    served = [each for each in slices if each.access is Access.INDEX]
    others = sum(each.access in OTHERS for each in slices)
    return Decision(
        "driver",
        with_others("the index counts its rows", others),
        _most_rows(counts, served),
        sum(each.total for each in served),
        serving_indexes(table.indexes(), run.plan.with_slices(tuple(slices), run.plan.left())),
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
    table: IndexedTable, request: Request, conditions: list[Condition], group: str | None
) -> Execution | str:
    where = bound(lambda translation: translation.exact(conditions))
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


def every_row(table: IndexedTable, group: str | None) -> list[Condition]:
    """Conditions that are TRUE for every row by the index alone; empty if no index has a column for
    them.

    Args:
        group: The column whose values are counted apart, in any case; only an index on it serves.
    """
    columns = [column.name for index in table.indexes() for column in index.columns]
    if group is not None:
        columns = [each for each in columns if each.lower() == group.lower()]
    if not columns:
        return []
    column = list(column_path(columns[0]))
    either: list[Condition] = [{"op": op, "column": column} for op in ("is null", "is not null")]
    return [{"op": "or", "of": either}]
