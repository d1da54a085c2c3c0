"""The index statements, parsed."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from hudi_index_service.build.strategy import Strategy
from hudi_index_service.index.metadata.definitions import Column


@dataclass(frozen=True, slots=True)
class TableName:
    """A table of Spark's catalog: ``t``, ``db.t`` or ``catalog.db.t``, unquoted."""

    parts: tuple[str, ...]

    def __str__(self) -> str:
        return ".".join(self.parts)


@dataclass(frozen=True, slots=True)
class TablePath:
    """A table by its base path, written ``'path'`` or ``hudi.`path` ``."""

    path: str

    def __str__(self) -> str:
        return self.path


TableReference = TableName | TablePath


@dataclass(frozen=True, slots=True)
class CreateIndex:
    """``CREATE INDEX [IF NOT EXISTS] name ON [TABLE] t
    USING type [, type, …] (column [OPTIONS(key = 'value', …)], …) [INCLUDE (column, …)]
    [OPTIONS(…)]``

    The statement's options apply to every column before INCLUDE; a column's own options override
    them.
    """

    name: str
    table: TableReference
    using: tuple[str, ...]
    columns: tuple[Column, ...]
    include: tuple[str, ...] = ()
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class AlterIndex:
    """``ALTER INDEX name ON [TABLE] t [ADD (column [OPTIONS(…)], …)] [DROP (column, …)]
    [SET {(column [OPTIONS(…)], …) | OPTIONS(…)}] [RENAME TO name]``

    SET with columns replaces their options; SET OPTIONS adds options to every column. For a new
    column of ADD, SET OPTIONS works like the options of CREATE INDEX: the column's own options
    override them. At least one of the four clauses is required.
    """

    name: str
    table: TableReference
    add: tuple[Column, ...] = ()
    drop: tuple[str, ...] = ()
    set: tuple[Column, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    rename_to: str | None = None


@dataclass(frozen=True, slots=True)
class DropIndex:
    """``DROP INDEX [IF EXISTS] name ON [TABLE] t [PURGE]``"""

    name: str
    table: TableReference
    if_exists: bool = False
    purge: bool = False


@dataclass(frozen=True, slots=True)
class DropColumns:
    """``DROP INDEX ON [TABLE] t (column, …) [PURGE]``: from every index of the table."""

    table: TableReference
    columns: tuple[str, ...]
    purge: bool = False


@dataclass(frozen=True, slots=True)
class ShowIndexes:
    """``SHOW INDEXES {FROM|IN} [TABLE] t``"""

    table: TableReference


@dataclass(frozen=True, slots=True)
class RefreshIndex:
    """``REFRESH INDEX name ON [TABLE] t``: updates its entries to its definition, and builds what
    the strategy INCREMENTAL would. For base files older than the index that have no entry, use
    OPTIMIZE TABLE with STRATEGY ALL."""

    name: str
    table: TableReference


@dataclass(frozen=True, slots=True)
class OptimizeTable:
    """``OPTIMIZE TABLE t [WHERE predicate] [STRATEGY INCREMENTAL|ALL|REFRESH] [DRY RUN]``

    The predicate on partition columns limits the base files to partitions where it is TRUE. `where`
    begins with blanks, so that it keeps its lines and columns in the statement.
    """

    table: TableReference
    strategy: Strategy = Strategy.INCREMENTAL
    dry_run: bool = False
    where: str | None = None


@dataclass(frozen=True, slots=True)
class ShowIndexing:
    """``SHOW INDEXING [FROM|IN] [TABLE] t [BUILD 'id']``

    The status of the table's indexes; with BUILD, the status or outcome of that build.
    """

    table: TableReference
    build: str | None = None


@dataclass(frozen=True, slots=True)
class CancelIndexing:
    """``CANCEL INDEXING [TABLE] t``: requests that the table's running build stop."""

    table: TableReference


@dataclass(frozen=True, slots=True)
class ExplainIndex:
    """``EXPLAIN [ANALYZE] INDEX query``

    `query` begins with blanks, so that it keeps its lines and columns in the statement.
    """

    query: str
    analyze: bool = False


TableStatement = (
    CreateIndex
    | AlterIndex
    | DropIndex
    | DropColumns
    | ShowIndexes
    | RefreshIndex
    | OptimizeTable
    | ShowIndexing
    | CancelIndexing
)
"""The statements about one table."""

Statement = TableStatement | ExplainIndex


def changes_something(statement: TableStatement) -> bool:
    """Whether a statement may change the table's indexes or their entries, or stop a build."""
    match statement:
        case ShowIndexes() | ShowIndexing():
            return False
        case OptimizeTable():
            return not statement.dry_run
    return True
