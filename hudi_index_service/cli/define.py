"""Index definitions: create, alter, drop, show."""

from typing import Annotated

import typer

from hudi_index_service import Column, open_table
from hudi_index_service.cli.arguments import Output, OutputOption, TableArgument
from hudi_index_service.cli.console import err, print_rows, say
from hudi_index_service.definitions import IndexDefinition


def create(
    table: TableArgument,
    name: Annotated[str, typer.Argument(help="Name of the index.")],
    columns: Annotated[
        list[str],
        typer.Argument(help="Columns, each with options if need be: msg or msg:analyzer=standard."),
    ],
    using: Annotated[
        list[str] | None, typer.Option(help="The index type, lucene without; may be repeated.")
    ] = None,
    if_not_exists: Annotated[bool, typer.Option(help="Do nothing if it exists.")] = False,
) -> None:
    """Define an index; `build` or the hook fills it."""
    definition = open_table(table).create_index(
        name,
        [_column(text) for text in columns],
        using=using or "lucene",
        if_not_exists=if_not_exists,
    )
    _say_definition(definition)


def alter(
    table: TableArgument,
    name: Annotated[str, typer.Argument(help="Name of the index.")],
    add: Annotated[
        list[str] | None,
        typer.Option(help="A further column: msg or msg:analyzer=standard; may be repeated."),
    ] = None,
    drop: Annotated[
        list[str] | None, typer.Option(help="A column to leave out; may be repeated.")
    ] = None,
    changed: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="Other options for a column: msg:analyzer=simple; may be repeated."
        ),
    ] = None,
    rename_to: Annotated[str | None, typer.Option(help="Another name.")] = None,
) -> None:
    """Change an index; `refresh` brings its entries up to date."""
    definition = open_table(table).alter_index(
        name,
        add=[_column(text) for text in add or ()],
        drop=drop or (),
        options={column.name: column.options for column in map(_column, changed or ())},
        rename_to=rename_to,
    )
    _say_definition(definition)


def drop(
    table: TableArgument,
    name: Annotated[str | None, typer.Argument(help="Name of the index.")] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(help="Instead of a name: take this column out of every index; repeatable."),
    ] = None,
    purge: Annotated[
        bool, typer.Option(help="Remove every byte that no live index asks for, at once.")
    ] = False,
) -> None:
    """Drop an index, or columns; exit status 1 if something could not be purged."""
    dropped = open_table(table).drop_index(name, columns=column, purge=purge)
    for definition in dropped.indexes:
        say(f"Index {definition.name} is dropped.")
    for definition in dropped.narrowed:
        _say_definition(definition)
    if dropped.purge is None:
        return
    removed = dropped.purge.cleaning
    say(f"{len(removed.removals)} files removed, {removed.bytes:,} bytes.")
    for each in dropped.purge.remaining:
        names = ", ".join(each.columns) or "unknown columns"
        err.print(
            f"{each.folder} still holds {names}: {each.reason}.",
            highlight=False,
            markup=False,
            soft_wrap=True,
        )
    if dropped.purge.remaining:
        raise typer.Exit(1)


def show(table: TableArgument, output: OutputOption = Output.TEXT) -> None:
    """List the indexes of a table."""
    rows = [
        {
            "name": each.name,
            "type": ", ".join(each.index_types),
            "columns": ", ".join(column.name for column in each.columns),
            "created": each.created,
        }
        for each in open_table(table).indexes()
    ]
    print_rows(rows, output)


def _say_definition(definition: IndexDefinition) -> None:
    names = ", ".join(column.name for column in definition.columns)
    say(f"Index {definition.name} ({', '.join(definition.index_types)}) on {names}.")


def _column(text: str) -> Column:
    name, _, options = text.partition(":")
    pairs = [option.partition("=") for option in options.split(",") if option]
    return Column(name=name, options={key: value for key, _, value in pairs})
