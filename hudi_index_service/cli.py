"""The command line: ``hudi-index``. Every command is one call of the façade.

Errors of the service are one line with code and remedy, exit status 1; bad usage is status 2.
"""

import json
import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.logging import RichHandler
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from hudi_index_service import Column, open_table
from hudi_index_service.build.strategy import Strategy
from hudi_index_service.errors import ConfigInvalid, IndexServiceError, SnapshotChanged

app = typer.Typer(
    help="Row-exact secondary indexes for Apache Hudi tables.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
out = Console()
err = Console(stderr=True)


class Output(Enum):
    """How results are printed."""

    TEXT = "text"
    JSON = "json"


class UseIndex(Enum):
    """Whether a query may, must not or must use indexes."""

    AUTO = "auto"
    NEVER = "never"
    REQUIRE = "require"


TableArgument = Annotated[str, typer.Argument(metavar="TABLE", help="Base path of the table.")]
OutputOption = Annotated[Output, typer.Option("--output", "-o", help="How results are printed.")]
WhereArgument = Annotated[str, typer.Argument(metavar="WHERE", help="A Spark SQL predicate.")]


@app.callback()
def _options(
    log_level: Annotated[str, typer.Option(help="debug, info, warning or error.")] = "warning",
) -> None:
    if log_level.upper() not in logging.getLevelNamesMapping():
        raise ConfigInvalid(
            f"There is no log level {log_level!r}.", remedy="Use debug, info, warning or error."
        )
    handler = RichHandler(console=err, show_path=False, rich_tracebacks=False)
    logging.basicConfig(level=log_level.upper(), format="%(message)s", handlers=[handler])


@app.command()
def create(
    table: TableArgument,
    name: Annotated[str, typer.Argument(help="Name of the index.")],
    columns: Annotated[
        list[str],
        typer.Argument(help="Columns, each with options if need be: msg or msg:analyzer=standard."),
    ],
    using: Annotated[str, typer.Option(help="The index type.")] = "lucene",
    if_not_exists: Annotated[bool, typer.Option(help="Do nothing if it exists.")] = False,
) -> None:
    """Define an index; `build` or the hook fills it."""
    definition = open_table(table).create_index(
        name, [_column(text) for text in columns], using=using, if_not_exists=if_not_exists
    )
    names = ", ".join(column.name for column in definition.columns)
    _say(f"Index {definition.name} ({definition.index_type}) on {names}.")


def _column(text: str) -> Column:
    name, _, options = text.partition(":")
    pairs = [option.partition("=") for option in options.split(",") if option]
    return Column(name=name, options={key: value for key, _, value in pairs})


@app.command()
def drop(
    table: TableArgument,
    name: Annotated[str, typer.Argument(help="Name of the index.")],
    purge: Annotated[bool, typer.Option(help="Remove its entries at once.")] = False,
) -> None:
    """Drop an index."""
    open_table(table).drop_index(name, purge=purge)
    _say(f"Index {name} is dropped.")


@app.command()
def show(table: TableArgument, output: OutputOption = Output.TEXT) -> None:
    """List the indexes of a table."""
    rows = [
        {
            "name": each.name,
            "type": each.index_type,
            "columns": ", ".join(column.name for column in each.columns),
            "created": each.created,
        }
        for each in open_table(table).indexes()
    ]
    _print_rows(rows, output)


@app.command()
def status(table: TableArgument, output: OutputOption = Output.TEXT) -> None:
    """Show how much of the table each index covers, and the builds."""
    opened = open_table(table)
    indexes = [
        {
            "index": each.definition.name,
            "base files": each.base_files,
            "indexed": each.indexed,
            "covered": each.covered,
            "bytes": each.index_bytes,
        }
        for each in opened.status()
    ]
    builds = [
        {"build": each.number, "state": each.state, **_summary(each.finished or each.started)}
        for each in opened.builds()
    ]
    if output is Output.JSON:
        out.print_json(json.dumps({"indexes": indexes, "builds": builds}))
        return
    _print_rows(indexes, output)
    _print_rows(builds, output)


def _summary(record: dict[str, Any]) -> dict[str, Any]:
    return {key: record.get(key, "") for key in ("due", "built", "failed", "seconds")}


@app.command()
def build(
    table: TableArgument,
    strategy: Annotated[Strategy, typer.Option(help="Which base files.")] = Strategy.INCREMENTAL,
    partition: Annotated[
        list[str] | None, typer.Option(help="Only this partition; may be repeated.")
    ] = None,
    dry_run: Annotated[bool, typer.Option(help="Only say what is due.")] = False,
) -> None:
    """Build the index entries that are due, in this process."""
    with _progress("Indexing base files") as progress:
        result = open_table(table).build(
            strategy=strategy, partitions=partition, dry_run=dry_run, progress=progress
        )
    if dry_run:
        for entry in result.due:
            _say(f"{entry.index_type} {entry.base_file.path}")
    _say(
        f"{len(result.due)} due, {len(result.built)} built, {len(result.failed)} failed, "
        f"{result.seconds:.1f} s."
    )
    result.raise_for_failures()


@app.command()
def query(
    table: TableArgument,
    where: WhereArgument,
    columns: Annotated[str | None, typer.Option(help="Comma-separated; all without.")] = None,
    limit: Annotated[int | None, typer.Option(help="At most this many rows.")] = None,
    use_index: Annotated[UseIndex, typer.Option(help="auto, never or require.")] = UseIndex.AUTO,
    count: Annotated[bool, typer.Option("--count", help="Only count the rows.")] = False,
    output: OutputOption = Output.TEXT,
) -> None:
    """Print the rows that fulfil a predicate."""
    scan = open_table(table).scan(
        where,
        columns=None if columns is None else [name.strip() for name in columns.split(",")],
        limit=limit,
        use_index=use_index.value,
    )
    if count:
        _say(str(scan.count()))
        return
    for batch in scan.to_batches():
        rows = batch.to_pylist()
        if output is Output.JSON:
            for row in rows:
                print(json.dumps(row, default=str, ensure_ascii=False))
        else:
            _print_rows(rows, output)


@app.command()
def explain(
    table: TableArgument,
    where: WhereArgument,
    analyze: Annotated[bool, typer.Option(help="Run it, and show what was read.")] = False,
    output: OutputOption = Output.TEXT,
) -> None:
    """Show how a query is read, and why."""
    explanation = open_table(table).scan(where).explain(analyze=analyze)
    if output is Output.JSON:
        out.print_json(json.dumps(explanation.to_dict()))
    else:
        _say(str(explanation))


@app.command("clean")
def clean_up(
    table: TableArgument,
    dry_run: Annotated[bool, typer.Option(help="Only say what would go.")] = False,
) -> None:
    """Remove what has expired from the table's index folder."""
    cleaning = open_table(table).clean(dry_run=dry_run)
    for removal in cleaning.removals:
        _say(f"{removal.path}: {removal.reason}")
    verb = "would go" if dry_run else "removed"
    _say(f"{len(cleaning.removals)} files {verb}, {cleaning.bytes:,} bytes.")


@app.command()
def verify(table: TableArgument) -> None:
    """Check every byte of the entries in use; exit status 1 if any is wrong."""
    wrong = open_table(table).verify()
    for error in wrong:
        err.print(str(error), highlight=False, markup=False, soft_wrap=True)
    if wrong:
        raise typer.Exit(1)
    _say("All entries are as they were written.")


@app.command()
def serve(
    tables: Annotated[list[str], typer.Argument(help="Base paths of the tables to serve.")],
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="Port; 0 for a free one.")] = None,
    wait: Annotated[float, typer.Option(help="Seconds to hold a write for its build.")] = 0.0,
    clean: Annotated[bool, typer.Option("--clean", help="Clean after each build.")] = False,
) -> None:
    """Listen for Hudi's commit callbacks and build what is due, until stopped."""
    from hudi_index_service.server.daemon import serve as serve_until_stopped

    serve_until_stopped(tables, wait=wait, host=host, port=port, clean=clean)


@app.command()
def demo(
    folder: Annotated[
        Path | None, typer.Option(help="Where to put the tables; a temporary folder without.")
    ] = None,
    rows: Annotated[int, typer.Option(help="Rows of the large table.")] = 1_000_000,
    configs: Annotated[Path, typer.Option(help="The folder of the write config.")] = Path(
        "configs"
    ),
) -> None:
    """Write, cluster, compact, index, query and clean real Hudi tables; needs Spark and Hudi."""
    from hudi_index_service.demo.story import run_demo

    if not run_demo(out, folder, rows, configs):
        raise typer.Exit(1)


@contextmanager
def _progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar on standard error that appears with the first news."""
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=err,
        transient=True,
    )
    with bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _say(text: str) -> None:
    """Prints text as it is: no brackets taken for markup, no path broken at the console's width."""
    out.print(text, highlight=False, markup=False, soft_wrap=True)


def _print_rows(rows: list[dict[str, Any]], output: Output) -> None:
    if output is Output.JSON:
        out.print_json(json.dumps(rows, default=str))
        return
    if not rows:
        return
    table = Table(*rows[0])
    for row in rows:
        table.add_row(*("NULL" if value is None else str(value) for value in row.values()))
    out.print(table, markup=False)


def main() -> None:
    """The console script's entry: errors of the service become one line and exit status 1."""
    try:
        app()
    except IndexServiceError as error:
        err.print(str(error), style="red", highlight=False, markup=False, soft_wrap=True)
        sys.exit(1)
    except FileNotFoundError as error:  # Hudi or a cleaner took it away in the middle
        gone = SnapshotChanged(f"A file went while it was needed: {error}.")
        err.print(str(gone), style="red", highlight=False, markup=False, soft_wrap=True)
        sys.exit(1)
    except BrokenPipeError:  # the reader of our output has gone, such as head
        sys.exit(141)


if __name__ == "__main__":
    main()
