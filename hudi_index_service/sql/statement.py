"""What an index statement is: a class that parses it, runs it and shapes its result."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

from pyspark.sql import DataFrame, SparkSession

from hudi_index_service.catalog.spark import session_table
from hudi_index_service.errors import IndexServiceError, TableNotFound
from hudi_index_service.sql.grammar import Parser, TableName, TablePath, TableReference
from hudi_index_service.storage.store import normalize_uri
from hudi_index_service.table import IndexedTable

SESSION_CATALOG = "spark_catalog"

Open: TypeAlias = Callable[[TableReference], IndexedTable]
"""Opens the table that a statement names. Raises the errors of `open_table`."""


@dataclass(frozen=True, slots=True)
class Result:
    """The rows of a statement.

    Attributes:
        columns: In Spark's DDL, such as `INDEXES`.
        rows: By the names of columns, and of fields; what is missing is NULL, other names are left
            out.
    """

    columns: str
    rows: list[dict[str, Any]]

    def frame(self, spark: SparkSession) -> DataFrame:
        """The result as a DataFrame, which has the columns even without rows."""
        return spark.createDataFrame(self.rows, self.columns)


@dataclass(frozen=True, slots=True)
class LeftToHudi:
    """A statement that begins like one of the service, but is Hudi's or Spark's.

    Attributes:
        otherwise: The error to raise if it fails there; None for Hudi's or Spark's own.
    """

    otherwise: IndexServiceError | None = None


class TableStatement(ABC):
    """A statement about one table.

    Attributes:
        first_words: The words that it begins with.
        result: The columns of its result, in Spark's DDL.
        removes_files: Whether it may remove files of an index.
        table: The table.
    """

    first_words: ClassVar[tuple[str, str]]
    result: ClassVar[str]
    removes_files: ClassVar[bool] = False
    table: TableReference

    @classmethod
    @abstractmethod
    def parsed(cls, text: Parser) -> "TableStatement | None":
        """The statement after its first words; None if it is about one of Hudi's own indexes.

        Raises:
            StatementInvalid: it has a syntax error.
        """

    @abstractmethod
    def run(self, open: Open) -> Result | LeftToHudi:
        """Runs the statement. Raises the errors of the façade."""

    def result_columns(self, open: Open) -> str | None:
        """The columns of the result, in Spark's DDL, without running the statement; None if it is
        about one of Hudi's own indexes, or about a table without indexes of the service, and is
        left to Spark."""
        return self.result

    @property
    def changes_something(self) -> bool:
        """Whether it may change the table's indexes or their entries, or stop a build."""
        return True


def table_location(spark: SparkSession, table: TableReference) -> str:
    """The table's base path.

    Raises:
        TableNotFound: the session catalog has no table of this name.
        NotAHudiTable: it is a view, or a table of another format.
        StorageUnsupported: a path with an unsupported scheme.
    """
    if isinstance(table, TablePath):
        return normalize_uri(table.path)
    database, name = in_session_catalog(table, spark.catalog.currentCatalog())
    return session_table(spark, str(table), database, name).base_path()


def in_session_catalog(table: TableName, current_catalog: str) -> tuple[str | None, str]:
    """Database and name of a table in the session catalog; None for the current database.

    Raises:
        TableNotFound: the name is one of another catalog.
    """
    parts = table.parts
    if len(parts) == 3 and parts[0].lower() == SESSION_CATALOG:
        return parts[1], parts[2]
    if len(parts) > 2 or current_catalog != SESSION_CATALOG:
        raise TableNotFound(
            f"{table} is not in Spark's session catalog.",
            remedy=f"Name a table of {SESSION_CATALOG}, or give the table's path in quotes.",
        )
    return (parts[0] if len(parts) == 2 else None), parts[-1]
