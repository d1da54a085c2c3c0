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
    USING type (column [OPTIONS(key = 'value', …)], …) [OPTIONS(…)]``

    The statement's options hold for every column; a column's own ones win.
    """

    name: str
    table: TableReference
    using: str
    columns: tuple[Column, ...]
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropIndex:
    """``DROP INDEX [IF EXISTS] name ON [TABLE] t [PURGE]``"""

    name: str
    table: TableReference
    if_exists: bool = False
    purge: bool = False


@dataclass(frozen=True, slots=True)
class ShowIndexes:
    """``SHOW INDEXES {FROM|IN} [TABLE] t``"""

    table: TableReference


@dataclass(frozen=True, slots=True)
class RefreshIndex:
    """``REFRESH INDEX name ON [TABLE] t``"""

    name: str
    table: TableReference


@dataclass(frozen=True, slots=True)
class OptimizeTable:
    """``OPTIMIZE TABLE t [STRATEGY INCREMENTAL|ALL] [DRY RUN]``"""

    table: TableReference
    strategy: Strategy = Strategy.INCREMENTAL
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class ShowIndexing:
    """``SHOW INDEXING [FROM|IN] [TABLE] t``"""

    table: TableReference


Statement = CreateIndex | DropIndex | ShowIndexes | RefreshIndex | OptimizeTable | ShowIndexing
