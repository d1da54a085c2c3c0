"""Who reads a relation, and how."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from hudi_index_service.index.metadata.definitions import IndexDefinition
from hudi_index_service.index.metadata.requirements import names_by_use
from hudi_index_service.optimizer.plan import QueryPlan
from hudi_index_service.read.execution import Execution
from hudi_index_service.read.statistics import ReadStatistics, SliceStatistics
from hudi_index_service.wording import counted

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    RowsRead: TypeAlias = pa.Table | DataFrame | Iterator[pa.Table] | str
    """The rows of a relation: a table of few; a DataFrame whose tasks read many; for sessions whose
    tasks cannot read, parts, at least one, which are read as they are taken; or the reason why
    Spark has to scan."""

    ReadRows = Callable[[Any, ReadStatistics, Callable[[SliceStatistics], None]], RowsRead]
    """Reads the rows of a relation. The arguments: the JVM's session, by whose settings tasks read;
    what receives the statistics of the driver's read; and what receives those of each slice that a
    task has read."""


@dataclass(frozen=True, slots=True)
class Decision:
    """Who reads a relation.

    Attributes:
        reader: ``driver``, ``tasks``, ``spark`` for Spark's own reader, or ``undecided`` until the
            query runs.
        reason: Why, in one sentence without full stop.
        rows: The most rows that the index finds; 0 if Spark reads.
        total: The number of rows in the slices that an index serves.
        indexes: The names of the indexes that serve, or may.
        where: The condition that the index answers, or could; "" if it could answer none.
        instant: That of the snapshot; "" if it was not determined.
        run: How an index reads it, or would; None if none can.
        read: Reads the rows; None if Spark does, or that is not decided.
    """

    reader: str
    reason: str
    rows: int = 0
    total: int = 0
    indexes: tuple[str, ...] = ()
    where: str = ""
    instant: str = ""
    run: Execution | None = None
    read: "ReadRows | None" = None

    @classmethod
    def spark(cls, reason: str, where: str = "", run: Execution | None = None) -> Self:
        """Spark's own reader reads it.

        Args:
            where, run: What the index could have answered, and how.
        """
        instant = "" if run is None else run.plan.snapshot.instant
        return cls("spark", reason, where=where, instant=instant, run=run)

    def message(self) -> dict[str, Any]:
        """The decision as `Decision.java` reads it."""
        names = ("reader", "reason", "rows", "total", "indexes", "where", "instant")
        return {name: getattr(self, name) for name in names}


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
