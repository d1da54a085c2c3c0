"""What makes queries cheaper: history, forget, advise, calibrate."""

from typing import Annotated

import typer

from hudi_index_service import config, open_table
from hudi_index_service.calibrate import MEANINGS
from hudi_index_service.calibrate import calibrate as measure
from hudi_index_service.cli.arguments import OutputOption, TableArgument
from hudi_index_service.cli.output import Items, output_of_report, table_lines
from hudi_index_service.cli.reports import history_lines
from hudi_index_service.optimizer.history.history import stored_history
from hudi_index_service.storage.store import normalise_uri
from hudi_index_service.wording import counted

_SHAPE = ("shape", "queries", "last", "columns", "unindexed", "weight", "by_index", "scanned")
_SHAPE_MEANS = ("rows", "index_ms", "scan_ms", "corrections")


def history(table: TableArgument, output: OutputOption = None) -> None:
    """Show the recorded queries on a table by shape: columns and operators, without literals."""
    uri = normalise_uri(table)
    shapes = stored_history(config.settings()).shapes(uri)
    told = [each.to_dict() for each in shapes]
    output_of_report(output).report(
        {"table": uri, "shapes": told},
        history_lines(shapes),
        Items((*_SHAPE, *_SHAPE_MEANS), told),
    )


def advise(table: TableArgument, output: OutputOption = None) -> None:
    """Advise indexes and writer settings that would make the recorded queries cheaper."""
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
        str | None, typer.Argument(metavar="TABLE", help="Base path; by default all tables.")
    ] = None,
    output: OutputOption = None,
) -> None:
    """Delete the recorded queries on a table, or on all tables."""
    uri = None if table is None else normalise_uri(table)
    gone = stored_history(config.settings()).forget(uri)
    told = {"table": uri, "shapes": gone}
    lines = [f"{counted(gone, 'shape')} of queries forgotten."]
    output_of_report(output).report(told, lines, Items(("table", "shapes"), [told]))


def calibrate(
    seconds: Annotated[float, typer.Option(min=0, help="Approximate time to measure.")] = 15.0,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show the result.")] = False,
    output: OutputOption = None,
) -> None:
    """Measure the costs of reading on this machine with a generated file, for the optimizer. Run it
    while the machine is idle."""
    found = measure(config.settings(), seconds=seconds, dry_run=dry_run)
    old, new = found.old.model_dump(), found.new.model_dump()
    report = {
        "old": old,
        "new": new,
        "measured": sorted(found.measured),
        "seconds": round(found.seconds, 3),
        "path": None if found.path is None else str(found.path),
    }
    rows = [
        (
            name,
            f"{old[name]:.3g}",
            f"{new[name]:.3g}" if name in found.measured else "not measured",
            MEANINGS.get(name, ""),
        )
        for name in new
    ]
    kept = "nothing was written" if found.path is None else f"stored in {found.path}"
    lines = [
        *table_lines(("constant", "old", "new", "milliseconds for"), rows),
        f"Measured in {found.seconds:.0f} s; {kept}.",
    ]
    items = [
        {"constant": name, "old": old[name], "new": new[name], "measured": name in found.measured}
        for name in new
    ]
    output_of_report(output).report(
        report, lines, Items(("constant", "old", "new", "measured"), items)
    )
