"""Keeping the index folder in order: clean, verify."""

import json
from dataclasses import asdict
from typing import Annotated

import typer

from hudi_index_service import open_table
from hudi_index_service.cli.arguments import Output, OutputOption, TableArgument
from hudi_index_service.cli.console import say
from hudi_index_service.verify import DEFAULT_SAMPLE


def clean(
    table: TableArgument,
    dry_run: Annotated[bool, typer.Option(help="Only say what would go.")] = False,
    grace: Annotated[
        float | None, typer.Option(help="Grace period in seconds, instead of the settings' own.")
    ] = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Remove what has expired from the table's index folder, and copies of it from the cache."""
    cleaning = open_table(table).clean(dry_run=dry_run, grace_seconds=grace)
    rows = [
        {"path": each.path, "bytes": each.size, "reason": each.reason} for each in cleaning.removals
    ]
    copies = [{"path": str(each.path), "bytes": each.size} for each in cleaning.copies]
    stored, unremoved = (
        [{"path": each.path, "reason": each.reason} for each in some]
        for some in (cleaning.stored, cleaning.unremoved)
    )
    if output is Output.JSON:
        report = {
            "dry_run": dry_run,
            "removals": rows,
            "copies": copies,
            "folders": cleaning.folders,
            "bytes": cleaning.bytes,
            "stored": stored,
            "unremoved": unremoved,
        }
        print(json.dumps(report, indent=1, ensure_ascii=False))
        return
    for row in [*rows, *({**copy, "reason": "no entry is like this copy"} for copy in copies)]:
        say(f"{row['bytes']:>14,}  {row['path']}  {row['reason']}")
    verb = "would go" if dry_run else "removed"
    for each in stored:
        say(f"What is stored for {each['path']} {verb}: {each['reason']}")
    for each in unremoved:
        say(f"{each['path']} could not be removed: {each['reason']}")
    say(f"{len(rows) + len(copies)} files {verb}, {cleaning.bytes:,} bytes of the table's.")


def verify(
    table: TableArgument,
    repair: Annotated[bool, typer.Option("--repair", help="Rebuild what is damaged.")] = False,
    sample: Annotated[
        int, typer.Option(min=0, help="Rows of each base file to look up; 0 for none.")
    ] = DEFAULT_SAMPLE,
    output: OutputOption = Output.TEXT,
) -> None:
    """Check entries against their checksums, by their index type, and against their base files;
    exit status 1 if anything is wrong and not repaired."""
    found = open_table(table).verify(repair=repair, sample=sample)
    if output is Output.JSON:
        report = {
            "entries": found.entries,
            "rows": found.rows,
            "problems": [asdict(problem) for problem in found.problems],
            "skipped": found.skipped,
        }
        print(json.dumps(report, indent=1, ensure_ascii=False))
    else:
        for problem in found.problems:
            fate = "repaired" if problem.repaired else "wrong"
            say(f"{fate}: {problem.path}: {problem.reason}")
        for base_file in found.skipped:
            say(f"skipped: {base_file}: its entry is of a newer release")
        say(
            f"{found.entries} entries checked, {found.rows} rows looked up, "
            f"{len(found.problems)} problems, "
            f"{len(found.problems) - len(found.unrepaired)} repaired."
        )
    if found.unrepaired:
        raise typer.Exit(1)
