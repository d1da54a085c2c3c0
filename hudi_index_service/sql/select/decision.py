"""What became of the Hudi relations in a query."""

from dataclasses import dataclass, field

from hudi_index_service.indexed_table import IndexedTable
from hudi_index_service.optimizer.plan import QueryPlan
from hudi_index_service.read.statistics import ReadStatistics
from hudi_index_service.sql.select.observed import Observed


@dataclass(frozen=True, slots=True)
class RelationUse:
    """How one occurrence of a Hudi table in a query is read.

    Attributes:
        table: The table's base path.
        by_index: Whether the service reads it; else Spark does, as it would anyway.
        reason: Why, in one sentence without full stop.
        where: What the service was asked for: the query's own conditions on the table, or less of
            them; None if none of them could be asked.
        columns: The columns that were read, if the service reads it.
        instant: The instant that it is read at; "" where that was not looked up.
        in_tasks: Whether Spark tasks read the rows, when they are asked for; else the driver has
            read them.
        rows: How many rows there are, if the driver has read them.
        read: What the driver read for it; None where Spark, or its tasks, read.
        expected: At most so many rows match in slices with an entry; None where that was not asked.
        indexes: The names of the indexes that serve, or would.
        plan: How its slices are read, or would be; None where it came to no plan. This and what
            follows is there for EXPLAIN alone.
        observed: What reading it took, for EXPLAIN ANALYZE, if the service reads it.
    """

    table: str
    by_index: bool
    reason: str
    where: str | None = None
    columns: tuple[str, ...] = ()
    instant: str = ""
    in_tasks: bool = False
    rows: int | None = None
    read: ReadStatistics | None = field(default=None, repr=False, compare=False)
    expected: int | None = None
    indexes: tuple[str, ...] = ()
    plan: QueryPlan | None = field(default=None, repr=False, compare=False)
    observed: Observed | None = field(default=None, repr=False, compare=False)


def with_others(served: str, others: int) -> str:
    """A reason, and how many slices no index serves."""
    return f"{served}, and {others} slices are read without" if others else served


def serving_indexes(table: IndexedTable, plan: QueryPlan) -> tuple[str, ...]:
    """The names of the indexes with a column of the query's that serve some slice of it."""
    asked = set() if plan.predicate is None else plan.predicate.columns()
    serving = {entry.index_type.name for each in plan.slices for entry in each.entries}
    return tuple(
        each.name
        for each in table.indexes()
        if serving.intersection(each.index_types)
        and not asked.isdisjoint(column.name for column in each.columns)
    )
