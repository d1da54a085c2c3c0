"""How far a build is: counted while it runs, stored with its heartbeat, shown by `status`."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from time import monotonic
from typing import Any, Self

from hudi_index_service.build.reconcile import DueEntry
from hudi_index_service.build.row_count import RowCount
from hudi_index_service.build.task import TaskOutcome, TaskStatus
from hudi_index_service.table.protocol import HudiTable


@dataclass(frozen=True, slots=True)
class BuildProgress:
    """A build at one moment. "Files" are its entries: one a base file and index type.

    Attributes:
        files, bytes, rows: Of all that is to be done. Bytes are the base files' lengths. Rows are
            those that commit metadata tells; where it does not, they are worked out from the bytes
            (then `rows_estimated`); None while nothing is known.
        files_done: Ended, well or not; `files_failed` of them failed.
        bytes_done: Of the ended ones.
        rows_done: Of those that were built; while the build runs in this process, of those that are
            being built as well.
        seconds: Since the build began.
        rows_per_second: Since then; None until something was built.
        eta_seconds: What is left, at the bytes' rate so far; until something has ended at the
            rows', None where these are not known.
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
        """As JSON has it, with the attributes' names."""
        return asdict(self)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self | None:
        """The same read back; None if something is missing (another release's)."""
        names = [each.name for each in fields(cls)]
        if any(name not in content for name in names):
            return None
        return cls(**{name: content[name] for name in names})


class ProgressCounter:
    """Counts outcomes.

    Args:
        tasks: What is to be done.
        rows: Path → rows of the base files for which that is known beforehand.
        indexed: Counts the rows that tasks in this process take in.
    """

    def __init__(
        self,
        tasks: Sequence[DueEntry],
        rows: Mapping[str, int],
        indexed: RowCount | None = None,
    ) -> None:
        self._indexed = indexed or RowCount()
        self._sizes = {each.base_file.path: each.base_file.size for each in tasks}
        self._entries = [each.base_file.path for each in tasks]
        self._rows = {path: rows[path] for path in self._sizes if path in rows}
        self._estimated = len(self._rows) < len(self._sizes)
        self._began = monotonic()
        self._done = self._failed = self._bytes_done = self._rows_done = 0

    def add(self, outcome: TaskOutcome) -> None:
        """Takes in an outcome; one that was left does not count as done."""
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
        """The build at this moment."""
        seconds = monotonic() - self._began
        total = sum(self._sizes[path] for path in self._entries)
        rows = self._rows_of_all()
        rows_done = self._rows_done
        if self._done < len(self._entries):
            indexed = self._indexed.rows if rows is None else min(self._indexed.rows, rows)
            rows_done = max(rows_done, indexed)
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
        """Those known, and for the other base files as many a byte as the known ones have."""
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
    """Path → rows of the entries' base files, as far as the active timeline tells: no base file is
    opened for it."""
    instants = {instant.requested: instant for instant in table.completed_instants()}
    rows: dict[str, int] = {}
    for requested in {entry.base_file.instant for entry in entries} & instants.keys():
        rows.update(table.rows_written(instants[requested]))
    return rows
