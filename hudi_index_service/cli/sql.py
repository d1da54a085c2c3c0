"""SQL: index statements, and everything that Spark with Hudi understands."""

from collections.abc import Iterable
from enum import Enum
from typing import Annotated

import typer

from hudi_index_service.cli.arguments import OutputOption
from hudi_index_service.cli.output import Format, counted_rows, format_of_rows
from hudi_index_service.errors import ConfigInvalid


class SqlFormat(Enum):
    """The values of ``--format``, which this command had before ``--output``."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


def sql(
    statements: Annotated[
        list[str],
        typer.Argument(metavar="STATEMENT...", help="SQL; several run one after the other."),
    ],
    output: OutputOption = None,
    format: Annotated[
        SqlFormat | None,
        typer.Option("--format", "-f", help="The same as --output, whose text is called table."),
    ] = None,
    conf: Annotated[
        list[str] | None,
        typer.Option(help="A setting of Spark or Hudi as key=value; may be repeated."),
    ] = None,
) -> None:
    """Run SQL in a Spark session of its own: index statements, queries through the indexes, and all
    that Hudi has; exit status 1 if an entry could not be built. Needs Hudi's Spark bundle:
    HUDI_INDEX_HUDI_JAR, or --conf spark.jars=…."""
    try:
        from hudi_index_service.sql import IndexSession
        from hudi_index_service.sql.own_session import own_session
        from hudi_index_service.sql.text import FORMATS, spark_errors_named, tells_of_failures
    except ModuleNotFoundError as error:
        if error.name not in ("pyspark", "py4j"):
            raise
        raise ConfigInvalid(
            "PySpark is not installed.", remedy="pip install 'hudi-index-service[spark]'."
        ) from error
    if output is None and format is not None:
        output = Format.TEXT if format is SqlFormat.TABLE else Format(format.value)
    printed = format_of_rows(output)
    settings = _settings(conf or ())
    with spark_errors_named(), own_session(settings) as spark:
        session = IndexSession(spark)
        for statement in statements:
            result = session.sql(statement)
            for line in FORMATS["table" if printed is Format.TEXT else printed.value](result):
                print(line)
                if printed is Format.TEXT:  # one table, of which four lines hold no row
                    print(counted_rows(line.count("\n") - 3))
            if tells_of_failures(statement, result):
                raise typer.Exit(1)


def _settings(pairs: Iterable[str]) -> dict[str, str]:
    settings = {}
    for pair in pairs:
        key, separator, value = pair.partition("=")
        if not separator or not key.strip():
            raise ConfigInvalid(f"{pair!r} is no key=value.", remedy="Write --conf key=value.")
        settings[key.strip()] = value.strip()
    return settings
