"""What makes queries cheaper: history, forget, advise."""

from typing import Annotated

import typer

from hudi_index_service import config, open_table
from hudi_index_service.cli.arguments import OutputOption, TableArgument
from hudi_index_service.cli.output import Items, output_of_report
from hudi_index_service.cli.reports import history_lines
from hudi_index_service.optimizer.history.history import stored_history
from hudi_index_service.storage.store import normalize_uri
from hudi_index_service.wording import counted

_SHAPE = ("shape", "queries", "last", "columns", "unindexed", "weight", "by_index", "scanned")
_SHAPE_MEANS = ("rows", "index_ms", "scan_ms", "corrections")


def history(table: TableArgument, output: OutputOption = None) -> None:
    """Show the recorded queries on a table by shape: columns and operators, without literals."""
    uri = normalize_uri(table)
    shapes = stored_history(config.settings()).shapes(uri)
    rows = [each.to_dict() for each in shapes]
    output_of_report(output).report(
        {"table": uri, "shapes": rows},
        history_lines(shapes),
        Items((*_SHAPE, *_SHAPE_MEANS), rows),
    )


def advise(table: TableArgument, output: OutputOption = None) -> None:
    """Advise indexes and writer settings that would make the recorded queries cheaper."""
    with open_table(table) as opened:
        advice = opened.advise()
    report = advice.to_dict()
    items = [
        {"advice": kind, "evidence": each}
        for kind in ("indexes", "unused", "writer")
        for each in report[kind]
    ]
    output_of_report(output).report(report, advice.lines(), Items(("advice", "evidence"), items))


def forget(
    table: Annotated[str | None, typer.Argument(metavar="TABLE", help="Base path.")] = None,
    all_tables: Annotated[
        bool, typer.Option("--all", help="Those on every table, of this user.")
    ] = False,
    output: OutputOption = None,
) -> None:
    """Delete the recorded queries on a table, or with --all on all tables."""
    if (table is None) != all_tables:
        raise typer.BadParameter("Give a table, or --all for every table of this user.")
    uri = None if table is None else normalize_uri(table)
    count = stored_history(config.settings()).forget(uri)
    report = {"table": uri, "shapes": count}
    lines = [f"{counted(count, 'shape')} of queries forgotten."]
    output_of_report(output).report(report, lines, Items(("table", "shapes"), [report]))
