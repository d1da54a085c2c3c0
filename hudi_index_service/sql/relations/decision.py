"""The decision on each Hudi relation in a query."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from hudi_index_service.index.metadata.definitions import IndexDefinition
from hudi_index_service.index.metadata.requirements import names_by_use
from hudi_index_service.optimizer.plan import QueryPlan
from hudi_index_service.read.statistics import ReadStatistics
from hudi_index_service.sql.relations.observed import Observed
from hudi_index_service.wording import counted


@dataclass(frozen=True, slots=True)
class RelationUse:
    """How one occurrence of a Hudi table in a query is read.

    Attributes:
        table: The table's base path.
        by_index: Whether the service reads it; otherwise Spark's own reader does.
        reason: The reason, in one sentence without full stop.
        where: The condition for the service: all or some of the query's conditions on the table;
            None if none of them can be translated.
        columns: The columns read, if the service reads it.
        instant: The instant at which it is read; "" if not determined.
        in_tasks: Whether Spark tasks read the rows when the query runs; otherwise the driver does.
        rows: Number of rows, if the driver has read them.
        read: Statistics of the driver's read; None if Spark or its tasks read.
        expected: Upper bound of matching rows in slices with an entry; None if not determined.
        indexes: The names of the indexes that are used, or would be.
        plan: How its slices are read, or would be; None without a plan. Only for EXPLAIN, like the
            next attribute.
        observed: Measured cost of reading it, for EXPLAIN ANALYZE, if the service reads it.
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


def with_others(reason: str, other_slices: int) -> str:
    """A reason, with the number of slices without an index."""
    return f"{reason}; {counted(other_slices, 'slice')} read without it" if other_slices else reason


def serving_indexes(indexes: Iterable[IndexDefinition], plan: QueryPlan) -> tuple[str, ...]:
    """The names of the table's indexes on a column of the query that serve any of its slices."""
    columns = set() if plan.predicate is None else plan.predicate.columns()
    serving = {entry.index_type.name for each in plan.slices for entry in each.entries}
    return tuple(
        each.name
        for each in indexes
        if serving.intersection(each.index_types) and not columns.isdisjoint(names_by_use(each)[0])
    )
