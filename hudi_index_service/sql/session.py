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
    IndexServiceError,
    NotAHudiTable,
    StatementInvalid,
    StorageUnsupported,
    TableNotFound,
)
from hudi_index_service.indexed_table import IndexedTable, open_table
from hudi_index_service.sql.call import (
    Argument,
    call_statement,
    is_call,
    serviced_table,
    serviced_table_of,
)
from hudi_index_service.sql.catalog import table_location
from hudi_index_service.sql.dialect import parse_statement
from hudi_index_service.sql.results import (
    dropped_frame,
    entries_frame,
    indexes_frame,
    indexing_frame,
    nothing_dropped_frame,
)
from hudi_index_service.sql.select import RelationUse, SelectRewriter
from hudi_index_service.sql.statements import (
    AlterIndex,
    CreateIndex,
    DropColumns,
    DropIndex,
    OptimizeTable,
    RefreshIndex,
    ShowIndexes,
    ShowIndexing,
    TableName,
    TableReference,
)
from hudi_index_service.upkeep import TableUpkeep

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
        self._select = SelectRewriter(spark, storage_options, settings)
        self._relations: tuple[RelationUse, ...] = ()

    @property
    def relations(self) -> tuple[RelationUse, ...]:
        """How the Hudi tables in the last query of `sql` are read: each occurrence of a table, and
        why by the index or by Spark. None where no table of the query has an index, and after a
        statement that is no query."""
        return self._relations

    def close(self) -> None:
        """Closes the index files that are kept open between queries."""
        self._select.close()

    def sql(self, query: str, args: Any = None, **kwargs: Any) -> DataFrame:
        """Runs one statement, at once.

        The index statements are CREATE INDEX … USING <types of the service>, ALTER INDEX, DROP
        INDEX, SHOW INDEXES, REFRESH INDEX, OPTIMIZE TABLE and SHOW INDEXING: their forms stand in
        `hudi_index_service.sql.statements`, the columns they return in
        `hudi_index_service.sql.results`. Everything else goes to ``spark.sql`` untouched,
        statements on Hudi's own indexes among it: CREATE INDEX without USING or with a type of
        Hudi's, DROP and REFRESH INDEX of a name that is no index of the service. After a CALL of a
        table service what is due is built, as by `call`.

        In a query, each Hudi table of which an index finds the few rows that its conditions on the
        table ask for is read through it (`relations` tells which); the answer is Spark's own. The
        rows are those of the snapshot that Spark has looked up for the query; few of them are read
        at once, more by Spark tasks when they are asked for. Executors need this package then.

        Args:
            query: One statement; a semicolon may close it.
            args: Parameters, as ``spark.sql`` takes them. Index statements take none.
            kwargs: The same.

        Raises:
            StatementInvalid: an index statement with a syntax error, or with parameters.
            TableNotFound, NotAHudiTable, and what the façade's methods raise.
            pyspark.errors.PySparkException, py4j.protocol.Py4JJavaError: from Spark.
        """
        if is_call(query):
            called = self.spark.sql(query, args, **kwargs)
            return self._after_service(called, serviced_table(query))
        statement = parse_statement(query)
        self._relations = ()
        if statement is None:
            frame, self._relations = self._select.rewritten(self.spark.sql(query, args, **kwargs))
            return frame
        if args or kwargs:
            raise StatementInvalid(
                "An index statement takes no parameters.", remedy="Write the values into it."
            )
        match statement:
            case CreateIndex():
                return self._create(statement)
            case AlterIndex():
                return self._alter(statement)
            case DropColumns():
                return self._drop_columns(statement)
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
                    return indexing_frame(self.spark, table.status())

    def call(self, procedure: str, /, **arguments: Argument) -> DataFrame:
        """Calls a procedure of Hudi's; after run_clustering and run_compaction, for which Hudi
        sends no callback, builds what is due for the table.

        >>> session.call("run_clustering", table="messages", op="scheduleAndExecute")

        The build never hides the procedure's result: its failure is logged, and recorded with the
        table's builds; the next wake-up tries again.

        Args:
            procedure: Its name, or a whole CALL statement. `sql` does the same with a CALL
                statement.
            arguments: The procedure's own; they become literals of SQL.

        Returns:
            What the procedure returned; it has run.

        Raises:
            StatementInvalid: a name or an argument that cannot be written in SQL.
            pyspark.errors.PySparkException, py4j.protocol.Py4JJavaError: from the procedure; then
                nothing is built.
        """
        if is_call(procedure) and not arguments:
            return self.sql(procedure)
        called = self.spark.sql(call_statement(procedure, arguments))
        return self._after_service(called, serviced_table_of(procedure, arguments))

    def _after_service(self, called: DataFrame, table: TableReference | None) -> DataFrame:
        """The result, after the build. Spark runs commands at once; what is called has run, and
        the result holds its rows."""
        if table is not None:
            self._build_after_service(table)
        return called

    def _build_after_service(self, table: TableReference) -> None:
        try:
            with TableUpkeep(
                table_location(self.spark, table),
                spark=self.spark,
                storage_options=self._storage_options,
                settings=self._settings,
            ) as upkeep:
                build = upkeep.run()
        except IndexServiceError as error:
            log.error("The build after the table service on %s failed: %s", table, error)
        except Exception:
            log.exception("The build after the table service on %s failed.", table)
        else:
            log.info("%s: %d entries built in %.1f s.", table, len(build.built), build.seconds)

    def _create(self, statement: CreateIndex) -> DataFrame:
        with self._open(statement.table) as table:
            definition = table.create_index(
                statement.name,
                statement.columns,
                using=statement.using,
                if_not_exists=statement.if_not_exists,
            )
        return indexes_frame(self.spark, [definition])

    def _alter(self, statement: AlterIndex) -> DataFrame:
        with self._open(statement.table) as table:
            definition = table.alter_index(
                statement.name,
                add=statement.add,
                drop=statement.drop,
                options={column.name: column.options for column in statement.set},
                rename_to=statement.rename_to,
            )
        return indexes_frame(self.spark, [definition])

    def _drop_columns(self, statement: DropColumns) -> DataFrame:
        with self._open(statement.table) as table:
            dropped = table.drop_index(columns=statement.columns, purge=statement.purge)
        self._select.close()
        return dropped_frame(self.spark, dropped)

    def _drop(self, statement: DropIndex, query: str) -> DataFrame:
        # PURGE is no word of Hudi's.
        by_spark = isinstance(statement.table, TableName) and not statement.purge
        with self._open_if(statement.table, optional=by_spark) as table:
            if table is not None and _has(table, statement.name):
                dropped = table.drop_index(statement.name, purge=statement.purge)
                self._select.close()  # what is open keeps a deleted file's bytes on the disk
                return dropped_frame(self.spark, dropped)
        if by_spark:
            return self.spark.sql(query)
        if statement.if_exists:
            return nothing_dropped_frame(self.spark, statement.name)
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
                return entries_frame(self.spark, table.refresh(statement.name))
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
