"""The index statements, parsed."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from hudi_index_service.build.strategy import Strategy
from hudi_index_service.definitions import Column


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
    USING type [, type, …] (column [OPTIONS(key = 'value', …)], …) [OPTIONS(…)]``

    The statement's options hold for every column; a column's own ones win.
    """

    name: str
    table: TableReference
    using: tuple[str, ...]
    columns: tuple[Column, ...]
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class AlterIndex:
    """``ALTER INDEX name ON [TABLE] t [ADD (column [OPTIONS(…)], …)] [DROP (column, …)]
    [SET {(column [OPTIONS(…)], …) | OPTIONS(…)}] [RENAME TO name]``

    SET with columns gives each of them these options instead of its own; SET OPTIONS gives every
    column these beside its own, and is to a new column of ADD what the options of CREATE INDEX are:
    the column's own ones win. One of the four is needed.
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
    """``REFRESH INDEX name ON [TABLE] t``: its entries brought up to date with its definition, and
    what the strategy INCREMENTAL would build. Base files without an entry that were there before
    the index are OPTIMIZE TABLE's (STRATEGY ALL)."""

    name: str
    table: TableReference


@dataclass(frozen=True, slots=True)
class OptimizeTable:
    """``OPTIMIZE TABLE t [WHERE predicate] [STRATEGY INCREMENTAL|ALL|REFRESH] [DRY RUN]``

    The predicate is over partition columns: only base files in partitions where it holds. `where`
    begins with blanks, so that it has the lines and columns that it has in the statement.
    """

    table: TableReference
    strategy: Strategy = Strategy.INCREMENTAL
    dry_run: bool = False
    where: str | None = None


@dataclass(frozen=True, slots=True)
class ShowIndexing:
    """``SHOW INDEXING [FROM|IN] [TABLE] t [BUILD 'id']``

    How the table's indexes stand; with BUILD, how that build stands or ended.
    """

    table: TableReference
    build: str | None = None


@dataclass(frozen=True, slots=True)
class CancelIndexing:
    """``CANCEL INDEXING [TABLE] t``: asks the build that runs on the table to give up."""

    table: TableReference


@dataclass(frozen=True, slots=True)
class ExplainIndex:
    """``EXPLAIN [ANALYZE] INDEX query``

    `query` begins with blanks, so that it has the lines and columns that it has in the statement.
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
