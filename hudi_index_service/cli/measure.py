"""Measuring this machine: calibrate."""

from typing import Annotated

import typer

from hudi_index_service.calibrate import MEANINGS
from hudi_index_service.calibrate import calibrate as measure
from hudi_index_service.cli.arguments import OutputOption
from hudi_index_service.cli.output import Items, output_of_report, table_lines
from hudi_index_service.config import settings


def calibrate(
    seconds: Annotated[float, typer.Option(min=0, help="About how long to measure.")] = 15.0,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what comes out.")] = False,
    output: OutputOption = None,
) -> None:
    """Measure what reading costs on this machine, on a table that it makes, for the optimizer to go
    by. Best run while the machine has nothing else to do."""
    found = measure(settings(), seconds=seconds, dry_run=dry_run)
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
    kept = "nothing was written" if found.path is None else f"kept in {found.path}"
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
