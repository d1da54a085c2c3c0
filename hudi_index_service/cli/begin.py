"""The first steps with a table: doctor, init."""

import shlex
import sys
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import typer

from hudi_index_service import IndexedTable, open_table
from hudi_index_service.build.record import BuildState
from hudi_index_service.build.run import Build
from hudi_index_service.cli.arguments import OutputOption, TableArgument, parse_column
from hudi_index_service.cli.console import progress_bar
from hudi_index_service.cli.interrupt import ends_orderly
from hudi_index_service.cli.output import Format, Items, output_of_report
from hudi_index_service.cli.reports import amounts, build_lines
from hudi_index_service.maintain.propose import Proposal
from hudi_index_service.wording import printable


def doctor(
    table: Annotated[
        str | None,
        typer.Argument(
            metavar="TABLE", help="Base path of a table to check, too: reading, listing, writing."
        ),
    ] = None,
    output: OutputOption = None,
) -> None:
    """Check this installation, and tell how to fix each problem; exit status 1 if something is
    missing that is not optional."""
    from hudi_index_service.doctor import diagnose

    diagnosis = diagnose(table)
    report = diagnosis.to_dict()
    names = ("name", "status", "required", "detail", "remedy")
    lines = [each.line() for each in diagnosis.checks]
    output_of_report(output).report(report, lines, Items(names, report["checks"]))
    if not diagnosis.is_well:
        raise typer.Exit(1)


def init(
    table: TableArgument,
    using: Annotated[str, typer.Option(help="The index type of the proposed columns.")] = "btree",
    add: Annotated[
        list[str] | None,
        typer.Option(help="A column to index, too: msg or msg:analyzer=standard; may be repeated."),
    ] = None,
    drop: Annotated[
        list[str] | None, typer.Option(help="A column to leave out; may be repeated.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Define and build, do not ask.")] = False,
    output: OutputOption = None,
) -> None:
    """Propose columns to index, with the reason and the cost of each; on a terminal, ask whether to
    define and build the indexes. Elsewhere this needs --yes."""
    with open_table(table) as opened:
        proposal = opened.propose(
            using=using, add=[parse_column(each) for each in add or ()], drop=drop or ()
        )
        result: Build | None = None
        lines = list(_proposal_lines(proposal))
        as_text = output in (None, Format.TEXT)
        if proposal.indexes and (yes or (as_text and _is_terminal())):
            if as_text:
                print("\n".join(map(printable, lines)))
                lines = []
            if yes or typer.confirm("Define and build this?", err=True):
                result = _define_and_build(opened, proposal)
                lines += build_lines(result)
        if proposal.indexes and result is None:
            options = [("--using", using), *(("--add", each) for each in add or ())]
            options += [("--drop", each) for each in drop or ()]
            words = ("hudi-index", "init", table, *(word for pair in options for word in pair))
            lines.append(f"To define and build this: {shlex.join(words)} --yes")
    _report(proposal, result, lines, output)
    if result is not None:
        result.raise_for_failures()
        if result.state is BuildState.CANCELLED:
            raise typer.Exit(1)


def _proposal_lines(proposal: Proposal) -> Iterator[str]:
    yield from proposal.lines()
    if proposal.estimate is not None:
        yield f"To build this: {amounts(proposal.estimate)}."
        yield from proposal.estimate.warnings


def _is_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def _define_and_build(table: IndexedTable, proposal: Proposal) -> Build:
    for index in proposal.indexes:
        table.create_index(index.name, index.columns, using=index.using)
    with progress_bar("Indexing") as details, ends_orderly(table) as progress:
        return table.build(strategy="all", progress=progress, details=details)


def _report(
    proposal: Proposal, build: Build | None, lines: Sequence[str], output: Format | None
) -> None:
    report: dict[str, Any] = proposal.to_dict()
    report["build"] = None if build is None else build.to_dict()
    names = ("name", "type", "using", "options", "seconds", "index_bytes", "reason")
    output_of_report(output).report(report, lines, Items(names, report["columns"]))
