"""Builds and status as lines of text, for people."""

from collections.abc import Iterator

from hudi_index_service.build.record import BuildRecord, BuildState
from hudi_index_service.build.run import Build
from hudi_index_service.status import IndexStatus, TableStatus

_PARTITIONS_SHOWN = 20


def status_lines(status: TableStatus) -> Iterator[str]:
    """What `hudi-index status` prints."""
    for each in status:
        yield from _index_lines(each)
    for build in status.builds:
        yield _running_line(build) if build.state is BuildState.RUNNING else _ended_line(build)
    for failing in status.failing:
        error = " ".join(failing.error.split())
        yield f"Failed {failing.times} times: {failing.path}: {error}"
    if status.outliving.entries:
        yield (
            f"{status.outliving.entries} entries ({status.outliving.bytes:,} bytes) outlive their "
            "base file; `hudi-index clean` removes them."
        )


def _index_lines(status: IndexStatus) -> Iterator[str]:
    columns = ", ".join(column.name for column in status.definition.columns)
    yield f"Index {status.definition.name} ({status.index_type}) on {columns}:"
    yield (
        f"  {status.covered} of {status.base_files} base files covered ({status.coverage:.1%}), "
        f"{status.indexed} indexed, {status.index_bytes:,} bytes."
    )
    if status.due:
        yield (
            f"  {status.due} base files are due, the oldest for {status.lag_seconds:,.0f} s or "
            f"{status.lag_instants} instants."
        )
    lacking = [p for p in status.partitions if p.covered < p.base_files and p.partition]
    for partition in lacking[:_PARTITIONS_SHOWN]:
        yield f"  {partition.partition}: {partition.covered} of {partition.base_files} covered."
    if len(lacking) > _PARTITIONS_SHOWN:
        yield f"  and {len(lacking) - _PARTITIONS_SHOWN} more partitions that are not."


def _running_line(record: BuildRecord) -> str:
    now = record.progress
    if now is None:
        return f"Build {record.id} runs and has not told yet how far it is."
    rows = "an unknown number of" if now.rows is None else f"{now.rows:,}"
    about = "about " if now.rows_estimated and now.rows is not None else ""
    left = "unknown" if now.eta_seconds is None else f"{now.eta_seconds:,.0f} s"
    return (
        f"Build {record.id} runs: {now.files_done} of {now.files} files, {now.files_failed} "
        f"failed, {now.rows_done:,} of {about}{rows} rows, {now.rows_per_second or 0:,.0f} rows/s, "
        f"time left: {left}."
    )


def _ended_line(record: BuildRecord) -> str:
    told = record.to_dict()
    counts = [f"{told[key]} {key}" for key in ("due", "built", "failed", "left") if told[key]]
    seconds = [f"{told['seconds']:.1f} s"] if isinstance(told["seconds"], float) else []
    reason = told["error"] or told["stopped_by"]
    said = f" ({' '.join(str(reason).split())})" if reason else ""
    return f"Build {record.id} {record.state}{said}: {', '.join([*counts, *seconds])}."


def build_lines(build: Build) -> Iterator[str]:
    """What `hudi-index build` prints."""
    cost = build.estimate
    if cost is not None:
        for entry in build.due:
            yield f"{entry.base_file.size:>14,}  {entry.index_type}  {entry.base_file.path}"
        seconds = "unknown" if cost.seconds is None else f"about {cost.seconds:,.1f} s"
        size = "unknown" if cost.index_bytes is None else f"about {cost.index_bytes:,} bytes"
        yield (
            f"Would build {cost.files} of {len(build.due)} due entries from {cost.bytes:,} bytes; "
            f"time: {seconds}, size: {size}."
        )
    named = f"Build {build.id} {build.state}: " if build.id else ""
    yield (
        f"{named}{len(build.due)} due, {len(build.built)} built, {len(build.failed)} failed, "
        f"{build.seconds:.1f} s."
    )
    if build.stopped_by is not None:
        yield f"{build.stopped_by.capitalize()}; {build.left} left for the next build."
