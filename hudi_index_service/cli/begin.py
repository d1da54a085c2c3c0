"""The first steps with a table: doctor, init."""

from typing import Annotated

import typer

from hudi_index_service.cli.arguments import OutputOption
from hudi_index_service.cli.output import Items, output_of_report
from hudi_index_service.doctor import diagnose


def doctor(
    table: Annotated[
        str | None,
        typer.Argument(
            metavar="TABLE", help="Base path of a table to check, too: reading, listing, writing."
        ),
    ] = None,
    output: OutputOption = None,
) -> None:
    """Check this installation, and how to mend what is wrong; exit status 1 if something is missing
    that is not optional."""
    diagnosis = diagnose(table)
    report = diagnosis.to_dict()
    names = ("name", "status", "required", "detail", "remedy")
    lines = [each.line() for each in diagnosis.checks]
    output_of_report(output).report(report, lines, Items(names, report["checks"]))
    if not diagnosis.is_well:
        raise typer.Exit(1)
