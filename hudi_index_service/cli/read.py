"""Reading: query, explain, search, locate."""

import json
from typing import Annotated, Any

import typer

from hudi_index_service import open_table
from hudi_index_service.cli.arguments import (
    AsOfOption,
    Output,
    OutputOption,
    QueryType,
    QueryTypeOption,
    TableArgument,
    UseIndex,
    WhereArgument,
    Words,
)
from hudi_index_service.cli.console import print_rows, say


def query(
    table: TableArgument,
    where: WhereArgument,
    columns: Annotated[str | None, typer.Option(help="Comma-separated; all without.")] = None,
    limit: Annotated[int | None, typer.Option(help="At most this many rows.")] = None,
    as_of: AsOfOption = None,
    query_type: QueryTypeOption = QueryType.SNAPSHOT,
    use_index: Annotated[UseIndex, typer.Option(help="auto, never or require.")] = UseIndex.AUTO,
    count: Annotated[bool, typer.Option("--count", help="Only count the rows.")] = False,
    output: OutputOption = Output.TEXT,
) -> None:
    """Print the rows that fulfil a predicate."""
    scan = open_table(table).scan(
        where,
        columns=_names(columns),
        as_of=as_of,
        limit=limit,
        query_type=query_type.value,
        use_index=use_index.value,
    )
    if count:
        say(str(scan.count()))
        return
    for batch in scan.to_batches():
        _print_found(batch.to_pylist(), output)


def explain(
    table: TableArgument,
    where: WhereArgument,
    analyze: Annotated[bool, typer.Option(help="Run it, and show what was read.")] = False,
    as_of: AsOfOption = None,
    query_type: QueryTypeOption = QueryType.SNAPSHOT,
    output: OutputOption = Output.TEXT,
) -> None:
    """Show how a query is read, and why."""
    scan = open_table(table).scan(where, as_of=as_of, query_type=query_type.value)
    explanation = scan.explain(analyze=analyze)
    if output is Output.JSON:
        print(explanation.document().model_dump_json(exclude_none=True, indent=1))
    else:
        say(str(explanation))


def search(
    table: TableArgument,
    column: Annotated[str, typer.Argument(metavar="COLUMN", help="The column of texts.")],
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The words to search for.")],
    limit: Annotated[int, typer.Option(help="At most this many rows.")] = 10,
    words: Annotated[Words, typer.Option(help="Rows with any of the words, or with all.")] = (
        Words.ANY
    ),
    where: Annotated[
        str | None, typer.Option(help="A Spark SQL predicate that has to hold as well.")
    ] = None,
    columns: Annotated[str | None, typer.Option(help="Comma-separated; all without.")] = None,
    as_of: AsOfOption = None,
    query_type: QueryTypeOption = QueryType.SNAPSHOT,
    output: OutputOption = Output.TEXT,
) -> None:
    """Print the rows whose texts fit best, the best first, with their scores (BM25)."""
    with open_table(table) as opened:
        found = opened.search(
            column,
            text,
            k=limit,
            where=where,
            columns=_names(columns),
            words=words.value,
            as_of=as_of,
            query_type=query_type.value,
        )
    _print_found(found.to_pylist(), output)


def _names(columns: str | None) -> list[str] | None:
    return None if columns is None else [name.strip() for name in columns.split(",")]


def _print_found(rows: list[dict[str, Any]], output: Output) -> None:
    """Prints rows of the table: as JSON one object a line, however many."""
    if output is Output.JSON:
        for row in rows:
            print(json.dumps(row, default=str, ensure_ascii=False))
    else:
        print_rows(rows, output)


def locate(
    table: TableArgument,
    keys: Annotated[list[str], typer.Argument(help="Record keys as Hudi prints them.")],
    partition: Annotated[
        str | None, typer.Option(help="Where to look: the partition's path; everywhere without.")
    ] = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Show where record keys lie: partition, file id, instant and row id."""
    with open_table(table) as opened:
        asked = keys if partition is None else [(partition, key) for key in keys]
        found = opened.tag_location(asked)
    print_rows(found.to_pylist(), output)
