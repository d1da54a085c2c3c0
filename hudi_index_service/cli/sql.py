"""SQL: index statements, and all statements of Spark with Hudi."""

from collections.abc import Iterable
from enum import Enum
from typing import Annotated

import typer

from hudi_index_service.cli.arguments import OutputOption
from hudi_index_service.cli.output import Format, format_of_rows
from hudi_index_service.errors import ConfigInvalid
from hudi_index_service.wording import counted


class SqlFormat(Enum):
    """The values of ``--format``, the older form of ``--output``."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


def sql(
    statements: Annotated[
        list[str],
        typer.Argument(metavar="STATEMENT...", help="SQL statements, run in order."),
    ],
    output: OutputOption = None,
    format: Annotated[
        SqlFormat | None,
        typer.Option("--format", "-f", help="Same as --output, with table for text."),
    ] = None,
    conf: Annotated[
        list[str] | None,
        typer.Option(help="A Spark or Hudi setting as key=value; may be repeated."),
    ] = None,
) -> None:
    """Run SQL in a new Spark session: index statements, queries through the indexes, and all of
    Hudi's statements. Exit status 1 if an entry could not be built. Needs Hudi's Spark bundle:
    HUDI_INDEX_HUDI_JAR, or --conf spark.jars=…."""
    try:
        from hudi_index_service.sql import IndexSession
        from hudi_index_service.sql.local_session import own_session
        from hudi_index_service.sql.text import FORMATS, has_failed_builds, spark_errors_named
    except ModuleNotFoundError as error:
        if error.name not in ("pyspark", "py4j"):
            raise
        raise ConfigInvalid(
            "PySpark is not installed.",
            remedy="Install it: pip install 'hudi-index-service[spark]'.",
        ) from error
    if output is None and format is not None:
        output = Format.TEXT if format is SqlFormat.TABLE else Format(format.value)
    kind = format_of_rows(output)
    settings = _settings(conf or ())
    with spark_errors_named(), own_session(settings) as spark:
        session = IndexSession(spark)
        for statement in statements:
            result = session.sql(statement)
            for line in FORMATS["table" if kind is Format.TEXT else kind.value](result):
                print(line)
                if kind is Format.TEXT:  # one table, in which four lines are not rows
                    print(counted(line.count("\n") - 3, "row"))
            if has_failed_builds(statement, result):
                raise typer.Exit(1)


def _settings(pairs: Iterable[str]) -> dict[str, str]:
    settings = {}
    for pair in pairs:
        key, separator, value = pair.partition("=")
        if not separator or not key.strip():
            raise ConfigInvalid(
                f"{pair!r} is not of the form key=value.", remedy="Use --conf key=value."
            )
        settings[key.strip()] = value.strip()
    return settings
