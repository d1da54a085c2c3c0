"""Measuring this machine: calibrate."""

from typing import Annotated

import typer

from hudi_index_service.calibrate import MEANINGS
from hudi_index_service.calibrate import calibrate as measure
from hudi_index_service.cli.arguments import Output, OutputOption
from hudi_index_service.cli.console import print_json, print_rows, say
from hudi_index_service.config import settings


def calibrate(
    seconds: Annotated[float, typer.Option(min=0, help="About how long to measure.")] = 15.0,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what comes out.")] = False,
    output: OutputOption = Output.TEXT,
) -> None:
    """Measure what reading costs on this machine, on a table that it makes, for the optimizer to go
    by. Best run while the machine has nothing else to do."""
    found = measure(settings(), seconds=seconds, dry_run=dry_run)
    old, new = found.old.model_dump(), found.new.model_dump()
    if output is Output.JSON:
        print_json(
            {
                "old": old,
                "new": new,
                "measured": sorted(found.measured),
                "seconds": round(found.seconds, 3),
                "path": None if found.path is None else str(found.path),
            }
        )
        return
    rows = [
        {
            "constant": name,
            "old": f"{old[name]:.3g}",
            "new": f"{new[name]:.3g}" if name in found.measured else "not measured",
            "milliseconds for": MEANINGS.get(name, ""),
        }
        for name in new
    ]
    print_rows(rows, output)
    kept = "nothing was written" if found.path is None else f"kept in {found.path}"
    say(f"Measured in {found.seconds:.0f} s; {kept}.")
