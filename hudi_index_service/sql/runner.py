"""Runs index statements through the façade."""

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from hudi_index_service.errors import (
    BuildNotFound,
    ColumnNotFound,
    IndexNotFound,
    IndexServiceError,
    NotAHudiTable,
    PredicateInvalid,
    PredicateUnsupported,
    StorageUnsupported,
    TableNotFound,
)
from hudi_index_service.hudi.properties import HUDI_PREFIXES, own_indexes
from hudi_index_service.sql.results import (
    BUILD,
    CANCELLED,
    DROPPED,
    ENTRIES,
    INDEXES,
    INDEXING,
    NOTHING,
    Result,
    build_result,
    cancelled_result,
    dropped_result,
    entries_result,
    indexes_result,
    indexing_result,
    nothing_dropped_result,
)
from hudi_index_service.sql.statements import (
    AlterIndex,
    CancelIndexing,
    CreateIndex,
    DropColumns,
    DropIndex,
    OptimizeTable,
    RefreshIndex,
    ShowIndexes,
    ShowIndexing,
    TableName,
    TablePath,
    TableReference,
    TableStatement,
)
from hudi_index_service.table import IndexedTable
from hudi_index_service.wording import did_you_mean

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LeftToHudi:
    """A statement that begins like one of the service, but is Hudi's or Spark's.

    Attributes:
        otherwise: The error to raise if it fails there; None for Hudi's or Spark's own.
    """

    otherwise: IndexServiceError | None = None


class StatementRunner:
    """Runs index statements.

    Args:
        open: Opens the table that a statement names. Raises the errors of `open_table`.
        on_files_removed: Called when files of an index may have been removed.
    """

    def __init__(
        self,
        open: Callable[[TableReference], IndexedTable],
        on_files_removed: Callable[[], None],
    ) -> None:
        self._open = open
        self._on_files_removed = on_files_removed

    def run(self, statement: TableStatement) -> Result | LeftToHudi:
        """Runs a statement."""
        match statement:
            case CreateIndex():
                return self._create(statement)
            case AlterIndex():
                return self._alter(statement)
            case DropColumns():
                return self._drop_columns(statement)
            case DropIndex():
                return self._drop(statement)
            case ShowIndexes():
                return self._show(statement)
            case RefreshIndex():
                return self._refresh(statement)
            case OptimizeTable():
                return self._optimize(statement)
            case ShowIndexing():
                return self._show_indexing(statement)
            case CancelIndexing():
                with self._open(statement.table) as table:
                    return cancelled_result(table.cancel())

    def columns(self, statement: TableStatement) -> str | None:
        """The columns of a statement's result, in Spark's DDL, without running it; None if it is
        about one of Hudi's own indexes, or about a table without indexes of the service, and is
        left to Spark."""
        match statement:
            case CreateIndex() | AlterIndex():
                return INDEXES
            case DropColumns():
                return DROPPED
            case ShowIndexes():
                with self._open_if(statement.table, optional=_may_be_hudis(statement)) as table:
                    return None if table is None else INDEXES
            case DropIndex() | RefreshIndex():
                return self._columns_by_name(statement)
            case OptimizeTable():
                return ENTRIES
            case ShowIndexing():
                return INDEXING if statement.build is None else BUILD
            case CancelIndexing():
                return CANCELLED

    def _columns_by_name(self, statement: DropIndex | RefreshIndex) -> str | None:
        ours = DROPPED if isinstance(statement, DropIndex) else ENTRIES
        if not _may_be_hudis(statement):
            return ours
        with self._open_if(statement.table, optional=True) as table:
            if table is None:
                return None
            if _has(table, statement.name):
                return ours
            if _is_hudis(table, statement):
                return None
        if isinstance(statement, RefreshIndex):
            return ours
        # Neither knows it, but Hudi's index may be incomplete.
        return None if statement.if_exists else NOTHING

    def _create(self, statement: CreateIndex) -> Result:
        with self._open(statement.table) as table:
            definition = table.create_index(
                statement.name,
                statement.columns,
                include=statement.include,
                using=statement.using,
                if_not_exists=statement.if_not_exists,
            )
        return indexes_result([definition])

    def _alter(self, statement: AlterIndex) -> Result:
        with self._open(statement.table) as table:
            definition = table.alter_index(
                statement.name,
                add=statement.add,
                drop=statement.drop,
                options={column.name: column.options for column in statement.set},
                options_for_all=statement.options,
                rename_to=statement.rename_to,
            )
        return indexes_result([definition])

    def _drop_columns(self, statement: DropColumns) -> Result:
        with self._open(statement.table) as table:
            dropped = table.drop_index(columns=statement.columns, purge=statement.purge)
        self._on_files_removed()
        return dropped_result(dropped)

    def _drop(self, statement: DropIndex) -> Result | LeftToHudi:
        by_spark = _may_be_hudis(statement)
        with self._open_if(statement.table, optional=by_spark) as table:
            if table is not None and _has(table, statement.name):
                dropped = table.drop_index(statement.name, purge=statement.purge)
                self._on_files_removed()  # an open file's bytes stay on the disk after deletion
                return dropped_result(dropped)
            if by_spark:
                known = table is None or _is_hudis(table, statement)
                return LeftToHudi(None if known else _no_index(statement, table))
        if statement.if_exists:
            return nothing_dropped_result(statement.name)
        raise _no_index(statement, table)

    def _show(self, statement: ShowIndexes) -> Result | LeftToHudi:
        # Hudi's statement accepts no paths and no names in three parts, so its indexes are read
        # from the table.
        with self._open_if(statement.table, optional=_may_be_hudis(statement)) as table:
            if table is None:
                return LeftToHudi()
            hudis_own = own_indexes(table.hudi_table.storage)
            return indexes_result(table.indexes(), hudis_own)

    def _refresh(self, statement: RefreshIndex) -> Result | LeftToHudi:
        by_spark = _may_be_hudis(statement)
        with self._open_if(statement.table, optional=by_spark) as table:
            if table is not None and _has(table, statement.name):
                return entries_result(table.refresh(statement.name))
            # Hudi's statement does nothing, whether or not the index exists.
            if by_spark and (table is None or _is_hudis(table, statement)):
                return LeftToHudi()
        raise _no_index(statement, table)

    def _optimize(self, statement: OptimizeTable) -> Result:
        with self._open(statement.table) as table:
            build = table.build(
                strategy=statement.strategy,
                partitions=_partitions(table, statement.where),
                dry_run=statement.dry_run,
            )
        for warning in () if build.estimate is None else build.estimate.warnings:
            log.warning("%s", warning)
        return entries_result(build)

    def _show_indexing(self, statement: ShowIndexing) -> Result:
        with self._open(statement.table) as table:
            if statement.build is None:
                return indexing_result(table.status())
            for record in table.builds():
                if record.id == statement.build:
                    return build_result(record)
        raise BuildNotFound(f"{statement.table} has no build {statement.build}.")

    def _open_if(
        self, table: TableReference, *, optional: bool
    ) -> AbstractContextManager[IndexedTable | None]:
        """The table; if `optional`, None for one that cannot have an index of the service and is
        left to Spark."""
        try:
            return self._open(table)
        except (TableNotFound, NotAHudiTable, StorageUnsupported):
            if not optional:
                raise
            return nullcontext()


def _has(table: IndexedTable, name: str) -> bool:
    return any(definition.name == name for definition in table.indexes())


def _partitions(table: IndexedTable, where: str | None) -> tuple[str, ...] | None:
    if where is None:
        return None
    try:
        return table.partitions(where)
    except (PredicateInvalid, PredicateUnsupported, ColumnNotFound) as error:
        # The predicate keeps the lines and columns of the statement.
        message = error.message.replace("of the predicate", "of the statement")
        raise error.reworded(message) from error


def _may_be_hudis(statement: DropIndex | ShowIndexes | RefreshIndex) -> bool:
    """Whether Hudi accepts such a statement: it takes no path, and has no PURGE."""
    purges = isinstance(statement, DropIndex) and statement.purge
    return isinstance(statement.table, TableName) and not purges


def _is_hudis(table: IndexedTable, statement: DropIndex | RefreshIndex) -> bool:
    """Whether Hudi has an index of this name, as created or as shown by SHOW INDEXES."""
    name = statement.name.lower()
    names = {each.name.lower() for each in own_indexes(table.hudi_table.storage)}
    return not names.isdisjoint(f"{prefix}{name}" for prefix in ("", *HUDI_PREFIXES))


def _no_index(statement: DropIndex | RefreshIndex, table: IndexedTable | None) -> IndexNotFound:
    by_path = isinstance(statement.table, TablePath)
    names = () if table is None else [each.name for each in table.indexes()]
    near = did_you_mean(statement.name, names)
    return IndexNotFound(
        f"{statement.table} has no index named {statement.name}.",
        remedy=f"{near}SHOW INDEXES FROM the table lists them; drop Hudi's own by the table's name."
        if by_path
        else f"{near}SHOW INDEXES FROM {statement.table} lists them, including Hudi's own.",
    )
