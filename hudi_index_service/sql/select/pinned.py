"""Queries on the very snapshot that Spark has looked up for a relation: all relations of a query
agree then, whoever reads them."""

from hudi_index_service.indexed_table import IndexedTable
from hudi_index_service.read.execution import Execution
from hudi_index_service.sql.select.relation import HudiRelation


def pinned(
    table: IndexedTable, relation: HudiRelation, where: str, columns: list[str]
) -> Execution | str:
    """The query on the very snapshot that Spark's own reader would read; or why that is not to be
    had."""
    if relation.as_of is not None:
        return table.scan(
            where, columns=columns, as_of=relation.as_of, query_type=relation.query_type
        ).planned()
    seen = relation.instants
    if not seen:
        return "the table has no commit"
    newest = max(seen)
    run = table.scan(where, columns=columns, query_type=relation.query_type).planned()
    # Looked up after the plan was made: what the plan has seen lies between the two.
    present = {each.requested for each in table.hudi_table.completed_instants()}
    if present == seen:
        return run
    if {each for each in present if each <= newest} != seen:
        return "Spark has read an older timeline of the table"
    return table.scan(
        where, columns=columns, as_of=newest, query_type=relation.query_type
    ).planned()
