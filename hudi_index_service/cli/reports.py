"""Formats definitions, builds, status, cleaning, verification and history as lines of text."""

from collections.abc import Iterable, Iterator, Sequence

from hudi_index_service.build.estimate import Estimate
from hudi_index_service.build.outcomes import Build
from hudi_index_service.index.metadata.build_records import BuildProgress, BuildRecord, BuildState
from hudi_index_service.index.metadata.definitions import IndexDefinition
from hudi_index_service.index.metadata.requirements import names_by_use
from hudi_index_service.maintain.clean import Cleaning
from hudi_index_service.maintain.drop import Dropped
from hudi_index_service.maintain.status import IndexStatus, TableStatus, coverage_hints
from hudi_index_service.maintain.verify import Verification
from hudi_index_service.optimizer.history.record import HistoryShape
from hudi_index_service.wording import counted, first_line, one_line

_PARTITIONS_SHOWN = 20


def definition_line(definition: IndexDefinition) -> str:
    """What `hudi-index create` and `alter` print."""
    types = ", ".join(definition.index_types)
    return f"Index {definition.name} ({types}) on {_columns(definition)}."


def _columns(definition: IndexDefinition) -> str:
    of_indexed, of_stored = names_by_use(definition)
    stored = f", storing {', '.join(of_stored)}" if of_stored else ""
    return f"{', '.join(of_indexed)}{stored}"


def drop_lines(dropped: Dropped) -> Iterator[str]:
    """What `hudi-index drop` prints."""
    for definition in dropped.indexes:
        yield f"Index {definition.name} is dropped."
    yield from map(definition_line, dropped.narrowed)
    if dropped.purge is not None:
        cleaning = dropped.purge.cleaning
        yield f"{counted(len(cleaning.removals), 'file')} removed, {cleaning.bytes:,} bytes."


def status_lines(status: TableStatus) -> Iterator[str]:
    """What `hudi-index status` prints."""
    for each in status:
        yield from _index_lines(each)
    if any(each.shared_with for each in status):
        yield f"All indexes: {status.index_bytes:,} bytes, counting shared files once."
    yield from coverage_hints(status)
    for build in status.builds:
        yield _running_line(build) if build.state is BuildState.RUNNING else ended_line(build)
    for failing in status.failing:
        error = " ".join(failing.error.split())
        yield f"Failed {counted(failing.times, 'time')}: {failing.path}: {error}"
    if status.outliving.entries:
        yield (
            f"Entries that outlive their base file: {status.outliving.entries:,} "
            f"({status.outliving.bytes:,} bytes); `hudi-index clean` removes them."
        )


def _index_lines(status: IndexStatus) -> Iterator[str]:
    shared = f" in files shared with {', '.join(status.shared_with)}" if status.shared_with else ""
    yield f"Index {status.definition.name} ({status.index_type}) on {_columns(status.definition)}:"
    yield (
        f"  {status.covered} of {status.base_files} base files covered ({status.coverage:.1%}), "
        f"{status.index_bytes:,} bytes{shared}."
    )
    if status.due:
        since = (
            f", the oldest for {status.lag_seconds:,.0f} s or "
            f"{counted(status.lag_instants, 'instant')}"
        )
        yield f"  Due: {counted(status.due, 'base file')}{since if status.lag_instants else ''}."
    incomplete = [p for p in status.partitions if p.covered < p.base_files and p.partition]
    for partition in incomplete[:_PARTITIONS_SHOWN]:
        yield f"  {partition.partition}: {partition.covered} of {partition.base_files} covered."
    if others := incomplete[_PARTITIONS_SHOWN:]:
        yield f"  {counted(len(others), 'more partition')} not fully covered."


def progress_counts(now: BuildProgress) -> str:
    """A build's progress as text, for its progress bar."""
    counts = [f"{now.files_done:,}/{now.files:,} files"]
    if now.rows_done or now.rows:
        total = "?" if now.rows is None else f"{'~' if now.rows_estimated else ''}{now.rows:,}"
        counts.append(f"{now.rows_done:,}/{total} rows")
    if now.eta_seconds is not None:
        counts.append(f"{now.eta_seconds:,.0f} s left")
    return ", ".join(counts)


def _running_line(record: BuildRecord) -> str:
    now = record.progress
    if now is None:
        return f"Build {record.id} runs and has not reported progress yet."
    rows = "an unknown number of" if now.rows is None else f"{now.rows:,}"
    about = "about " if now.rows_estimated and now.rows is not None else ""
    time_left = "unknown" if now.eta_seconds is None else f"{now.eta_seconds:,.0f} s"
    return (
        f"Build {record.id} runs: {now.files_done} of {now.files} files, {now.files_failed} "
        f"failed, {now.rows_done:,} of {about}{rows} rows, {now.rows_per_second or 0:,.0f} rows/s, "
        f"time left: {time_left}."
    )


def ended_line(record: BuildRecord) -> str:
    """The outcome of a build that is over."""
    fields = record.to_dict()
    counts = [f"{fields[key]} {key}" for key in ("due", "built", "failed", "left") if fields[key]]
    seconds = [f"{fields['seconds']:.1f} s"] if isinstance(fields["seconds"], float) else []
    reason = fields["error"] or fields["stopped_by"]
    cause = f" ({' '.join(str(reason).split())})" if reason else ""
    return f"Build {record.id} {record.state}{cause}: {', '.join([*counts, *seconds])}."


def build_lines(build: Build, hints: Iterable[str] = ()) -> Iterator[str]:
    """What `hudi-index build` prints; `hints` describe what the build did not cover."""
    if build.estimate is not None:
        for entry in build.due:
            yield f"{entry.base_file.size:>14,}  {entry.index_type}  {entry.base_file.path}"
        yield from _estimate_lines(build.estimate, len(build.due))
    prefix = f"Build {build.id} {build.state}: " if build.id else ""
    yield (
        f"{prefix}{len(build.due)} due, {len(build.built)} built, {len(build.failed)} failed, "
        f"{build.seconds:.1f} s."
    )
    for outcome in build.built:
        for column, reason in outcome.skipped.items():
            yield f"Built without column {column} ({outcome.index_type}): {reason}"
    if build.stopped_by is not None:
        yield f"{build.stopped_by.capitalize()}; {build.left} left for the next build."
    yield from hints


def _estimate_lines(cost: Estimate, due: int) -> Iterator[str]:
    yield (
        f"Would build {cost.files} of {due} due entries from {cost.bytes:,} bytes; {amounts(cost)}."
    )
    for column in cost.columns:
        yield (
            f"  {column.column} ({column.index_type}): {column.seconds:,.1f} s on one core, "
            f"{column.index_bytes:,} bytes"
        )
    if cost.sampled_rows:
        yield f"Estimated by indexing {cost.sampled_rows:,} rows in a temporary folder."
    yield from cost.warnings


def amounts(cost: Estimate) -> str:
    """Time and size with their spread, or why they are unknown."""
    if cost.seconds is None or cost.index_bytes is None:
        return f"time and size are unknown: {first_line(cost.unknown)}"
    seconds, size = f"about {cost.seconds:,.1f} s", f"about {cost.index_bytes:,} bytes"
    if cost.seconds_error is not None and cost.index_bytes_error is not None:
        seconds += f" ± {cost.seconds_error:,.1f}"
        size += f" ± {cost.index_bytes_error:,}"
    return f"time: {seconds} with {counted(cost.tasks, 'task')}, size: {size}"


def clean_lines(cleaning: Cleaning, dry_run: bool) -> Iterator[str]:
    """What `hudi-index clean` prints."""
    for removal in cleaning.removals:
        yield f"{removal.size:>14,}  {removal.path}  {removal.reason}"
    for copy in cleaning.copies:
        yield f"{copy.size:>14,}  {copy.path}  no entry has this content"
    verb = "would be removed" if dry_run else "removed"
    for removal in cleaning.stored:
        yield f"External data for {removal.path} {verb}: {removal.reason}"
    for removal in cleaning.unremoved:
        yield f"{removal.path} could not be removed: {removal.reason}"
    files = len(cleaning.removals) + len(cleaning.copies)
    yield f"{counted(files, 'file')} {verb}, {cleaning.bytes:,} bytes in the table."


def verify_lines(verification: Verification) -> Iterator[str]:
    """What `hudi-index verify` prints."""
    for problem in verification.problems:
        fate = "repaired" if problem.repaired else "damaged"
        yield one_line(f"{fate}: {problem.path}: {problem.reason}")
    for base_file in verification.skipped:
        yield f"skipped: {base_file}: a newer release wrote its entry"
    yield (
        f"{counted(verification.entries, 'entry')} checked, "
        f"{counted(verification.rows, 'row')} looked up, "
        f"{counted(len(verification.problems), 'problem')}, "
        f"{len(verification.problems) - len(verification.unrepaired)} repaired."
    )


def history_lines(shapes: Sequence[HistoryShape]) -> Iterator[str]:
    """What `hudi-index history` prints."""
    for shape in shapes:
        yield from _shape_lines(shape)
    yield f"{counted(len(shapes), 'shape')}."


def _shape_lines(shape: HistoryShape) -> Iterator[str]:
    fields = shape.to_dict()
    yield shape.shape
    yield (
        f"  {counted(fields['queries'], 'query')}, the last "
        f"at {fields['last']}; {fields['rows']:,.1f} rows on average"
    )
    ways = [
        f"{fields[way] / fields['weight']:.0%} {word}, {fields[ms]:,.1f} ms on average"
        for way, ms, word in (
            ("by_index", "index_ms", "by index"),
            ("scanned", "scan_ms", "by scan"),
        )
        if fields[way] and fields["weight"]
    ]
    if ways:
        yield f"  read {'; '.join(ways)}"
    if fields["unindexed"]:
        yield f"  no index on {', '.join(fields['unindexed'])}"
    if fields["corrections"]:
        factors = (f"{name} × {value:.3g}" for name, value in fields["corrections"].items())
        yield f"  corrects {', '.join(factors)}"
