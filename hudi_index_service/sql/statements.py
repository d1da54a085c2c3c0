"""The index statements, parsed."""

from dataclasses import dataclass

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
    [SET (column [OPTIONS(…)], …)] [RENAME TO name]``

    SET gives columns that are there other options. One of the four is needed.
    """

    name: str
    table: TableReference
    add: tuple[Column, ...] = ()
    drop: tuple[str, ...] = ()
    set: tuple[Column, ...] = ()
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
    """``OPTIMIZE TABLE t [STRATEGY INCREMENTAL|ALL|REFRESH] [DRY RUN]``"""

    table: TableReference
    strategy: Strategy = Strategy.INCREMENTAL
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class ShowIndexing:
    """``SHOW INDEXING [FROM|IN] [TABLE] t``"""

    table: TableReference


Statement = (
    CreateIndex
    | AlterIndex
    | DropIndex
    | DropColumns
    | ShowIndexes
    | RefreshIndex
    | OptimizeTable
    | ShowIndexing
)
