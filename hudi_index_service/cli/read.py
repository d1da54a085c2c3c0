"""Reading: query, explain, locate."""

import json
from typing import Annotated

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
)
from hudi_index_service.cli.console import out, print_rows, say


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
        columns=None if columns is None else [name.strip() for name in columns.split(",")],
        as_of=as_of,
        limit=limit,
        query_type=query_type.value,
        use_index=use_index.value,
    )
    if count:
        say(str(scan.count()))
        return
    for batch in scan.to_batches():
        rows = batch.to_pylist()
        if output is Output.JSON:
            for row in rows:
                print(json.dumps(row, default=str, ensure_ascii=False))
        else:
            print_rows(rows, output)


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
        out.print_json(json.dumps(explanation.to_dict()))
    else:
        say(str(explanation))


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
