"""The command line: ``hudi-index``. Every command is one call of the façade.

Errors of the service are one line with code and remedy, exit status 1; bad usage is status 2, an
alert of `status` 3.
"""

import json
import logging
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.logging import RichHandler
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from hudi_index_service import Budget, Column, open_table
from hudi_index_service.build.record import BuildState
from hudi_index_service.build.strategy import Strategy
from hudi_index_service.definitions import IndexDefinition
from hudi_index_service.errors import ConfigInvalid, IndexServiceError, SnapshotChanged
from hudi_index_service.reports import build_lines, status_lines
from hudi_index_service.status import Thresholds
from hudi_index_service.upkeep import TableUpkeep, read_write_config
from hudi_index_service.verify import DEFAULT_SAMPLE

app = typer.Typer(
    help="Row-exact secondary indexes for Apache Hudi tables.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
_ALERT = 3

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


class QueryType(Enum):
    """Whether a query sees what lies in log files."""

    SNAPSHOT = "snapshot"
    READ_OPTIMIZED = "read_optimized"


TableArgument = Annotated[str, typer.Argument(metavar="TABLE", help="Base path of the table.")]
OutputOption = Annotated[Output, typer.Option("--output", "-o", help="How results are printed.")]
PropsOption = Annotated[
    Path | None,
    typer.Option(help="A Hudi write config (properties file) with hoodie.index.* keys."),
]
HoodieConfOption = Annotated[
    list[str] | None,
    typer.Option(help="A hoodie.index.* key as key=value; may be repeated."),
]
WhereArgument = Annotated[str, typer.Argument(metavar="WHERE", help="A Spark SQL predicate.")]
AsOfOption = Annotated[
    str | None,
    typer.Option(help="The table as it was: yyyyMMddHHmmssSSS, yyyy-MM-dd HH:mm:ss, yyyy-MM-dd."),
]
QueryTypeOption = Annotated[
    QueryType, typer.Option(help="snapshot; read_optimized for base files alone.")
]


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
    using: Annotated[
        list[str] | None, typer.Option(help="The index type, lucene without; may be repeated.")
    ] = None,
    if_not_exists: Annotated[bool, typer.Option(help="Do nothing if it exists.")] = False,
) -> None:
    """Define an index; `build` or the hook fills it."""
    definition = open_table(table).create_index(
        name,
        [_column(text) for text in columns],
        using=using or "lucene",
        if_not_exists=if_not_exists,
    )
    _say_definition(definition)


def _say_definition(definition: IndexDefinition) -> None:
    names = ", ".join(column.name for column in definition.columns)
    _say(f"Index {definition.name} ({', '.join(definition.index_types)}) on {names}.")


def _column(text: str) -> Column:
    name, _, options = text.partition(":")
    pairs = [option.partition("=") for option in options.split(",") if option]
    return Column(name=name, options={key: value for key, _, value in pairs})


@app.command()
def alter(
    table: TableArgument,
    name: Annotated[str, typer.Argument(help="Name of the index.")],
    add: Annotated[
        list[str] | None,
        typer.Option(help="A further column: msg or msg:analyzer=standard; may be repeated."),
    ] = None,
    drop: Annotated[
        list[str] | None, typer.Option(help="A column to leave out; may be repeated.")
    ] = None,
    changed: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="Other options for a column: msg:analyzer=simple; may be repeated."
        ),
    ] = None,
    rename_to: Annotated[str | None, typer.Option(help="Another name.")] = None,
) -> None:
    """Change an index; `refresh` brings its entries up to date."""
    definition = open_table(table).alter_index(
        name,
        add=[_column(text) for text in add or ()],
        drop=drop or (),
        options={column.name: column.options for column in map(_column, changed or ())},
        rename_to=rename_to,
    )
    _say_definition(definition)


@app.command()
def refresh(
    table: TableArgument,
    name: Annotated[str, typer.Argument(help="Name of the index.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what is due.")] = False,
    output: OutputOption = Output.TEXT,
) -> None:
    """Bring an index's entries up to date with its definition, and build what is due for it."""
    with _progress("Indexing base files") as progress:
        result = open_table(table).refresh(name, dry_run=dry_run, progress=progress)
    if output is Output.JSON:
        _print_json(result.to_dict())
    else:
        _say_all(build_lines(result))
    result.raise_for_failures()
    if result.state is BuildState.CANCELLED:
        raise typer.Exit(1)


@app.command()
def drop(
    table: TableArgument,
    name: Annotated[str | None, typer.Argument(help="Name of the index.")] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(help="Instead of a name: take this column out of every index; repeatable."),
    ] = None,
    purge: Annotated[
        bool, typer.Option(help="Remove every byte that no live index asks for, at once.")
    ] = False,
) -> None:
    """Drop an index, or columns; exit status 1 if something could not be purged."""
    dropped = open_table(table).drop_index(name, columns=column, purge=purge)
    for definition in dropped.indexes:
        _say(f"Index {definition.name} is dropped.")
    for definition in dropped.narrowed:
        _say_definition(definition)
    if dropped.purge is None:
        return
    removed = dropped.purge.cleaning
    _say(f"{len(removed.removals)} files removed, {removed.bytes:,} bytes.")
    for each in dropped.purge.remaining:
        names = ", ".join(each.columns) or "unknown columns"
        err.print(
            f"{each.folder} still holds {names}: {each.reason}.",
            highlight=False,
            markup=False,
            soft_wrap=True,
        )
    if dropped.purge.remaining:
        raise typer.Exit(1)


@app.command()
def show(table: TableArgument, output: OutputOption = Output.TEXT) -> None:
    """List the indexes of a table."""
    rows = [
        {
            "name": each.name,
            "type": ", ".join(each.index_types),
            "columns": ", ".join(column.name for column in each.columns),
            "created": each.created,
        }
        for each in open_table(table).indexes()
    ]
    _print_rows(rows, output)


@app.command()
def status(
    table: TableArgument,
    max_lag: Annotated[
        float | None, typer.Option(min=0, help="Alert if an index is more seconds behind.")
    ] = None,
    max_lag_instants: Annotated[
        int | None, typer.Option(min=0, help="Alert if an index is more instants behind.")
    ] = None,
    min_coverage: Annotated[
        float | None,
        typer.Option(min=0, max=100, help="Alert if an index covers less, in percent."),
    ] = None,
    max_outliving: Annotated[
        int | None, typer.Option(min=0, help="Alert if more entries outlive their base file.")
    ] = None,
    failed_build: Annotated[
        bool, typer.Option("--failed-build", help="Alert if the last build failed or died.")
    ] = False,
    output: OutputOption = Output.TEXT,
) -> None:
    """Show what each index covers, what is due, and the builds; exit status 3 for an alert."""
    found = open_table(table).status()
    thresholds = Thresholds(
        max_lag_seconds=max_lag,
        max_lag_instants=max_lag_instants,
        min_coverage=None if min_coverage is None else min_coverage / 100,
        max_outliving=max_outliving,
        failed_build=failed_build,
    )
    alerts = found.alerts(thresholds)
    if output is Output.JSON:
        _print_json(found.to_dict(alerts))
    else:
        _say_all(status_lines(found))
        for alert in alerts:
            err.print(f"ALERT: {alert}", style="red", highlight=False, markup=False, soft_wrap=True)
    if alerts:
        raise typer.Exit(_ALERT)


@app.command()
def build(
    table: TableArgument,
    strategy: Annotated[
        Strategy | None,
        typer.Option(help="Which base files; as hoodie.index.strategy says, or incremental."),
    ] = None,
    instant: Annotated[
        str | None, typer.Option(help="Only base files that this instant wrote.")
    ] = None,
    partition: Annotated[
        list[str] | None,
        typer.Option(help="Only this partition, or those that fit a pattern; may be repeated."),
    ] = None,
    max_files: Annotated[
        int | None, typer.Option(help="Stop after so many entries, newest instant first.")
    ] = None,
    max_bytes: Annotated[
        int | None, typer.Option(help="Stop after so many bytes of base files.")
    ] = None,
    max_minutes: Annotated[float | None, typer.Option(help="Begin nothing more after.")] = None,
    requests_per_second: Annotated[
        float | None, typer.Option(help="Ask the table's store no more often.")
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Only say what is due, and what it would cost; without an index that the keys "
            "would only create.",
        ),
    ] = False,
    props: PropsOption = None,
    hoodie_conf: HoodieConfOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Build the index entries that are due, in this process; first follow the hoodie.index.* keys
    that are given, or that the table's writers stored."""
    budget = Budget(
        files=max_files,
        bytes=max_bytes,
        minutes=max_minutes,
        requests_per_second=requests_per_second,
    )
    options = read_write_config(hoodie_conf or (), props)
    with (
        TableUpkeep(table, options=options) as upkeep,
        _progress("Indexing base files") as progress,
    ):
        keys = upkeep.peek() if dry_run else upkeep.define()
        result = upkeep.table.build(
            strategy=strategy or keys.strategy,
            instant=instant,
            partitions=partition,
            budget=budget,
            dry_run=dry_run,
            progress=progress,
        )
    if output is Output.JSON:
        _print_json(result.to_dict())
    else:
        _say_all(build_lines(result))
    result.raise_for_failures()
    if keys.failure is not None:
        raise keys.failure
    if result.state is BuildState.CANCELLED:
        raise typer.Exit(1)


@app.command()
def cancel(table: TableArgument) -> None:
    """Ask the build that runs on a table to give up; a later one goes on with the rest."""
    asked = open_table(table).cancel()
    _say("No build is running." if asked is None else f"Build {asked} was asked to give up.")


@app.command()
def query(
    table: TableArgument,
    where: WhereArgument,
    columns: Annotated[str | None, typer.Option(help="Comma-separated; all without.")] = None,
    limit: Annotated[int | None, typer.Option(help="At most this many rows.")] = None,
    as_of: AsOfOption = None,
    query_type: QueryTypeOption = QueryType.SNAPSHOT,
    use_index: Annotated[UseIndex, typer.Option(help="auto, never or require.")] = UseIndex.AUTO,
    count: Annotated[bool, typer.Option("--count", help="Only count the rows.")] = False,
    output: OutputOption = Output.TEXT,
) -> None:
    """Print the rows that fulfil a predicate."""
    scan = open_table(table).scan(
        where,
        columns=None if columns is None else [name.strip() for name in columns.split(",")],
        as_of=as_of,
        limit=limit,
        query_type=query_type.value,
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
def locate(
    table: TableArgument,
    keys: Annotated[list[str], typer.Argument(help="Record keys as Hudi prints them.")],
    partition: Annotated[
        str | None, typer.Option(help="Where to look: the partition's path; everywhere without.")
    ] = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Show where record keys lie: partition, file id, instant and row id."""
    with open_table(table) as opened:
        asked = keys if partition is None else [(partition, key) for key in keys]
        found = opened.tag_location(asked)
    _print_rows(found.to_pylist(), output)


@app.command()
def explain(
    table: TableArgument,
    where: WhereArgument,
    analyze: Annotated[bool, typer.Option(help="Run it, and show what was read.")] = False,
    as_of: AsOfOption = None,
    query_type: QueryTypeOption = QueryType.SNAPSHOT,
    output: OutputOption = Output.TEXT,
) -> None:
    """Show how a query is read, and why."""
    scan = open_table(table).scan(where, as_of=as_of, query_type=query_type.value)
    explanation = scan.explain(analyze=analyze)
    if output is Output.JSON:
        out.print_json(json.dumps(explanation.to_dict()))
    else:
        _say(str(explanation))


@app.command("clean")
def clean_up(
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
    if output is Output.JSON:
        report = {
            "dry_run": dry_run,
            "removals": rows,
            "copies": copies,
            "folders": cleaning.folders,
            "bytes": cleaning.bytes,
        }
        print(json.dumps(report, indent=1, ensure_ascii=False))
        return
    for row in [*rows, *({**copy, "reason": "no entry is like this copy"} for copy in copies)]:
        _say(f"{row['bytes']:>14,}  {row['path']}  {row['reason']}")
    verb = "would go" if dry_run else "removed"
    _say(f"{len(rows) + len(copies)} files {verb}, {cleaning.bytes:,} bytes of the table's.")


@app.command()
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
            _say(f"{fate}: {problem.path}: {problem.reason}")
        for base_file in found.skipped:
            _say(f"skipped: {base_file}: its entry is of a newer release")
        _say(
            f"{found.entries} entries checked, {found.rows} rows looked up, "
            f"{len(found.problems)} problems, "
            f"{len(found.problems) - len(found.unrepaired)} repaired."
        )
    if found.unrepaired:
        raise typer.Exit(1)


@app.command()
def serve(
    tables: Annotated[list[str], typer.Argument(help="Base paths of the tables to serve.")],
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="Port; 0 for a free one.")] = None,
    wait: Annotated[float, typer.Option(help="Seconds to hold a write for its build.")] = 0.0,
    strategy: Annotated[Strategy, typer.Option(help="Which base files.")] = Strategy.INCREMENTAL,
    clean: Annotated[bool, typer.Option("--clean", help="Clean after each build.")] = False,
    props: PropsOption = None,
    hoodie_conf: HoodieConfOption = None,
) -> None:
    """Listen for Hudi's commit callbacks and build what is due, until stopped."""
    from hudi_index_service.server.daemon import serve as serve_until_stopped

    serve_until_stopped(
        tables,
        wait=wait,
        host=host,
        port=port,
        strategy=strategy,
        clean=clean,
        options=read_write_config(hoodie_conf or (), props),
    )


@app.command()
def watch(
    tables: Annotated[list[str], typer.Argument(help="Base paths of the tables to watch.")],
    interval: Annotated[
        float | None, typer.Option(help="Seconds between two looks, instead of the setting's.")
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="Look once, build what is due, and end.")
    ] = False,
    strategy: Annotated[Strategy, typer.Option(help="Which base files.")] = Strategy.INCREMENTAL,
    clean: Annotated[bool, typer.Option("--clean", help="Clean after each build.")] = False,
    props: PropsOption = None,
    hoodie_conf: HoodieConfOption = None,
) -> None:
    """Look at timelines now and then and build what is due, until stopped; writers need no option
    for it. With --once, exit status 1 if something could not be built."""
    from hudi_index_service.server.watch import watch as watch_until_stopped

    done = watch_until_stopped(
        tables,
        interval=interval,
        once=once,
        strategy=strategy,
        clean=clean,
        options=read_write_config(hoodie_conf or (), props),
        say=_say,
    )
    if once and not done:
        raise typer.Exit(1)


@app.command()
def pack(
    output: Annotated[Path, typer.Argument(help="The archive to write: a name in .tar.gz.")],
) -> None:
    """Pack this Python environment for Spark executors that have none."""
    from hudi_index_service.submit.pack import pack_environment

    packed = pack_environment(output)
    _say(
        f"{packed.path}: Python {packed.python}, {len(packed.distributions)} distributions, "
        f"{packed.size:,} bytes."
    )
    _say(
        f"spark-submit --archives {packed.path}#environment "
        "--conf spark.pyspark.python=./environment/bin/python "
        "--conf spark.executorEnv.JAVA_HOME=<the workers' JDK 17> ..."
    )


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


def _say_all(lines: Iterable[str]) -> None:
    for line in lines:
        _say(line)


def _print_json(content: dict[str, Any]) -> None:
    print(json.dumps(content, indent=1, ensure_ascii=False))


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
