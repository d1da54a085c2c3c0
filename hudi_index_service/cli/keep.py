"""Maintenance of the index folder: clean, verify."""

from dataclasses import asdict
from typing import Annotated

import typer

from hudi_index_service import open_table
from hudi_index_service.cli.arguments import OutputOption, TableArgument
from hudi_index_service.cli.output import Items, output_of_report
from hudi_index_service.cli.reports import clean_lines, verify_lines
from hudi_index_service.hook.table_upkeep import configured
from hudi_index_service.maintain import DEFAULT_SAMPLE


def clean(
    table: TableArgument,
    dry_run: Annotated[bool, typer.Option(help="Only show what would be removed.")] = False,
    grace: Annotated[
        float | None, typer.Option(min=0, help="Grace period in seconds; overrides the settings.")
    ] = None,
    output: OutputOption = None,
) -> None:
    """Remove expired files from the table's index folder, and their copies from the cache."""
    cleaning = configured(table).clean(dry_run=dry_run, grace_seconds=grace)
    rows = [
        {"path": each.path, "bytes": each.size, "reason": each.reason} for each in cleaning.removals
    ]
    copies = [{"path": str(each.path), "bytes": each.size} for each in cleaning.copies]
    stored, unremoved = (
        [{"path": each.path, "reason": each.reason} for each in group]
        for group in (cleaning.stored, cleaning.unremoved)
    )
    report = {
        "dry_run": dry_run,
        "removals": rows,
        "copies": copies,
        "folders": cleaning.folders,
        "bytes": cleaning.bytes,
        "stored": stored,
        "unremoved": unremoved,
    }
    items = [
        {"list": name, **each}
        for name, group in (
            ("removals", rows),
            ("copies", copies),
            ("stored", stored),
            ("unremoved", unremoved),
        )
        for each in group
    ]
    output_of_report(output).report(
        report, clean_lines(cleaning, dry_run), Items(("list", "path", "bytes", "reason"), items)
    )


def verify(
    table: TableArgument,
    repair: Annotated[bool, typer.Option("--repair", help="Rebuild damaged entries.")] = False,
    sample: Annotated[
        int, typer.Option(min=0, help="Rows of each base file to look up; 0 for none.")
    ] = DEFAULT_SAMPLE,
    output: OutputOption = None,
) -> None:
    """Check entries against their checksums, by their index type, and against their base files.
    Exit status 1 if a problem is not repaired."""
    verification = open_table(table).verify(repair=repair, sample=sample)
    problems = [asdict(problem) for problem in verification.problems]
    report = {
        "entries": verification.entries,
        "rows": verification.rows,
        "problems": problems,
        "skipped": verification.skipped,
    }
    items = Items(("index_type", "base_file", "path", "reason", "repaired"), problems)
    output_of_report(output).report(report, verify_lines(verification), items)
    if verification.unrepaired:
        raise typer.Exit(1)
