"""Finds the base path of a table named in a statement, in Spark's session catalog."""

from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from hudi_index_service.errors import NotAHudiTable, TableNotFound
from hudi_index_service.sql.statements import TableName, TablePath, TableReference

SESSION_CATALOG = "spark_catalog"


def table_location(spark: SparkSession, table: TableReference) -> str:
    """The table's base path.

    Raises:
        TableNotFound: the session catalog has no table of this name.
        NotAHudiTable: it is a view, or a table of another format.
    """
    if isinstance(table, TablePath):
        return table.path
    metadata = _metadata(spark, table)
    if metadata.tableType().name() == "VIEW":
        raise NotAHudiTable(f"{table} is a view.", remedy="Name the table that it reads.")
    provider = metadata.provider()
    if provider.isEmpty() or provider.get().lower() != "hudi":
        raise NotAHudiTable(
            f"{table} is not a Hudi table.", remedy="Name a table created with USING hudi."
        )
    return _uri_path(metadata.location())


def _metadata(spark: SparkSession, table: TableName) -> Any:
    """Spark's CatalogTable."""
    database, name = _in_session_catalog(spark, table)
    jvm = spark._jvm
    assert jvm is not None
    catalog = spark._jsparkSession.sessionState().catalog()
    identifier = jvm.org.apache.spark.sql.catalyst.TableIdentifier(
        name, jvm.scala.Option.apply(database)
    )
    # A temporary view hides a table of the same name from every query.
    if catalog.isTempView(identifier):
        raise NotAHudiTable(f"{table} is a view.", remedy="Name the table that it reads.")
    try:
        return catalog.getTableMetadata(identifier)
    except AnalysisException as error:
        raise TableNotFound(
            f"Spark's catalog has no table {table}.",
            remedy="Check its name and the current database, or give the table's path in quotes.",
        ) from error


def _in_session_catalog(spark: SparkSession, table: TableName) -> tuple[str | None, str]:
    parts = table.parts
    if len(parts) == 3 and parts[0].lower() == SESSION_CATALOG:
        return parts[1], parts[2]
    if len(parts) > 2 or spark.catalog.currentCatalog() != SESSION_CATALOG:
        raise TableNotFound(
            f"{table} is not in Spark's session catalog.",
            remedy=f"Name a table of {SESSION_CATALOG}, or give the table's path in quotes.",
        )
    return (parts[0] if len(parts) == 2 else None), parts[-1]


def _uri_path(location: Any) -> str:
    """A java.net.URI as a path, without percent escapes."""
    path = str(location.getPath())
    if location.getScheme() in (None, "file"):
        return path
    return f"{location.getScheme()}://{location.getAuthority() or ''}{path}"
