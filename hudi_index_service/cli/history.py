"""What is remembered of queries, and what that advises: history, forget, advise."""

from typing import Annotated

import typer

from hudi_index_service import config, open_table
from hudi_index_service.cli.arguments import Output, OutputOption, TableArgument
from hudi_index_service.cli.console import print_json, say, say_all
from hudi_index_service.optimizer.history.history import stored_history
from hudi_index_service.storage import normalise_uri


def history(table: TableArgument, output: OutputOption = Output.TEXT) -> None:
    """Show what queries on a table had, by their shape: columns and operators, no literals."""
    shapes = stored_history(config.settings()).shapes(normalise_uri(table))
    if output is Output.JSON:
        print_json({"table": normalise_uri(table), "shapes": [each.to_dict() for each in shapes]})
        return
    for shape in shapes:
        told = shape.to_dict()
        say(shape.shape)
        say(
            f"  {told['queries']} queries, the last {told['last']}; of the last "
            f"{told['weight']:.1f}, {told['by_index']:.1f} by index in {told['index_ms']:.1f} ms, "
            f"{told['scanned']:.1f} scanned in {told['scan_ms']:.1f} ms; {told['rows']:,.1f} rows"
        )
        if told["unindexed"]:
            say(f"  no index on {', '.join(told['unindexed'])}")
        if told["corrections"]:
            factors = (f"{name} × {value:.3g}" for name, value in told["corrections"].items())
            say(f"  corrects {', '.join(factors)}")
        if told["times_as_long"]:
            ways = {"index_ms": "by index", "scan_ms": "by scan"}
            took = (f"{ways[name]} {value:.3g}" for name, value in told["times_as_long"].items())
            say(f"  times as long as expected: {', '.join(took)}")
    say(f"{len(shapes)} shapes.")


def advise(table: TableArgument, output: OutputOption = Output.TEXT) -> None:
    """Say which indexes and writer settings would make queries cheaper, by those recorded."""
    with open_table(table) as opened:
        advice = opened.advise()
    if output is Output.JSON:
        print_json(advice.to_dict())
    else:
        say_all(advice.lines())


def forget(
    table: Annotated[
        str | None, typer.Argument(metavar="TABLE", help="Base path; all tables without.")
    ] = None,
) -> None:
    """Forget what is remembered of queries on a table, or on all tables."""
    uri = None if table is None else normalise_uri(table)
    gone = stored_history(config.settings()).forget(uri)
    say(f"{gone} shapes of queries forgotten.")
