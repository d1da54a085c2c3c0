"""Counts failures per entry from build to build, so that wake-ups do not retry failed base files at
once, and a base file that always fails delays no other."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from hudi_index_service.build.entry.task import TaskOutcome, TaskStatus
from hudi_index_service.build.reconcile import DueEntry
from hudi_index_service.config import BuildSettings

EntryKey = tuple[str, str, tuple[str, ...]]
"""Base file, index type and columns: with other columns the build may succeed."""


@dataclass(frozen=True, slots=True)
class FailedEntry:
    """An entry whose last build attempt failed.

    Attributes:
        path: The path of the base file.
        times: The number of failures in a row.
        last: The time of the last failure, ISO 8601 in UTC.
        error: The reason of the last failure.
    """

    path: str
    index_type: str
    columns: tuple[str, ...]
    times: int
    last: str
    error: str

    @property
    def key(self) -> EntryKey:
        """The key that identifies the entry."""
        return self.path, self.index_type, self.columns

    def retry_at(self, settings: BuildSettings) -> datetime:
        """When a wake-up retries the entry."""
        # 2^30 seconds is more than any maximum, and does not overflow.
        wait = settings.retry_seconds * 2 ** min(self.times - 1, 30)
        return datetime.fromisoformat(self.last) + timedelta(
            seconds=min(wait, settings.retry_max_seconds)
        )

    def to_dict(self) -> dict[str, Any]:
        """The form stored in build records."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class DeferredEntry:
    """A due entry that is skipped for now because it failed recently."""

    due: DueEntry
    failed: FailedEntry
    retry_at: datetime


def entry_key(due: DueEntry) -> EntryKey:
    """The key that identifies the entry."""
    return due.base_file.path, due.index_type, tuple(column.name for column in due.columns)


def failed_entries(content: object) -> list[FailedEntry]:
    """The failed entries that a build record lists; unreadable ones are left out."""
    entries = []
    for each in content if isinstance(content, list) else []:
        try:
            failed = FailedEntry(**{**each, "columns": tuple(each["columns"])})
            datetime.fromisoformat(failed.last)
        except (TypeError, KeyError, ValueError):  # from another release
            continue
        entries.append(failed)
    return entries


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
