"""Index entries: build, refresh, cancel, status, clean, verify."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from typing import Annotated, Any

import typer

from hudi_index_service import Budget, IndexedTable, open_table
from hudi_index_service.build.outcomes import Build
from hudi_index_service.build.strategy import Strategy
from hudi_index_service.cli.arguments import (
    HoodieConfOption,
    OutputOption,
    PropsOption,
    TableArgument,
    TablesArgument,
    tables_of,
)
from hudi_index_service.cli.console import complain, error_line
from hudi_index_service.cli.output import Format, print_report
from hudi_index_service.cli.progress import ends_orderly, progress_bar
from hudi_index_service.cli.reports import build_lines, clean_lines, status_lines, verify_lines
from hudi_index_service.errors import IndexServiceError
from hudi_index_service.hook.table_upkeep import TableUpkeep, configured
from hudi_index_service.hook.write_options import read_write_config, read_write_keys
from hudi_index_service.index.metadata.build_records import BuildState
from hudi_index_service.maintain import DEFAULT_SAMPLE
from hudi_index_service.maintain.status import TableStatus, Thresholds, coverage_hints

_ALERT = 3  # the exit status
_AT_A_TIME = 8  # tables that are looked at

_INDEX = (
    *("index", "index_type", "columns", "base_files", "covered", "coverage"),
    *("index_bytes", "shared_with", "due", "lag_instants", "lag_seconds", "partitions"),
    *("stored", "damaged"),
)


def build(
    table: TableArgument,
    strategy: Annotated[
        Strategy | None,
        typer.Option(help="Which base files; by default hoodie.index.strategy or incremental."),
    ] = None,
    instant: Annotated[
        str | None, typer.Option(help="Only base files that this instant wrote.")
    ] = None,
    partition: Annotated[
        list[str] | None,
        typer.Option(help="Only this partition, or those that match a pattern; may be repeated."),
    ] = None,
    max_files: Annotated[
        int | None, typer.Option(help="Maximum number of entries, newest instant first.")
    ] = None,
    max_bytes: Annotated[int | None, typer.Option(help="Maximum bytes of base files.")] = None,
    max_minutes: Annotated[
        float | None, typer.Option(help="Start no entry after this many minutes.")
    ] = None,
    requests_per_second: Annotated[
        float | None, typer.Option(help="Maximum rate of requests to the table's store.")
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Only show what is due and its estimated cost; excludes an index that the keys "
            "do not define yet.",
        ),
    ] = False,
    props: PropsOption = None,
    hoodie_conf: HoodieConfOption = None,
    output: OutputOption = None,
) -> None:
    """Build the index entries that are due, in this process. First apply the hoodie.index.* keys
    that are given or that the table's writers stored."""
    budget = Budget(
        files=max_files,
        bytes=max_bytes,
        minutes=max_minutes,
        requests_per_second=requests_per_second,
    )
    options = read_write_config(hoodie_conf or (), props)
    read_write_keys(options)  # reports mistakes before anything is built
    with (
        TableUpkeep(table, options=options) as upkeep,
        progress_bar("Indexing") as details,
        ends_orderly(upkeep.table) as progress,
    ):
        keys = upkeep.peek() if dry_run else upkeep.define()
        result = upkeep.table.build(
            strategy=strategy or keys.strategy,
            instant=instant,
            partitions=partition,
            budget=budget,
            dry_run=dry_run,
            progress=progress,
            details=details,
        )
    _print_build(upkeep.table, result, output)
    result.raise_for_failures()
    if keys.failure is not None:
        raise keys.failure
    if result.state is BuildState.CANCELLED:
        raise typer.Exit(1)


def refresh(
    table: TableArgument,
    name: Annotated[str, typer.Argument(help="Name of the index.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what is due.")] = False,
    output: OutputOption = None,
) -> None:
    """Bring an index's entries up to date with its definition, and build what is due for it."""
    opened = configured(table)
    with progress_bar("Indexing") as details, ends_orderly(opened) as progress:
        result = opened.refresh(name, dry_run=dry_run, progress=progress, details=details)
    _print_build(opened, result, output)
    result.raise_for_failures()
    if result.state is BuildState.CANCELLED:
        raise typer.Exit(1)


def _print_build(table: IndexedTable, build: Build, output: Format | None) -> None:
    hints = []
    if build.state in (None, BuildState.FINISHED) and build.strategy is not Strategy.ALL:
        hints = coverage_hints(table.status())
    report = {**build.to_dict(), "hints": hints}
    names = ("path", "index_type", "columns", "bytes", "status", "rows", "index_bytes", "error")
    print_report(output, report, build_lines(build, hints), names, report["entries"])


def cancel(table: TableArgument, output: OutputOption = None) -> None:
    """Request that the running build of a table stop; a later one continues with the rest."""
    build_id = open_table(table).cancel()
    line = "No build is running." if build_id is None else f"Requested that build {build_id} stop."
    report = {"build": build_id}
    print_report(output, report, [line], ("build",), [report] if build_id else [])


def status(
    tables: TablesArgument,
    max_lag: Annotated[
        float | None,
        typer.Option(min=0, help="Alert if an index lags by more than this many seconds."),
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
    output: OutputOption = None,
) -> None:
    """Show each index's coverage, the entries due, and the builds; exit status 3 for an alert. Of
    several tables, one that cannot be read leaves the others, and is exit status 1."""
    thresholds = Thresholds(
        max_lag_seconds=max_lag,
        max_lag_instants=max_lag_instants,
        min_coverage=None if min_coverage is None else min_coverage / 100,
        max_outliving=max_outliving,
        failed_build=failed_build,
    )
    named, is_one = tables_of(tables)
    if is_one:
        table_status = configured(named[0]).status()
        alerts = table_status.alerts(thresholds)
        report = table_status.to_dict(alerts)
        print_report(output, report, status_lines(table_status), _INDEX, report["indexes"])
        if output in (None, Format.TEXT):
            for alert in alerts:
                complain(f"ALERT: {alert}")
        if alerts:
            raise typer.Exit(_ALERT)
        return
    with ThreadPoolExecutor(_AT_A_TIME) as threads:
        found = list(threads.map(_status_or_error, named))
    _print_statuses(dict(zip(named, found, strict=True)), thresholds, output)


def _status_or_error(table: str) -> TableStatus | IndexServiceError:
    try:
        with configured(table) as opened:
            return opened.status()
    except IndexServiceError as error:
        return error


def _print_statuses(
    found: Mapping[str, TableStatus | IndexServiceError],
    thresholds: Thresholds,
    output: Format | None,
) -> None:
    reports: list[dict[str, Any]] = []
    lines: list[str] = []
    alerts, failures = [], []
    for table, each in found.items():
        if isinstance(each, IndexServiceError):
            failures.append(f"{table}: {error_line(each)}")
            error = {"code": each.code, "message": each.message, "remedy": each.remedies.command}
            reports.append({"table": table, "indexes": [], "alerts": [], "error": error})
            continue
        own = each.alerts(thresholds)
        alerts += [f"ALERT: {table}: {alert}" for alert in own]
        reports.append(each.to_dict(own))
        lines += [f"{table}:", *(f"  {line}" for line in status_lines(each))]
    items = [{"table": one["table"], **index} for one in reports for index in one["indexes"]]
    print_report(output, reports, lines, ("table", *_INDEX), items)
    for failure in failures:
        complain(failure)
    if output in (None, Format.TEXT):
        for alert in alerts:
            complain(alert)
    if failures:
        raise typer.Exit(1)
    if alerts:
        raise typer.Exit(_ALERT)


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
    lists: dict[str, list[dict[str, Any]]] = {
        "removals": [
            {"path": each.path, "bytes": each.size, "reason": each.reason}
            for each in cleaning.removals
        ],
        "copies": [{"path": str(each.path), "bytes": each.size} for each in cleaning.copies],
        "stored": [{"path": each.path, "reason": each.reason} for each in cleaning.stored],
        "unremoved": [{"path": each.path, "reason": each.reason} for each in cleaning.unremoved],
    }
    amounts = {"folders": cleaning.folders, "bytes": cleaning.bytes}
    items = [{"list": name, **each} for name, listed in lists.items() for each in listed]
    lines, names = clean_lines(cleaning, dry_run), ("list", "path", "bytes", "reason")
    print_report(output, {"dry_run": dry_run, **lists, **amounts}, lines, names, items)


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
    names = ("index_type", "base_file", "path", "reason", "repaired")
    print_report(output, report, verify_lines(verification), names, problems)
    if verification.unrepaired:
        raise typer.Exit(1)
