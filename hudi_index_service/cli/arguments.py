"""Arguments and options that several commands share."""

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from hudi_index_service.cli.output import Format


class UseIndex(Enum):
    """Whether a query may, must not or must use indexes."""

    AUTO = "auto"
    NEVER = "never"
    REQUIRE = "require"


class Words(Enum):
    """How many of the words that are searched for a row must have."""

    ANY = "any"
    ALL = "all"


class QueryType(Enum):
    """Whether a query sees what lies in log files."""

    SNAPSHOT = "snapshot"
    READ_OPTIMIZED = "read_optimized"


TableArgument = Annotated[str, typer.Argument(metavar="TABLE", help="Base path of the table.")]
OutputOption = Annotated[
    Format | None,
    typer.Option(
        "--output",
        "-o",
        help="text; json: for rows an object a line, for a report one object; csv: lists and "
        "structs are JSON text in their cells. By default text on a terminal; elsewhere rows are "
        "json, and reports text.",
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
    typer.Option(help="The table as it was: yyyyMMddHHmmssSSS, yyyy-MM-dd HH:mm:ss, yyyy-MM-dd."),
]
QueryTypeOption = Annotated[
    QueryType, typer.Option(help="snapshot; read_optimized for base files alone.")
]
