"""Index definitions: create, alter, drop, show."""

from shlex import quote
from typing import Annotated, Any

import typer

from hudi_index_service import open_table
from hudi_index_service.cli.arguments import OutputOption, TableArgument, parse_column
from hudi_index_service.cli.console import complain
from hudi_index_service.cli.output import Format, format_of_rows, print_report, print_rows
from hudi_index_service.cli.reports import definition_line, drop_lines
from hudi_index_service.index.metadata.definitions import MANUAL, IndexDefinition
from hudi_index_service.index.metadata.requirements import names_by_use
from hudi_index_service.maintain.drop import Remainder

_FIELDS = ("name", "type", "columns", "created", "stored", "options", "owner")


def create(
    table: TableArgument,
    name: Annotated[str, typer.Argument(help="Name of the index.")],
    columns: Annotated[
        list[str],
        typer.Argument(help="Columns, optionally with options: msg or msg:analyzer=standard."),
    ],
    include: Annotated[
        list[str] | None,
        typer.Option(help="A column whose values are stored beside the index; may be repeated."),
    ] = None,
    using: Annotated[
        list[str] | None, typer.Option(help="The index type, by default lucene; may be repeated.")
    ] = None,
    if_not_exists: Annotated[bool, typer.Option(help="Do nothing if it exists.")] = False,
    output: OutputOption = None,
) -> None:
    """Define an index; `build` or the hook fills it."""
    definition = open_table(table).create_index(
        name,
        [parse_column(text) for text in columns],
        include=include or (),
        using=using or "lucene",
        if_not_exists=if_not_exists,
    )
    _print_definition(
        definition,
        output,
        "`hudi-index build` indexes the base files that clustering and compaction write from now "
        "on, and with --strategy all every existing base file.",
    )


def alter(
    table: TableArgument,
    name: Annotated[str, typer.Argument(help="Name of the index.")],
    add: Annotated[
        list[str] | None,
        typer.Option(help="A column to add: msg or msg:analyzer=standard; may be repeated."),
    ] = None,
    drop: Annotated[
        list[str] | None, typer.Option(help="A column to remove; may be repeated.")
    ] = None,
    changed: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="New options for a column: msg:analyzer=simple; may be repeated."
        ),
    ] = None,
    rename_to: Annotated[str | None, typer.Option(help="A new name.")] = None,
    output: OutputOption = None,
) -> None:
    """Change an index; `refresh` brings its entries up to date."""
    definition = open_table(table).alter_index(
        name,
        add=[parse_column(text) for text in add or ()],
        drop=drop or (),
        options={column.name: column.options for column in map(parse_column, changed or ())},
        rename_to=rename_to,
    )
    _print_definition(definition, output)


def drop(
    table: TableArgument,
    name: Annotated[str | None, typer.Argument(help="Name of the index.")] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(help="Instead of a name: remove this column from every index; repeatable."),
    ] = None,
    purge: Annotated[
        bool, typer.Option(help="Remove at once every byte that no live index needs.")
    ] = False,
    output: OutputOption = None,
) -> None:
    """Drop an index, or columns; exit status 1 if something could not be purged."""
    dropped = open_table(table).drop_index(name, columns=column, purge=purge)
    remaining: tuple[Remainder, ...] = ()
    purged = None
    if dropped.purge is not None:
        remaining, cleaning = dropped.purge.remaining, dropped.purge.cleaning
        purged = {"files": len(cleaning.removals), "bytes": cleaning.bytes}
    indexes = [
        *({"change": "dropped", **_fields(each)} for each in dropped.indexes),
        *({"change": "narrowed", **_fields(each)} for each in dropped.narrowed),
    ]
    print_report(
        output,
        {
            "indexes": indexes,
            "purged": purged,
            "remaining": [
                {"folder": each.folder, "columns": each.columns, "reason": each.reason}
                for each in remaining
            ],
        },
        drop_lines(dropped),
        ("change", *_FIELDS),
        indexes,
    )
    for each in remaining:
        names = ", ".join(each.columns) or "unknown columns"
        complain(f"{each.folder} still contains {names}: {each.reason}.")
    if remaining:
        raise typer.Exit(1)


def show(table: TableArgument, output: OutputOption = None) -> None:
    """List the indexes of a table; as text with their owners, unless users created all."""
    opened = open_table(table)
    rows = [_fields(each) for each in opened.indexes()]
    format = format_of_rows(output)
    is_plain = format is Format.TEXT and all(row["owner"] == MANUAL for row in rows)
    names = [name for name in _FIELDS if name != "owner" or not is_plain]
    print_rows(format, names, [[row[name] for name in names] for row in rows])
    if opened.is_disabled:
        complain(f"No query uses them: `hudi-index enable {quote(table)}` ends that.")


def disable(table: TableArgument, output: OutputOption = None) -> None:
    """Keep all readers from the indexes of a table; entries are still built."""
    opened = open_table(table)
    opened.disable()
    line = "No query uses the table's indexes from now on."
    print_report(output, {"disabled": opened.is_disabled}, [line])


def enable(table: TableArgument, output: OutputOption = None) -> None:
    """Let readers use the indexes of a table again."""
    opened = open_table(table)
    opened.enable()
    line = "Queries use the table's indexes again."
    print_report(output, {"disabled": opened.is_disabled}, [line])


def _print_definition(definition: IndexDefinition, output: Format | None, *notes: str) -> None:
    print_report(output, _fields(definition), [definition_line(definition), *notes])


def _fields(definition: IndexDefinition) -> dict[str, Any]:
    of_indexed, of_stored = names_by_use(definition)
    return {
        "name": definition.name,
        "type": ", ".join(definition.index_types),
        "columns": ", ".join(of_indexed),
        "created": definition.created,
        "stored": ", ".join(of_stored),
        "options": {each.name: each.options for each in definition.columns if each.options},
        "owner": definition.owner,
    }
