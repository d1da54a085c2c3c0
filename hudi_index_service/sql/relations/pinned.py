"""Queries on the snapshot that Spark has resolved for a relation, so that all relations of a query
agree whether Spark or the service reads them."""

from collections.abc import Set
from typing import Protocol

from hudi_index_service.read.execution import Execution
from hudi_index_service.read.planner import QueryType
from hudi_index_service.table import IndexedTable


class SparkSnapshot(Protocol):
    """A snapshot as Spark has resolved it."""

    @property
    def query_type(self) -> QueryType: ...

    @property
    def as_of(self) -> str | None: ...

    @property
    def instants(self) -> Set[str]: ...


def pinned(
    table: IndexedTable, relation: SparkSnapshot, where: str, columns: list[str]
) -> Execution | str:
    """The query on the snapshot that Spark's own reader would read, or the reason why that snapshot
    is unavailable."""
    if relation.as_of is not None:
        return table.scan(
            where, columns=columns, as_of=relation.as_of, query_type=relation.query_type
        ).planned()
    spark_instants = relation.instants
    if not spark_instants:
        return "the table has no commit"
    newest = max(spark_instants)
    run = table.scan(where, columns=columns, query_type=relation.query_type).planned()
    # Read after planning, so that the plan's timeline lies between Spark's and this one.
    table_instants = {each.requested for each in table.hudi_table.completed_instants()}
    if table_instants == spark_instants:
        return run
    if {each for each in table_instants if each <= newest} != spark_instants:
        return "Spark has read an older timeline of the table"
    return table.scan(
        where, columns=columns, as_of=newest, query_type=relation.query_type
    ).planned()
