"""What is remembered of queries, and what that advises: history, forget, advise."""

from typing import Annotated

import typer

from hudi_index_service import config, open_table
from hudi_index_service.cli.arguments import OutputOption, TableArgument
from hudi_index_service.cli.output import Items, output_of_report
from hudi_index_service.optimizer.history.history import stored_history
from hudi_index_service.reports import history_lines
from hudi_index_service.storage import normalise_uri

_SHAPE = ("shape", "queries", "last", "columns", "unindexed", "weight", "by_index", "scanned")
_SHAPE_MEANS = ("rows", "index_ms", "scan_ms", "corrections", "times_as_long")


def history(table: TableArgument, output: OutputOption = None) -> None:
    """Show what queries on a table had, by their shape: columns and operators, no literals."""
    uri = normalise_uri(table)
    shapes = stored_history(config.settings()).shapes(uri)
    told = [each.to_dict() for each in shapes]
    output_of_report(output).report(
        {"table": uri, "shapes": told},
        history_lines(shapes),
        Items((*_SHAPE, *_SHAPE_MEANS), told),
    )


def advise(table: TableArgument, output: OutputOption = None) -> None:
    """Say which indexes and writer settings would make queries cheaper, by those recorded."""
    with open_table(table) as opened:
        advice = opened.advise()
    told = advice.to_dict()
    items = [
        {"advice": kind, "evidence": each}
        for kind in ("indexes", "unused", "writer")
        for each in told[kind]
    ]
    output_of_report(output).report(told, advice.lines(), Items(("advice", "evidence"), items))


def forget(
    table: Annotated[
        str | None, typer.Argument(metavar="TABLE", help="Base path; all tables without.")
    ] = None,
    output: OutputOption = None,
) -> None:
    """Forget what is remembered of queries on a table, or on all tables."""
    uri = None if table is None else normalise_uri(table)
    gone = stored_history(config.settings()).forget(uri)
    told = {"table": uri, "shapes": gone}
    lines = [f"{gone} shapes of queries forgotten."]
    output_of_report(output).report(told, lines, Items(("table", "shapes"), [told]))
