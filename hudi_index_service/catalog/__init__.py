"""Where is the table that a text means: a path, or a table's name in a catalog?

======================================  =========================================================
``glue://db.table``                     AWS Glue's Data Catalog
``hive://host:9083/db.table``           a Hive metastore
``db.table`` if there is a session      Spark's session catalog, unless a folder has that name
everything else                         a path
======================================  =========================================================

A name for Spark has two parts of letters, digits and _, or three of which the first is
``spark_catalog``, so that every text with a slash is a path.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from hudi_index_service.catalog.entry import CatalogTable
from hudi_index_service.errors import Remedy, StorageUnsupported, TableAmbiguous, TableNotFound
from hudi_index_service.spark_session import require_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_GLUE = "glue://"
_HIVE = "hive://"
_NAME = re.compile(r"(spark_catalog\.)?\w+\.\w+")
_HIVE_NAME = re.compile(
    r"(?P<host>[^/:]+|\[[^]/]+\])(:(?P<port>\d{1,5}))?/(?P<names>[\w-]+(\.[\w-]+)?)"
)
_HIVE_PORT = 9083
_HIGHEST_PORT = 65535


def table_location(table: str | Path, spark: "SparkSession | None" = None) -> str | Path:
    """The base path that `table` means, not yet normalized; a path is returned as it is.

    Args:
        spark: The session in whose catalog names are looked up.

    Raises:
        TableNotFound: the catalog has no such table, or the text is empty.
        TableAmbiguous: a folder has the name of a table in Spark's catalog.
        NotAHudiTable: a view, or a table of another format.
        StorageUnsupported: not a valid name, or the catalog's client is not installed.
        ConfigInvalid, SparkUnsupported: see `require_session`.
        PermissionDenied, CatalogFailed: the catalog refuses, or does not answer.
    """
    if not isinstance(table, str | Path):
        raise TableNotFound(
            f"A table is named by text or by a Path, not by {type(table).__name__}."
        )
    if spark is not None:
        require_session(spark)
    text = str(table)
    if not text.strip():
        raise TableNotFound("The table's path is empty.")
    if text.startswith(_GLUE):
        return _in_glue(text).base_path_to_read()
    if text.startswith(_HIVE):
        return _in_hive(text).base_path_to_read()
    if isinstance(table, Path) or _NAME.fullmatch(text) is None:
        return table
    if spark is not None:
        return _in_spark(spark, text)
    if not Path(text).exists():
        named = f"For a folder, write ./{text}; for a catalog's table, glue://{text}"
        hive = f"hive://host:{_HIVE_PORT}/{text}"
        raise TableNotFound(
            f"There is no folder {text} here.",
            remedy=Remedy(
                f"{named}, {hive}, or pass spark=<session>.", command=f"{named} or {hive}."
            ),
        )
    return table


def _in_glue(text: str) -> CatalogTable:
    database, _, name = text.removeprefix(_GLUE).partition(".")
    if not database or not name or "/" in text.removeprefix(_GLUE):
        raise StorageUnsupported(
            f"{text} does not name a table in Glue.", remedy="Write glue://database.table."
        )
    with _installed(text, "glue"):
        from hudi_index_service.catalog.glue import glue_table
    return glue_table(text, database, name)


def _in_hive(text: str) -> CatalogTable:
    host, port, (database, name) = _in_metastore(text, "database", "table")
    with _installed(text, "hive"):
        from hudi_index_service.catalog.hive import hive_table
    return hive_table(text, host, port, database, name)


def _in_metastore(text: str, *kinds: str) -> tuple[str, int, list[str]]:
    """Host and port of a Hive metastore, and the names of these kinds that follow."""
    match = _HIVE_NAME.fullmatch(text.removeprefix(_HIVE))
    port = int((match and match["port"]) or _HIVE_PORT)
    names = match["names"].split(".") if match else []
    if match is None or port > _HIGHEST_PORT or len(names) != len(kinds):
        raise StorageUnsupported(
            f"{text} does not name a {kinds[-1]} in a Hive metastore.",
            remedy=f"Write hive://host:{_HIVE_PORT}/{'.'.join(kinds)}.",
        )
    return match["host"].strip("[]"), port, names


def tables_in_glue(database: str) -> list[tuple[str, CatalogTable]]:
    """The tables and views of a database in Glue, each with its name.

    Raises:
        TableNotFound, PermissionDenied, CatalogFailed: see `table_location`; of the database.
        StorageUnsupported: Glue's client is not installed.
    """
    text = f"{_GLUE}{database}"
    with _installed(text, "glue"):
        from hudi_index_service.catalog.glue import glue_tables
    return glue_tables(text, database)


def tables_in_hive(metastore: str, database: str) -> list[tuple[str, CatalogTable]]:
    """The tables and views of a database in a Hive metastore, each with its name.

    Args:
        metastore: ``hive://host`` or ``hive://host:port``.

    Raises:
        TableNotFound, CatalogFailed: see `table_location`; of the database.
        StorageUnsupported: not a metastore, or its client is not installed.
    """
    text = f"{metastore}/{database}"
    host, port, _ = _in_metastore(text, "database")
    with _installed(text, "hive"):
        from hudi_index_service.catalog.hive import hive_tables
    return hive_tables(text, host, port, database)


def _in_spark(spark: "SparkSession", text: str) -> str:
    from hudi_index_service.catalog.spark import session_table

    is_folder = Path(text).exists()
    try:
        found = session_table(spark, text, *text.split(".")[-2:])
    except TableNotFound:
        if is_folder:
            return text
        raise
    if not is_folder:
        return found.base_path_to_read()
    raise TableAmbiguous(
        f"{text} is a folder here and a table in Spark's catalog, at {found.location}.",
        remedy=f"For the folder, write ./{text}; for the table, its location.",
    )


@contextmanager
def _installed(text: str, extra: str) -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        raise StorageUnsupported(
            f"{text}: the package {error.name} is not installed.",
            remedy=f"pip install 'hudi-index-service[{extra}]'.",
        ) from error
