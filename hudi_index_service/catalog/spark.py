"""Tables in a Spark session's own catalog."""

from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from hudi_index_service.catalog.entry import READ_OPTIMIZED, CatalogTable
from hudi_index_service.errors import Remedy, TableNotFound

_CHECK_NAME = Remedy(
    "Check its name, or give the table's path; that of a folder here begins with ./.",
    sql="Check its name and the current database, or give the table's path in quotes.",
)


def session_table(spark: SparkSession, name: str, database: str | None, table: str) -> CatalogTable:
    """A table or view of the session catalog; a temporary view hides a table of the same name.

    Args:
        name: As the user wrote it.
        database: None for the current one.

    Raises:
        TableNotFound: the catalog has no table of this name.
    """
    jvm = spark._jvm
    assert jvm is not None
    catalog = spark._jsparkSession.sessionState().catalog()
    identifier = jvm.org.apache.spark.sql.catalyst.TableIdentifier(
        table, jvm.scala.Option.apply(database)
    )
    if catalog.isTempView(identifier):
        return CatalogTable(name, is_view=True, location=None)
    try:
        found = catalog.getTableMetadata(identifier)
    except AnalysisException as error:
        raise no_table(name) from error
    if found.tableType().name() == "VIEW":
        return CatalogTable(name, is_view=True, location=None)
    read_optimized = _text(found.storage().properties().get(READ_OPTIMIZED))
    return CatalogTable(
        name,
        is_view=False,
        location=_uri_path(found.location()),
        provider=_text(found.provider()),
        input_format=_text(found.storage().inputFormat()),
        serde={} if read_optimized is None else {READ_OPTIMIZED: read_optimized},
    )


def no_table(name: str) -> TableNotFound:
    """The error for a name that a session's catalog does not know."""
    return TableNotFound(f"Spark's catalog has no table {name}.", remedy=_CHECK_NAME)


def _text(option: Any) -> str | None:
    return None if option.isEmpty() else str(option.get())


def _uri_path(location: Any) -> str:
    """A java.net.URI as a path, without percent escapes."""
    path = str(location.getPath())
    if location.getScheme() in (None, "file"):
        return path
    return f"{location.getScheme()}://{location.getAuthority() or ''}{path}"
