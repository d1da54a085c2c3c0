"""The progress of a build: counted while it runs, stored in its heartbeat, shown by `status`."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from time import monotonic
from typing import Any, Self

from hudi_index_service.build.entry.indexing import RowCount
from hudi_index_service.build.entry.task import TaskOutcome, TaskStatus
from hudi_index_service.build.reconcile import DueEntry
from hudi_index_service.hudi.table import HudiTable


@dataclass(frozen=True, slots=True)
class BuildProgress:
    """The progress at one moment. "Files" are entries: one per base file and index type.

    Attributes:
        files, bytes, rows: The totals of the build. Bytes are the lengths of the base files. Rows
            come from commit metadata, or are estimated from the bytes (then `rows_estimated`);
            None while no row count is known.
        files_done: The entries that ended, successfully or not; `files_failed` of them failed.
        bytes_done: The bytes of the entries that ended.
        rows_done: The rows of the entries that were built; while the build runs, also the rows
            indexed so far by tasks in this process.
        seconds: The time since the build began.
        rows_per_second: The rate since then; None until rows were indexed.
        eta_seconds: The remaining time at the rate of bytes so far; until the first entry ends, at
            the rate of rows, or None if the rows are not known.
    """

    files: int
    files_done: int
    files_failed: int
    bytes: int
    bytes_done: int
    rows: int | None
    rows_done: int
    rows_estimated: bool
    seconds: float
    rows_per_second: float | None
    eta_seconds: float | None

    def to_dict(self) -> dict[str, Any]:
        """The form stored as JSON, with the attributes' names."""
        return asdict(self)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self | None:
        """Reads the stored form; None if something is missing, as in other releases' records."""
        names = [each.name for each in fields(cls)]
        if any(name not in content for name in names):
            return None
        return cls(**{name: content[name] for name in names})


class ProgressCounter:
    """Counts outcomes.

    Args:
        tasks: The entries of the build.
        rows: Path → number of rows, for the base files where it is known beforehand.
        indexed: The counter of rows indexed by tasks in this process.
    """

    def __init__(
        self,
        tasks: Sequence[DueEntry],
        rows: Mapping[str, int],
        indexed: RowCount | None = None,
    ) -> None:
        self._row_count = indexed or RowCount()
        self._sizes = {each.base_file.path: each.base_file.size for each in tasks}
        self._entries = [each.base_file.path for each in tasks]
        self._rows = {path: rows[path] for path in self._sizes if path in rows}
        self._estimated = len(self._rows) < len(self._sizes)
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
            rows_estimated=self._estimated and len(self._rows) < len(self._sizes),
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
    instants = {instant.requested: instant for instant in table.completed_instants()}
    rows: dict[str, int] = {}
    for requested in {entry.base_file.instant for entry in entries} & instants.keys():
        rows.update(table.rows_written(instants[requested]))
    return rows
