"""Reading: query, explain, search, locate, and SQL."""

from collections.abc import Iterable
from typing import Annotated, Literal

import typer

from hudi_index_service import open_table
from hudi_index_service.cli.arguments import (
    AsOfOption,
    OutputOption,
    QueryTypeOption,
    TableArgument,
    WhereArgument,
)
from hudi_index_service.cli.output import Format, format_of_rows, print_report, print_rows
from hudi_index_service.errors import ConfigInvalid
from hudi_index_service.hook.daemon import extra_required
from hudi_index_service.read.explanation import ExplainedSlice
from hudi_index_service.read.planner import UseIndex
from hudi_index_service.row_formats import python_rows
from hudi_index_service.wording import counted

_MOST_ROWS = 1_000
"""Rows that text shows without a limit, since the layout of a table needs all its rows."""


def query(
    table: TableArgument,
    where: WhereArgument,
    columns: Annotated[str | None, typer.Option(help="Comma-separated; by default all.")] = None,
    limit: Annotated[int | None, typer.Option(help="At most this many rows.")] = None,
    as_of: AsOfOption = None,
    query_type: QueryTypeOption = "snapshot",
    use_index: Annotated[UseIndex, typer.Option(help="auto, never or require.")] = "auto",
    count: Annotated[bool, typer.Option("--count", help="Only count the rows.")] = False,
    output: OutputOption = None,
) -> None:
    """Print the rows that match a predicate; as text the first 1,000, unless --limit is given."""
    format = format_of_rows(output)
    most = _MOST_ROWS if limit is None and format is Format.TEXT else None
    with open_table(table) as opened:
        scan = opened.scan(
            where,
            columns=_names(columns),
            as_of=as_of,
            limit=limit if most is None else most + 1,
            query_type=query_type,
            use_index=use_index,
        )
        if count:
            number = scan.count()
            print_report(output, {"count": number}, [str(number)])
        else:
            print_rows(format, scan.columns, python_rows(scan.to_batches()), most=most)


def explain(
    table: TableArgument,
    where: WhereArgument,
    analyze: Annotated[bool, typer.Option(help="Run the query and show what was read.")] = False,
    as_of: AsOfOption = None,
    query_type: QueryTypeOption = "snapshot",
    output: OutputOption = None,
) -> None:
    """Show how a query is read and why."""
    scan = open_table(table).scan(where, as_of=as_of, query_type=query_type)
    explanation = scan.explain(analyze=analyze)
    report = explanation.to_dict()
    names = tuple(ExplainedSlice.model_fields)
    print_report(output, report, str(explanation).split("\n"), names, report.get("slices", ()))


def search(
    table: TableArgument,
    column: Annotated[str, typer.Argument(metavar="COLUMN", help="The text column.")],
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The words to search for.")],
    limit: Annotated[int, typer.Option(help="At most this many rows.")] = 10,
    words: Annotated[
        Literal["any", "all"], typer.Option(help="Rows with any of the words, or with all.")
    ] = "any",
    where: Annotated[
        str | None, typer.Option(help="A Spark SQL predicate that rows must also match.")
    ] = None,
    columns: Annotated[str | None, typer.Option(help="Comma-separated; by default all.")] = None,
    as_of: AsOfOption = None,
    query_type: QueryTypeOption = "snapshot",
    output: OutputOption = None,
) -> None:
    """Print the rows whose text matches best, with their scores (BM25), best first."""
    with open_table(table) as opened:
        matches = opened.search(
            column,
            text,
            k=limit,
            where=where,
            columns=_names(columns),
            words=words,
            as_of=as_of,
            query_type=query_type,
        )
    print_rows(format_of_rows(output), matches.column_names, python_rows(matches.to_batches()))


def _names(columns: str | None) -> list[str] | None:
    return None if columns is None else [name.strip() for name in columns.split(",")]


def locate(
    table: TableArgument,
    keys: Annotated[list[str], typer.Argument(help="Record keys as Hudi prints them.")],
    partition: Annotated[
        str | None, typer.Option(help="Path of the partition to search; by default all.")
    ] = None,
    output: OutputOption = None,
) -> None:
    """Show the location of record keys: partition, file id, instant and row id."""
    with open_table(table) as opened:
        lookup_keys = keys if partition is None else [(partition, key) for key in keys]
        locations = opened.tag_location(lookup_keys)
    print_rows(format_of_rows(output), locations.column_names, python_rows(locations.to_batches()))


def sql(
    statements: Annotated[
        list[str], typer.Argument(metavar="STATEMENT...", help="SQL statements, run in order.")
    ],
    output: OutputOption = None,
    format: Annotated[
        Literal["table", "json", "csv"] | None,
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
    with extra_required("SQL", "spark"):
        from hudi_index_service.sql import IndexSession
        from hudi_index_service.sql.command_line import (
            FORMATS,
            has_failed_builds,
            own_session,
            spark_errors_named,
        )
    if output is None and format is not None:
        output = Format.TEXT if format == "table" else Format(format)
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
