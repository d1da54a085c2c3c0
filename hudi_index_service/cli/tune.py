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
    table: Annotated[
        str | None, typer.Argument(metavar="TABLE", help="Base path; by default all tables.")
    ] = None,
    output: OutputOption = None,
) -> None:
    """Delete the recorded queries on a table, or on all tables."""
    uri = None if table is None else normalize_uri(table)
    count = stored_history(config.settings()).forget(uri)
    report = {"table": uri, "shapes": count}
    lines = [f"{counted(count, 'shape')} of queries forgotten."]
    output_of_report(output).report(report, lines, Items(("table", "shapes"), [report]))


def calibrate(
    seconds: Annotated[float, typer.Option(min=0, help="Approximate time to measure.")] = 15.0,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show the result.")] = False,
    output: OutputOption = None,
) -> None:
    """Measure the costs of reading on this machine with a generated file, for the optimizer. Run it
    while the machine is idle."""
    calibration = measure(config.settings(), seconds=seconds, dry_run=dry_run)
    old, new = calibration.old.model_dump(), calibration.new.model_dump()
    report = {
        "old": old,
        "new": new,
        "measured": sorted(calibration.measured),
        "seconds": round(calibration.seconds, 3),
        "path": None if calibration.path is None else str(calibration.path),
    }
    rows = [
        (
            name,
            f"{old[name]:.3g}",
            f"{new[name]:.3g}" if name in calibration.measured else "not measured",
            MEANINGS.get(name, ""),
        )
        for name in new
    ]
    result = "nothing was written" if calibration.path is None else f"stored in {calibration.path}"
    lines = [
        *table_lines(("constant", "old", "new", "milliseconds for"), rows),
        f"Measured in {calibration.seconds:.0f} s; {result}.",
    ]
    items = [
        {
            "constant": name,
            "old": old[name],
            "new": new[name],
            "measured": name in calibration.measured,
        }
        for name in new
    ]
    output_of_report(output).report(
        report, lines, Items(("constant", "old", "new", "measured"), items)
    )
