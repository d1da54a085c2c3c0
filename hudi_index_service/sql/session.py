"""A Spark session that understands index statements as well."""

import logging
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession

from hudi_index_service.config import Settings
from hudi_index_service.errors import (
    IndexNotFound,
    NotAHudiTable,
    StatementInvalid,
    StorageUnsupported,
    TableNotFound,
)
from hudi_index_service.indexed_table import IndexedTable, open_table
from hudi_index_service.sql.catalog import table_location
from hudi_index_service.sql.dialect import parse_statement
from hudi_index_service.sql.results import (
    dropped_frame,
    entries_frame,
    indexes_frame,
    indexing_frame,
)
from hudi_index_service.sql.statements import (
    CreateIndex,
    DropIndex,
    OptimizeTable,
    RefreshIndex,
    ShowIndexes,
    ShowIndexing,
    TableName,
    TableReference,
)

log = logging.getLogger(__name__)


class IndexSession:
    """Wraps a Spark session: index statements are answered here, every other one by Spark.

    Args:
        spark: A session with Hudi's bundle.
        storage_options: As for `open_table`, for tables in remote stores.
        settings: Instead of the process's own.
    """

    def __init__(
        self,
        spark: SparkSession,
        *,
        storage_options: Mapping[str, str] | None = None,
        settings: Settings | None = None,
    ) -> None:
        self.spark = spark
        self._storage_options = storage_options
        self._settings = settings

    def sql(self, query: str, args: Any = None, **kwargs: Any) -> DataFrame:
        """Runs one statement, at once.

        The index statements are CREATE INDEX … USING <a type of the service>, DROP INDEX, SHOW
        INDEXES, REFRESH INDEX, OPTIMIZE TABLE and SHOW INDEXING: their forms stand in
        `hudi_index_service.sql.statements`, the columns they return in
        `hudi_index_service.sql.results`. Everything else goes to ``spark.sql`` untouched,
        statements on Hudi's own indexes among it: CREATE INDEX without USING or with a type of
        Hudi's, DROP and REFRESH INDEX of a name that is no index of the service.

        Args:
            query: One statement; a semicolon may close it.
            args: Parameters, as ``spark.sql`` takes them. Index statements take none.
            kwargs: The same.

        Raises:
            StatementInvalid: an index statement with a syntax error, or with parameters.
            TableNotFound, NotAHudiTable, and what the façade's methods raise.
            pyspark.errors.PySparkException, py4j.protocol.Py4JJavaError: from Spark.
        """
        statement = parse_statement(query)
        if statement is None:
            return self.spark.sql(query, args, **kwargs)
        if args or kwargs:
            raise StatementInvalid(
                "An index statement takes no parameters.", remedy="Write the values into it."
            )
        match statement:
            case CreateIndex():
                return self._create(statement)
            case DropIndex():
                return self._drop(statement, query)
            case ShowIndexes():
                return self._show(statement, query)
            case RefreshIndex():
                return self._refresh(statement, query)
            case OptimizeTable():
                return self._optimize(statement)
            case ShowIndexing():
                with self._open(statement.table) as table:
                    return indexing_frame(self.spark, table.status(), table.builds())

    def _create(self, statement: CreateIndex) -> DataFrame:
        with self._open(statement.table) as table:
            definition = table.create_index(
                statement.name,
                statement.columns,
                using=statement.using,
                if_not_exists=statement.if_not_exists,
            )
        return indexes_frame(self.spark, [definition])

    def _drop(self, statement: DropIndex, query: str) -> DataFrame:
        # PURGE is no word of Hudi's.
        by_spark = isinstance(statement.table, TableName) and not statement.purge
        with self._open_if(statement.table, optional=by_spark) as table:
            if table is not None and _has(table, statement.name):
                table.drop_index(statement.name, purge=statement.purge)
                return dropped_frame(self.spark, statement.name, dropped=True)
        if by_spark:
            return self.spark.sql(query)
        if statement.if_exists:
            return dropped_frame(self.spark, statement.name, dropped=False)
        raise _no_index(statement.name, statement.table)

    def _show(self, statement: ShowIndexes, query: str) -> DataFrame:
        # Hudi's statement takes names only.
        by_spark = isinstance(statement.table, TableName)
        with self._open_if(statement.table, optional=by_spark) as table:
            if table is None:
                return self.spark.sql(query)
            hudis_own = self._shown_by_hudi(query) if by_spark else []
            return indexes_frame(self.spark, table.indexes(), hudis_own)

    def _shown_by_hudi(self, query: str) -> list[Row]:
        try:
            return self.spark.sql(query).collect()
        except (PySparkException, Py4JJavaError) as error:
            # A session without Hudi's extensions, or a name in three parts, which they refuse.
            log.warning("Hudi's own indexes are not shown: %s", str(error).strip().split("\n")[0])
            return []

    def _refresh(self, statement: RefreshIndex, query: str) -> DataFrame:
        by_spark = isinstance(statement.table, TableName)
        with self._open_if(statement.table, optional=by_spark) as table:
            if table is not None and _has(table, statement.name):
                return entries_frame(self.spark, table.build(strategy="all"))
        if by_spark:
            return self.spark.sql(query)
        raise _no_index(statement.name, statement.table)

    def _optimize(self, statement: OptimizeTable) -> DataFrame:
        with self._open(statement.table) as table:
            build = table.build(strategy=statement.strategy, dry_run=statement.dry_run)
        return entries_frame(self.spark, build)

    def _open(self, table: TableReference) -> IndexedTable:
        return open_table(
            table_location(self.spark, table),
            storage_options=self._storage_options,
            spark=self.spark,
            settings=self._settings,
        )

    def _open_if(
        self, table: TableReference, *, optional: bool
    ) -> AbstractContextManager[IndexedTable | None]:
        """The table; if `optional`, None for one that cannot have an index of the service: Spark
        says then what it makes of it."""
        try:
            return self._open(table)
        except (TableNotFound, NotAHudiTable, StorageUnsupported):
            if not optional:
                raise
            return nullcontext()


def _has(table: IndexedTable, name: str) -> bool:
    return any(definition.name == name for definition in table.indexes())


def _no_index(name: str, table: TableReference) -> IndexNotFound:
    return IndexNotFound(
        f"{table} has no index named {name}.", remedy="SHOW INDEXES FROM it lists them."
    )
