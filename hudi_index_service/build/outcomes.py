"""What the outcomes of a build's tasks add up to: its report, its progress, and the entries that
wake-ups do not retry at once, so that a base file that always fails delays no other."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from time import monotonic
from typing import Any

from hudi_index_service.build.entry.indexing import RowCount
from hudi_index_service.build.entry.task import TaskOutcome, TaskStatus
from hudi_index_service.build.estimate import Estimate
from hudi_index_service.build.reconcile import DueEntry
from hudi_index_service.build.strategy import Strategy
from hudi_index_service.config import BuildSettings
from hudi_index_service.errors import BuildFailed
from hudi_index_service.hudi.table import HudiTable
from hudi_index_service.index.metadata.build_records import (
    BuildProgress,
    BuildState,
    EntryKey,
    FailedEntry,
)
from hudi_index_service.wording import counted


@dataclass(frozen=True, slots=True)
class DeferredEntry:
    """A due entry that is skipped for now because it failed recently."""

    due: DueEntry
    failed: FailedEntry
    retry_at: datetime


@dataclass(frozen=True, slots=True)
class Build:
    """What a build did or, for a dry run, would do.

    Attributes:
        id: The record's number; "" if nothing was recorded.
        due: The due entries: newest instant first, entries that failed before last.
        outcomes: The outcome of each entry; empty for a dry run.
        seconds: The time from reconcile to report.
        state: How the build ended; None if there was nothing to do, or for a dry run.
        stopped_by: What ended the build early: a limit of its budget, such as
            ``budget spent: files``, or ``interrupted`` (Ctrl-C).
        deferred: Due entries that failed recently and are skipped for now (only with
            ``retry_failed="backoff"``).
        estimate: The estimated cost of the build, for a dry run.
    """

    id: str
    strategy: Strategy
    due: tuple[DueEntry, ...]
    outcomes: tuple[TaskOutcome, ...] = ()
    seconds: float = 0.0
    state: BuildState | None = None
    stopped_by: str | None = None
    deferred: tuple[DeferredEntry, ...] = ()
    estimate: Estimate | None = None

    def __repr__(self) -> str:
        name = f"{self.id} {self.state}" if self.id else "nothing run"
        return (
            f"<Build {name}: {len(self.due)} due, {len(self.built)} built, "
            f"{len(self.failed)} failed, {self.left} left>"
        )

    @property
    def built(self) -> tuple[TaskOutcome, ...]:
        """The entries that this build built."""
        return tuple(o for o in self.outcomes if o.status is TaskStatus.BUILT)

    @property
    def failed(self) -> tuple[TaskOutcome, ...]:
        """The entries that could not be built."""
        return tuple(o for o in self.outcomes if o.status is TaskStatus.FAILED)

    @property
    def left(self) -> int:
        """The number of due entries that have no outcome; the next build continues with them."""
        return len(self.due) - sum(o.status is not TaskStatus.LEFT for o in self.outcomes)

    @property
    def retry_at(self) -> datetime | None:
        """When the first deferred entry may be retried; None if no entry is deferred."""
        return min((each.retry_at for each in self.deferred), default=None)

    def raise_for_failures(self) -> "Build":
        """Returns the build itself if nothing failed.

        Raises:
            BuildFailed: an entry failed; the message names the first failure. Entries that
                succeeded stay published.
        """
        if self.failed:
            first = self.failed[0]
            raise BuildFailed(
                f"{len(self.failed)} of {counted(len(self.due), 'entry')} could not be built. "
                f"{first.path}: {first.error}"
            )
        return self

    def to_dict(self) -> dict[str, Any]:
        """The build as `hudi-index build --output json` prints it."""
        outcomes = {(each.path, each.index_type): each for each in self.outcomes}
        return {
            "build": self.id or None,
            "strategy": self.strategy.value,
            **self._whole(),
            "estimate": None if self.estimate is None else self.estimate.to_dict(),
            "entries": [
                {
                    "path": entry.base_file.path,
                    "index_type": entry.index_type,
                    "columns": [column.name for column in entry.columns],
                    "bytes": entry.base_file.size,
                    **_outcome_fields(outcomes.get((entry.base_file.path, entry.index_type))),
                }
                for entry in self.due
            ],
            "deferred": [
                {**each.failed.to_dict(), "retry_at": each.retry_at.isoformat()}
                for each in self.deferred
            ],
        }

    def to_record(self) -> dict[str, Any]:
        """The build as its record stores it."""
        entries = {(each.base_file.path, each.index_type): each for each in self.due}
        return {
            **self._whole(),
            "outcomes": [
                {
                    **asdict(each),
                    "status": each.status.value,
                    "bytes": entries[each.path, each.index_type].base_file.size,
                    "columns": [c.name for c in entries[each.path, each.index_type].columns],
                    "fields": [c.fields for c in entries[each.path, each.index_type].columns],
                }
                for each in self.outcomes
            ],
        }

    def _whole(self) -> dict[str, Any]:
        """What both forms say of the whole build."""
        return {
            "state": None if self.state is None else str(self.state),
            "due": len(self.due),
            "built": len(self.built),
            "failed": len(self.failed),
            "left": self.left,
            "seconds": round(self.seconds, 3),
            "stopped_by": self.stopped_by,
        }


def _outcome_fields(outcome: TaskOutcome | None) -> dict[str, Any]:
    if outcome is None:
        return {"status": "due", "rows": None, "index_bytes": None, "error": None, "skipped": {}}
    return {
        "status": outcome.status.value,
        "rows": outcome.rows,
        "index_bytes": outcome.index_bytes,
        "error": outcome.error,
        "skipped": dict(outcome.skipped),
    }


class ProgressCounter:
    """Counts outcomes.

    Args:
        tasks: The entries of the build.
        rows: Path → number of rows, for the base files where it is known beforehand.
        indexed: The counter of rows indexed by tasks in this process.
    """

    def __init__(
        self, tasks: Sequence[DueEntry], rows: Mapping[str, int], indexed: RowCount | None = None
    ) -> None:
        self._row_count = indexed or RowCount()
        self._sizes = {each.base_file.path: each.base_file.size for each in tasks}
        self._entries = [each.base_file.path for each in tasks]
        self._rows = {path: rows[path] for path in self._sizes if path in rows}
        self._start = monotonic()
        self._done = self._failed = self._bytes_done = self._rows_done = 0

    def add(self, outcome: TaskOutcome) -> None:
        """Adds an outcome; an entry with status LEFT does not count as done."""
        if outcome.status is TaskStatus.LEFT:
            return
        self._done += 1
        self._failed += outcome.status is TaskStatus.FAILED
        self._bytes_done += self._sizes[outcome.path]
        if outcome.status in (TaskStatus.BUILT, TaskStatus.PRESENT):
            self._rows[outcome.path] = outcome.rows
        if outcome.status is TaskStatus.BUILT:
            self._rows_done += outcome.rows

    def now(self) -> BuildProgress:
        """The progress at this moment."""
        seconds = monotonic() - self._start
        total = sum(self._sizes[path] for path in self._entries)
        rows = self._rows_of_all()
        rows_done = self._rows_done
        if self._done < len(self._entries):
            indexed_rows = self._row_count.rows if rows is None else min(self._row_count.rows, rows)
            rows_done = max(rows_done, indexed_rows)
        eta = None
        if self._bytes_done and seconds > 0:
            eta = (total - self._bytes_done) * seconds / self._bytes_done
        elif rows and rows_done and seconds > 0:
            eta = (rows - rows_done) * seconds / rows_done
        return BuildProgress(
            files=len(self._entries),
            files_done=self._done,
            files_failed=self._failed,
            bytes=total,
            bytes_done=self._bytes_done,
            rows=rows,
            rows_done=rows_done,
            rows_estimated=len(self._rows) < len(self._sizes),
            seconds=round(seconds, 3),
            rows_per_second=round(rows_done / seconds, 1) if rows_done and seconds > 0 else None,
            eta_seconds=None if eta is None else round(eta, 1),
        )

    def _rows_of_all(self) -> int | None:
        """The known rows, plus an estimate for the other base files from their bytes, at the known
        files' rows per byte."""
        known_bytes = sum(self._sizes[path] for path in self._rows)
        known_rows = sum(self._rows.values())
        if known_bytes == 0:
            return None
        return sum(
            self._rows[path]
            if path in self._rows
            else round(self._sizes[path] * known_rows / known_bytes)
            for path in self._entries
        )


def rows_known(table: HudiTable, entries: Sequence[DueEntry]) -> dict[str, int]:
    """Path → number of rows of the entries' base files, if the active timeline has it. Opens no
    base file."""
    instants = table.timeline().by_requested
    rows: dict[str, int] = {}
    for requested in {entry.base_file.instant for entry in entries} & instants.keys():
        rows.update(table.rows_written(instants[requested]))
    return rows


def entry_key(due: DueEntry) -> EntryKey:
    """The key that identifies the entry."""
    return due.base_file.path, due.index_type, tuple(column.name for column in due.columns)


def deferred_entries(
    due: Iterable[DueEntry], failed: Iterable[FailedEntry], settings: BuildSettings
) -> list[DeferredEntry]:
    """The due entries that failed before and whose retry time has not come."""
    now, by_key = datetime.now(UTC), {each.key: each for each in failed}
    deferred = []
    for entry in due:
        failure = by_key.get(entry_key(entry))
        if failure is not None and failure.retry_at(settings) > now:
            deferred.append(DeferredEntry(entry, failure, failure.retry_at(settings)))
    return deferred


def failed_after(
    before: Iterable[FailedEntry],
    due: Sequence[DueEntry],
    outcomes: Iterable[TaskOutcome],
    *,
    paths: Collection[str],
) -> list[FailedEntry]:
    """The failed entries after a build: earlier ones that it did not try, and its own.

    Args:
        before: The failed entries after the previous build.
        due: The due entries of this build.
        outcomes: The outcomes of this build.
        paths: The base files of the snapshot; failures of other base files are forgotten.
    """
    failures: dict[EntryKey, FailedEntry] = {e.key: e for e in before if e.path in paths}
    keys: Mapping[tuple[str, str], EntryKey] = {
        (entry.base_file.path, entry.index_type): entry_key(entry) for entry in due
    }
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    for outcome in outcomes:
        if outcome.status is TaskStatus.LEFT:
            continue
        key = keys[outcome.path, outcome.index_type]
        if outcome.status is TaskStatus.FAILED:
            earlier = failures.pop(key, None)
            times = 1 if earlier is None else earlier.times + 1
            failures[key] = FailedEntry(*key, times, now, outcome.error or "unknown")
        else:  # this also ends failures that the entry had with other columns
            for other in [each for each in failures if each[:2] == key[:2]]:
                del failures[other]
    return list(failures.values())
