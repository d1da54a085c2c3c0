"""How the Hudi relations of queries are read: what the rule has written down of each, and what
reading it has cost."""

from collections.abc import Callable
from dataclasses import dataclass, field

from pydantic import TypeAdapter

from hudi_index_service.read.explanation import Explanation
from hudi_index_service.read.statistics import ReadStatistics, SliceStatistics
from hudi_index_service.sql.rule.request import Message, Request


@dataclass(slots=True)
class Observed:
    """Sums the cost of reading one relation, from the driver's own reads or the reports of Spark
    tasks. A task that Spark runs twice counts twice.

    Attributes:
        rows: Rows that matched the relation's conditions.
        pages: Data pages read by row id.
        bytes: Compressed bytes of base files.
        requests: Requests for index data to a remote store.
        milliseconds: Elapsed time for the driver; for tasks the sum over the slices, many of which
            may be read concurrently; None while nothing has been read.
    """

    rows: int = 0
    pages: int = 0
    bytes: int = 0
    requests: int = 0
    milliseconds: float | None = None

    def read_here(self, statistics: ReadStatistics, seconds: float) -> None:
        """Adds what the driver has read."""
        self._add(statistics)
        self.milliseconds = 1000 * seconds

    def read_by_task(self, statistics: SliceStatistics) -> None:
        """Adds a slice that a task has read."""
        self._add(statistics)
        self.milliseconds = (self.milliseconds or 0.0) + statistics.ms

    def _add(self, statistics: SliceStatistics | ReadStatistics) -> None:
        self.rows += statistics.rows_returned
        self.pages += statistics.pages
        self.bytes += statistics.bytes_read
        self.requests += statistics.index_requests


@dataclass(frozen=True, slots=True)
class Read:
    """What the index has read for a relation of a query.

    Attributes:
        where: The condition, with the keys of a join.
        statistics: Of the driver's read; None if tasks read, or a search for the best rows.
        observed: The measured cost, of tasks as far as they have ended.
    """

    where: str
    statistics: ReadStatistics | None
    observed: Observed


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
        explanation: How its slices are read, or would be; None without a plan. Only for EXPLAIN.
        observed: Measured cost of reading it; None if the service has not read it.
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
    explanation: Explanation | None = field(default=None, repr=False, compare=False)
    observed: Observed | None = field(default=None, repr=False, compare=False)


class _Decision(Message):
    reader: str
    where: str | None
    instant: str | None
    rows: int | None
    indexes: list[str]


class Use(Message):
    """A use of a relation as `Use.java` writes it."""

    number: int
    table: str
    reader: str
    reason: str
    decision: _Decision
    rows: int | None = None
    request: Request | None = None
    observed: Observed | None = None

    def relation(self, read_of: Callable[[int], Read | None]) -> RelationUse:
        """How the relation is read.

        Args:
            read_of: What has been read for a use, by its number.
        """
        by_index = self.reader in ("driver", "tasks")
        read = read_of(self.number) if by_index else None
        decision = self.decision
        expects = by_index and decision.reader != "undecided"
        return RelationUse(
            table=self.table,
            by_index=by_index,
            reason=self.reason,
            where=read.where if read is not None else decision.where or None,
            columns=self._columns() if by_index else (),
            instant=decision.instant or "",
            in_tasks=self.reader == "tasks",
            rows=self.rows,
            read=None if read is None else read.statistics,
            expected=decision.rows if expects else None,
            indexes=tuple(decision.indexes),
            observed=self.observed if read is None else read.observed,
        )

    def _columns(self) -> tuple[str, ...]:
        """The columns that are read; conditions alone need none if rows are counted."""
        if self.request is None:
            return ()
        if (counts := self.request.counts) is not None:
            return () if counts.group is None else (counts.group,)
        return tuple(each.name for each in self.request.columns)


USES = TypeAdapter(list[Use])
USES_OF_QUERIES = TypeAdapter(list[list[Use]])
