"""Arguments and options that several commands share."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from hudi_index_service import Column
from hudi_index_service.cli.output import Format
from hudi_index_service.errors import UsageInvalid
from hudi_index_service.read.planner import QueryType

TableArgument = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="Base path of the table, glue://db.table or hive://host:9083/db.table.",
    ),
]
TablesArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="TABLES",
        help="Base paths of tables, glue://db.table, hive://host:9083/db.table, or folders with "
        "tables.",
    ),
]
OutputOption = Annotated[
    Format | None,
    typer.Option(
        "--output",
        "-o",
        help="text; json: for rows one object per line, for a report one object; csv: lists and "
        "structs as JSON text. By default, text on a terminal; elsewhere json for rows and text "
        "for reports.",
    ),
]
PropsOption = Annotated[
    Path | None,
    typer.Option(help="A Hudi write config (properties file) with hoodie.index.* keys."),
]
HoodieConfOption = Annotated[
    list[str] | None, typer.Option(help="A hoodie.index.* key as key=value; may be repeated.")
]
WhereArgument = Annotated[str, typer.Argument(metavar="WHERE", help="A Spark SQL predicate.")]
AsOfOption = Annotated[
    str | None,
    typer.Option(
        help="The table as of this time: yyyyMMddHHmmssSSS, yyyy-MM-dd HH:mm:ss, yyyy-MM-dd."
    ),
]
QueryTypeOption = Annotated[
    QueryType, typer.Option(help="snapshot, or read_optimized to read only base files.")
]


def tables_of(arguments: Sequence[str]) -> tuple[list[str], bool]:
    """The tables that arguments name, folders replaced by the tables in them; and whether one
    argument names one table, as itself."""
    from hudi_index_service.fleet.policies.discovery import tables_at

    tables = list(dict.fromkeys(table for each in arguments for table in tables_at(each)))
    return tables, tables == list(arguments) and len(tables) == 1


def parse_column(text: str) -> Column:
    """A column as commands take it: ``msg``, or ``msg:analyzer=standard,keyword=false``. Raises
    UsageInvalid."""
    name, _, options = text.partition(":")
    pairs = [option.partition("=") for option in options.split(",") if option]
    for key, equals, value in pairs:
        if not (key and equals and value):
            raise UsageInvalid(
                f"{text}: the option {key} has no value.",
                remedy=f"Write {name}:{key or 'analyzer'}=VALUE.",
            )
    return Column(name=name, options={key: value for key, _, value in pairs})
