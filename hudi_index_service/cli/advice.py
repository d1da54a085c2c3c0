"""What to index: init proposes by the table's data, history and advise by its queries."""

import shlex
import sys
from collections.abc import Iterator
from typing import Annotated

import typer

from hudi_index_service import IndexedTable, config, open_table
from hudi_index_service.build.outcomes import Build
from hudi_index_service.cli.arguments import OutputOption, TableArgument, parse_column
from hudi_index_service.cli.output import Format, print_report
from hudi_index_service.cli.progress import ends_orderly, progress_bar
from hudi_index_service.cli.reports import amounts, build_lines, history_lines
from hudi_index_service.index.metadata.build_records import BuildState
from hudi_index_service.maintain.recommend.results import Proposal
from hudi_index_service.optimizer.history.history import stored_history
from hudi_index_service.storage.store import normalize_uri
from hudi_index_service.wording import counted, printable


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
        if proposal.indexes and (yes or (as_text and is_terminal())):
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
    report = {**proposal.to_dict(), "build": None if result is None else result.to_dict()}
    names = ("name", "type", "using", "options", "seconds", "index_bytes", "reason")
    print_report(output, report, lines, names, report["columns"])
    if result is not None:
        result.raise_for_failures()
        if result.state is BuildState.CANCELLED:
            raise typer.Exit(1)


def _proposal_lines(proposal: Proposal) -> Iterator[str]:
    yield from proposal.lines()
    if proposal.estimate is not None:
        yield f"To build this: {amounts(proposal.estimate)}."
        yield from proposal.estimate.warnings


def is_terminal() -> bool:
    """Whether somebody can be asked."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def _define_and_build(table: IndexedTable, proposal: Proposal) -> Build:
    for index in proposal.indexes:
        table.create_index(index.name, index.columns, using=index.using)
    with progress_bar("Indexing") as details, ends_orderly(table) as progress:
        return table.build(strategy="all", progress=progress, details=details)


_SHAPE = (
    *("shape", "queries", "last", "columns", "unindexed", "weight", "by_index", "scanned"),
    *("rows", "index_ms", "scan_ms", "corrections"),
)


def history(table: TableArgument, output: OutputOption = None) -> None:
    """Show the recorded queries on a table by shape: columns and operators, without literals."""
    uri = normalize_uri(table)
    shapes = stored_history(config.settings()).shapes(uri)
    rows = [each.to_dict() for each in shapes]
    report = {"table": uri, "shapes": rows}
    print_report(output, report, history_lines(shapes), _SHAPE, rows)


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
    print_report(output, report, advice.lines(), ("advice", "evidence"), items)


def forget(
    table: Annotated[str | None, typer.Argument(metavar="TABLE", help="Base path.")] = None,
    all_tables: Annotated[
        bool, typer.Option("--all", help="Those on every table, of this user.")
    ] = False,
    output: OutputOption = None,
) -> None:
    """Delete the recorded queries on a table, or with --all on all tables."""
    if (table is None) != all_tables:
        raise typer.BadParameter("Give a table, or --all for every table of this user.")
    uri = None if table is None else normalize_uri(table)
    count = stored_history(config.settings()).forget(uri)
    lines = [f"{counted(count, 'shape')} of queries forgotten."]
    print_report(output, {"table": uri, "shapes": count}, lines)
