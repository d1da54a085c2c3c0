"""Commands for a fleet of tables: ``hudi-index fleet``."""

from pathlib import Path
from typing import Annotated

import typer

from hudi_index_service.cli.console import complain, say
from hudi_index_service.errors import FleetFileInvalid
from hudi_index_service.wording import counted

fleet = typer.Typer(help="A fleet of tables, as a fleet file names them.", no_args_is_help=True)


@fleet.command()
def check(
    file: Annotated[Path, typer.Argument(help="The fleet file.")],
    explain: Annotated[
        str | None,
        typer.Option(
            metavar="TABLE",
            help="Look up the fleet's tables, and say which group this one is in, and where each "
            "value comes from. A name in the fleet, a base path, glue://db.table or "
            "hive://host:9083/db.table.",
        ),
    ] = None,
) -> None:
    """Check a fleet file; exit status 1 if it has mistakes, of which each is printed with its line
    and field."""
    from hudi_index_service.fleet.file import read_fleet_file

    try:
        read = read_fleet_file(file)
    except FleetFileInvalid as error:
        for mistake in error.mistakes:
            complain(f"{file}: {mistake}")
        raise typer.Exit(1) from error
    if explain is None:
        say(f"{file}: {counted(len(read.groups), 'group')}, no mistake.")
        return

    from hudi_index_service.fleet.discovery import Discovery
    from hudi_index_service.fleet.explain import explain as explained

    # What cannot be looked up is logged.
    explanation = explained(read, Discovery().discover(read), explain)
    where = explanation.uri or "not found now; taken by its place alone"
    say(f"{explanation.table}: {where}")
    say(f"group: {explanation.group.name}")
    widest = max(len(each.key) for each in explanation.values)
    for each in explanation.values:
        say(f"  {each.key:<{widest}}  {each.value}  ({each.origin})")
