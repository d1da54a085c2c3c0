"""A table with an index, in one call: for tests that are not about its definition or its build."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hudi_index_service import Column, IndexedTable, open_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hudi_index_service.config import Settings


def indexed(
    table: "str | Path | IndexedTable",
    columns: Sequence[str | Column],
    *,
    name: str = "i",
    spark: "SparkSession | None" = None,
    settings: "Settings | None" = None,
    storage_options: dict[str, str] | None = None,
    **options: Any,
) -> IndexedTable:
    """Opens a table, defines an index and builds all of it.

    Args:
        table: Its location; or the open table.
        columns: The index's columns.
        name: The index's name.
        spark, settings, storage_options: As for `open_table`.
        options: Other options of `create_index`.

    Returns:
        The open table, which the caller may close.

    Raises:
        BuildFailed: an entry could not be built.
    """
    if not isinstance(table, IndexedTable):
        table = open_table(table, spark=spark, settings=settings, storage_options=storage_options)
    table.create_index(name, columns, **options)
    table.build(strategy="all").raise_for_failures()
    return table
