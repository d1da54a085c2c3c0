"""A condition for queries that count all rows of a table by its index."""

from hudi_index_service.columns import column_path
from hudi_index_service.predicate.values import identifier_sql
from hudi_index_service.table import IndexedTable


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
