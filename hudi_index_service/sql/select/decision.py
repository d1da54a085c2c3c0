"""What became of the Hudi relations in a query."""

from dataclasses import dataclass


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
    """

    table: str
    by_index: bool
    reason: str
    where: str | None = None
    columns: tuple[str, ...] = ()
    instant: str = ""
    in_tasks: bool = False
    rows: int | None = None
