"""A table as a LazyFrame of Polars. Polars hands the columns and the condition of a query to the
table's own source; the index finds the rows, and Polars' own expression filters them.
"""

from collections.abc import Callable, Iterator
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hudi_index_service.engines.implied import UNKNOWN
from hudi_index_service.engines.rows import Rows
from hudi_index_service.read.explanation import Explanation
from hudi_index_service.read.planner import QueryType, UseIndex
from hudi_index_service.read.scan import require_package
from hudi_index_service.table import IndexedTable

if TYPE_CHECKING:
    import polars as pl


def scan_hudi(
    table: IndexedTable | str | Path,
    *,
    as_of: str | None = None,
    query_type: QueryType = "snapshot",
    use_index: UseIndex = "auto",
) -> "pl.LazyFrame":
    """The table as a LazyFrame. Each run of a query reads the latest snapshot, only the columns
    that the query needs, and by the index only the rows that its filter can let through. The rows
    are those of Polars' own filter: what the index cannot use, Polars evaluates.

    Needs the extra ``polars``.

    Args:
        table: The open table, or its location.
        as_of, query_type, use_index: See `IndexedTable.scan`. With `as_of`, every run reads the
            same rows, and Polars reads once what a query uses twice.

    Raises:
        IndexServiceError: TableNotFound, NotAHudiTable, ConfigInvalid: Polars is not installed or
            too old; see `IndexedTable.scan`. What fails in a run is raised by Polars.
    """
    return _frame(Rows.of(table, as_of, query_type, use_index))


def explain_hudi(
    table: IndexedTable | str | Path,
    query: "Callable[[pl.LazyFrame], pl.LazyFrame]",
    *,
    as_of: str | None = None,
    query_type: QueryType = "snapshot",
    use_index: UseIndex = "auto",
) -> list[Explanation]:
    """How a query of Polars reads the table: the columns and the condition that Polars hands over,
    and what the index makes of them. No row is read: the query is run on an empty table.

    Args:
        query: Makes the query from the LazyFrame of the table.
        table, as_of, query_type, use_index: See `scan_hudi`.

    Returns:
        An explanation for each time that the query reads the table. Its `where` is what is handed
        to the index; Polars filters by the whole condition in any case.

    Raises:
        IndexServiceError: see `scan_hudi`.
    """
    explanations: list[Explanation] = []
    rows = Rows.of(table, as_of, query_type, use_index)
    query(_frame(rows, explanations.append)).collect()
    return explanations


def _frame(rows: Rows, explained: Callable[[Explanation], None] | None = None) -> "pl.LazyFrame":
    """The LazyFrame; if `explained` is given, its source reads nothing and says how it would."""
    require_package("polars")
    import polars as pl
    from polars.io.plugins import register_io_source

    from hudi_index_service.engines.polars_condition import implied

    empty = pl.DataFrame(rows.schema.empty_table())

    def source(
        with_columns: list[str] | None,
        predicate: "pl.Expr | None",
        n_rows: int | None,
        batch_size: int | None,
    ) -> "Iterator[pl.DataFrame]":
        wanted = rows.schema.names if with_columns is None else with_columns
        needed = {*wanted, *(() if predicate is None else predicate.meta.root_names())}
        columns = [name for name in rows.schema.names if name in needed]
        # Polars takes the first rows, then those that pass: `head(n).filter(…)` comes as one call,
        # while `filter(…).head(n)` comes without a number.
        condition = UNKNOWN
        if predicate is not None and n_rows is None:
            condition = implied(predicate, rows.schema)
        if explained is not None:
            explained(rows.explain(columns, condition.predicate))
            yield empty.select(wanted)
            return
        scan = rows.scan(columns, condition.predicate, n_rows)
        for table in rows.tables(scan):
            frame = pl.DataFrame(pl.from_arrow(table, rechunk=False))
            yield (frame if predicate is None else frame.filter(predicate)).select(wanted)

    known = signature(register_io_source).parameters
    options: dict[str, Any] = {
        "is_pure": rows.are_pinned,
        "explain_name": "HUDI",
        "explain_detail": rows.table.uri,
    }
    supported = {name: value for name, value in options.items() if name in known}
    return register_io_source(source, schema=empty.schema, **supported)
