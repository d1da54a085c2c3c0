"""A table with an index, in one call: for tests that are not about its definition or its build."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hudi_index_service import Column, IndexedTable, open_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hudi_index_service.config import Settings
    from tests.golden.table import GoldenTable

GoldenIndex = Callable[..., Path]
"""Makes a golden table with an index: the type of the fixture `golden_index`, whose arguments are
the golden table's name, and those of `golden_with_index` after the folder."""

OwnTable = Callable[..., IndexedTable]
"""Opens a copy of it: the type of the fixture `own_table`."""


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


def covered(table: Path | str, name: str | None = None) -> int:
    """How many base files of the current snapshot an index has entries for: the one of this name,
    or the table's only one."""
    with open_table(table) as opened:
        (number,) = (
            each.covered for each in opened.status() if name is None or each.definition.name == name
        )
    return number


def golden_with_index(
    table: "GoldenTable",
    folder: Path,
    columns: Sequence[str | Column] = (),
    *,
    name: str = "i",
    step: str | None = None,
    defined: str | None = None,
    build: bool = True,
    **options: Any,
) -> Path:
    """Puts a golden table into a new folder, with an index.

    Args:
        columns: The index's columns; without any there is no index.
        name: The index's name.
        step: The step after which the table is left, by default the last one.
        defined: The step after which the index is defined, by default the same.
        build: Whether all base files are then indexed.
        options: Other options of `create_index`.

    Returns:
        The folder.
    """
    with open_table(table.put(folder, defined or step)) as opened:
        if columns:
            opened.create_index(name, columns, **options)
        table.put(folder, step)
        if columns and build:
            opened.build(strategy="all").raise_for_failures()
    return folder
