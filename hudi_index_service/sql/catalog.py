"""Finds the base path of a table named in a statement, in a Spark session's catalog."""

from pyspark.sql import SparkSession

from hudi_index_service.catalog.spark import session_table
from hudi_index_service.errors import TableNotFound
from hudi_index_service.sql.statements import TableName, TablePath, TableReference
from hudi_index_service.storage.store import normalize_uri

SESSION_CATALOG = "spark_catalog"


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
