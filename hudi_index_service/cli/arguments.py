"""Arguments and options that several commands share."""

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
    list[str] | None,
    typer.Option(help="A hoodie.index.* key as key=value; may be repeated."),
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
