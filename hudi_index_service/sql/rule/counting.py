"""Counts rows of a relation by the index alone: in total, for each value of a text column, or only
up to a limit, as tests of existence do."""

from dataclasses import dataclass, replace
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
from hudi_index_service.sql.rule.request import Condition, Counts, Request, pinned
from hudi_index_service.sql.rule.weighing import (
    LeftToSpark,
    scanned_alone,
    serving_indexes,
    with_others,
)
from hudi_index_service.table import IndexedTable

_NOT_ALONE = LeftToSpark("the index does not count its rows alone")


@dataclass(frozen=True, slots=True)
class Counted:
    """A relation whose rows the index counts.

    Attributes:
        counts: What is counted.
        runs: Where text → the query on its rows.
        where: The condition on all rows.
        wheres: That on the rows of each count.
        indexes: The names of the indexes that serve.
    """

    counts: Counts
    runs: dict[str, Execution]
    where: str
    wheres: list[str]
    indexes: tuple[str, ...]

    @property
    def run(self) -> Execution:
        """One of the queries."""
        return next(iter(self.runs.values()))

    @property
    def reader(self) -> str:
        """Who reads the numbers."""
        return "driver"

    @property
    def reason(self) -> str:
        """Why, in one sentence without full stop."""
        plan = self.run.plan
        others = sum(map(plan.count, OTHERS))
        return with_others("the index counts its rows", others)

    @property
    def expected(self) -> int:
        """The most rows of the result."""
        if self.counts.most is not None:
            return self.counts.most
        group = self.counts.group
        return 1 if group is None else sum(most_values(each, group) for each in self._served())

    @property
    def total(self) -> int:
        """The number of rows in the slices that an index serves."""
        return sum(each.total for each in self._served())

    def read(self, session: Any, statistics: ReadStatistics, *_: Any) -> pa.Table | LeftToSpark:
        """The result. Raises what counting raises.

        Args:
            statistics: Receives what the first query reads.
        """
        runs = {
            where: replace(run, statistics=ReadStatistics() if number else statistics)
            for number, (where, run) in enumerate(self.runs.items())
        }
        group, most = self.counts.group, self.counts.most
        if most is not None:
            [run] = runs.values()
            rows = int(run.exists()) if most == 1 else run.count()
            if self.counts.all and rows > most:
                return LeftToSpark("the index only counts its rows, and they are many")
            return self._table([integers_array(range(min(rows, most)), pa.int64())])
        if group is None:
            totals = {where: run.count() for where, run in runs.items()}
            return self._table([integers_array([totals[each]], pa.int64()) for each in self.wheres])
        by_value = {where: run.value_counts(group) for where, run in runs.items()}
        values = list(by_value[self.where])
        numbers = [[by_value[where][each] for each in values] for where in self.wheres]
        return self._table(
            [utf8_array(values), *(integers_array(each, pa.int64()) for each in numbers)]
        )

    def _table(self, columns: list[pa.Array]) -> pa.Table:
        return pa.Table.from_arrays(columns, names=self.counts.names)

    def _served(self) -> list[SlicePlan]:
        slices = (each.for_counting() for each in self.run.plan.slices)
        return [each for each in slices if each.access is Access.INDEX]


def by_counting(table: IndexedTable, request: Request, counts: Counts) -> Counted | LeftToSpark:
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
        return LeftToSpark("no index answers all conditions exactly")
    runs = {}
    for each in dict.fromkeys(wheres if counts.group is None else [where, *wheres]):
        run = _counting(table, request, each, counts.group)
        if isinstance(run, LeftToSpark):
            return run
        runs[each] = run
    plan = next(iter(runs.values())).plan
    return Counted(counts, runs, where, wheres, serving_indexes(table.indexes(), plan))


def _counting(
    table: IndexedTable, request: Request, where: str, group: str | None
) -> Execution | LeftToSpark:
    run = pinned(table, request, where, [] if group is None else [group])
    if isinstance(run, str):
        return LeftToSpark(run)
    query = run.reader.query
    if group is not None and query.output.types != [pa.string()]:
        return _NOT_ALONE
    known = {each.name: each for each in query.table if each.name in request.names}
    if known.keys() != set(request.names) or (
        as_spark_sees(pa.schema([known[each] for each in request.names]), request.types) is None
    ):
        return LeftToSpark("Spark sees its columns in other types")
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
