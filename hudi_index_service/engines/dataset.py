"""A table as a dataset of Arrow, which DuckDB takes as a table. DuckDB hands over the columns and a
filter, and drops the filter: so the rows that it gets are filtered exactly.
"""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from packaging.version import Version
from pyarrow.fs import LocalFileSystem

from hudi_index_service.engines.arrow_condition import Filter, read_filter
from hudi_index_service.engines.implied import Implied
from hudi_index_service.engines.rows import Rows
from hudi_index_service.errors import DatasetUnsupported, PredicateUnsupported
from hudi_index_service.read.explanation import Explanation
from hudi_index_service.read.planner import QueryType, UseIndex
from hudi_index_service.table import IndexedTable

Columns: TypeAlias = Sequence[str] | Mapping[str, pc.Expression]


def _refused(what: str) -> Callable[..., NoReturn]:
    """A method that raises DatasetUnsupported."""

    def refuse(*_: object, **__: object) -> NoReturn:
        raise DatasetUnsupported(f"A HudiDataset has no {what}.")

    return refuse


class HudiDataset(ds.FileSystemDataset):  # type: ignore[misc]  # pyarrow has no types
    """The table as a dataset. DuckDB queries it by the name of its variable, or after
    ``connection.register(name, dataset)``; `to_table`, `to_batches`, `head` and `count_rows` serve
    Arrow, pandas and others.

    Each scan reads the latest snapshot, only the columns that are asked for, and by the index only
    rows that the filter can let through. A filter means what it means to who wrote it: DuckDB's
    NaN is above all numbers; to Arrow it differs from all.

    Args:
        table: The open table, or its location.
        as_of, query_type, use_index: See `IndexedTable.scan`.

    Raises:
        IndexServiceError: TableNotFound, NotAHudiTable, ConfigInvalid; see `IndexedTable.scan`.
    """

    def __init__(
        self,
        table: IndexedTable | str | Path,
        *,
        as_of: str | None = None,
        query_type: QueryType = "snapshot",
        use_index: UseIndex = "auto",
    ) -> None:
        self._rows = rows = Rows.of(table, as_of, query_type, use_index)
        # What Arrow reads past the methods below, as a UnionDataset does: a file that is not there.
        format, store = ds.ParquetFileFormat(), LocalFileSystem()
        nothing = format.make_fragment("a HudiDataset cannot be a part of another", store)
        super().__init__([nothing], rows.schema, format, store)
        # DuckDB calls the function of the class, all others that of the instance.
        self.scanner = partial(_scanner, self._rows, False)  # type: ignore[method-assign]

    def __repr__(self) -> str:
        return f"HudiDataset({self._rows.table.uri!r})"

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        return self._rows.schema

    def scanner(
        self, columns: Columns | None = None, filter: pc.Expression | None = None, **options: Any
    ) -> ds.Scanner:
        """A scanner of the rows, to be used once.

        Args:
            columns: Names of columns, or names with expressions; None for all columns.
            filter: Rows for which it is not true are left out.
            options: See `pyarrow.dataset.Dataset.scanner`; those of files have no effect.

        Raises:
            PredicateUnsupported: DuckDB 1 hands over a filter that is not known here.
        """
        return _scanner(self._rows, True, columns, filter, **options)

    def count_rows(self, filter: pc.Expression | None = None, **options: Any) -> int:
        """The number of rows for which a filter is true, from the index alone if it can."""
        condition = _read(self._rows, filter, nan_is_greatest=False)
        if condition.implied.exact:
            return self._rows.scan((), condition.implied.predicate).count()
        return int(self.scanner(columns=[], filter=filter, **options).count_rows())

    def explain(
        self, columns: Sequence[str] | None = None, filter: pc.Expression | None = None
    ) -> Explanation:
        """How such a scan is read, and why. Its `where` is what the filter says to the index."""
        condition = _read(self._rows, filter, nan_is_greatest=False)
        names = self.schema.names if columns is None else columns
        return self._rows.explain(names, condition.implied.predicate)

    # What datasets of files have, and this one has not.
    partition_expression = property(_refused("partition_expression"))
    partitioning = property(_refused("partitioning"))
    files = property(_refused("files"))
    filesystem = property(_refused("filesystem"))
    format = property(_refused("format"))
    replace_schema = _refused("replace_schema")
    get_fragments = _get_fragments = _refused("get_fragments")
    filter = _refused("filter")
    take = _refused("take")
    sort_by = _refused("sort_by")
    join = _refused("join")
    join_asof = _refused("join_asof")
    __reduce__ = _refused("pickling")


def _read(rows: Rows, filter: pc.Expression | None, *, nan_is_greatest: bool) -> Filter:
    if filter is None:
        return Filter(Implied(exact=True))  # every row
    return read_filter(filter, rows.schema, nan_is_greatest=nan_is_greatest)


def _scanner(
    rows: Rows,
    is_for_duckdb: bool,
    columns: Columns | None = None,
    filter: pc.Expression | None = None,
    **options: Any,
) -> ds.Scanner:
    """A scanner; the scan filters if it knows the filter exactly, else Arrow does."""
    condition = _read(rows, filter, nan_is_greatest=is_for_duckdb)
    names = rows.schema.names
    if is_for_duckdb and _is_duckdb_1():
        _refuse_lost_nan(condition)
    if condition.implied.exact:
        filter = None
    wanted: Iterable[str] = names if isinstance(columns, Mapping) or columns is None else columns
    needed = {*wanted, *(() if filter is None else condition.columns)}
    needed = needed or {names[0]}  # batches without a column would have no rows
    scan = rows.scan([name for name in names if name in needed], condition.implied.predicate)
    return ds.Scanner.from_batches(
        rows.batches(scan),
        schema=pa.schema([field for field in rows.schema if field.name in needed]),
        columns=columns,
        filter=filter,
        **options,
    )


def _is_duckdb_1() -> bool:
    """Whether this process has a DuckDB before 2.0."""
    duckdb = sys.modules.get("duckdb")
    return duckdb is not None and Version(duckdb.__version__).major < 2


def _refuse_lost_nan(condition: Filter) -> None:
    """DuckDB 1 writes ``x > 1`` where it means NaN, too, which is read here as it is meant. It
    writes ``x <= 'NaN'`` as TRUE, where it means that x is not NULL.

    Raises:
        PredicateUnsupported: what it means cannot be told.
    """
    if condition.has_true or (condition.has_floating and not condition.implied.exact):
        raise PredicateUnsupported(
            "DuckDB before 2.0 hands over this condition in a form that a comparison with NaN has, "
            "too, and in which that has lost its meaning.",
            remedy="Use DuckDB 2.0; or write x IS NOT NULL in place of x <= 'NaN'.",
        )
