"""Base files that cannot be indexed: counted from build to build, so that wake-ups do not try each
of them again at once, and a file that never works delays no other."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from hudi_index_service.build.reconcile import DueEntry
from hudi_index_service.build.task import TaskOutcome, TaskStatus
from hudi_index_service.config import BuildSettings

EntryKey = tuple[str, str, tuple[str, ...]]
"""Base file, index type and columns: with other columns it may work."""


@dataclass(frozen=True, slots=True)
class FailedEntry:
    """An entry that could not be built when it was tried last.

    Attributes:
        path: The base file.
        times: Failures in a row.
        last: When it failed last, ISO 8601 in UTC.
        error: Why.
    """

    path: str
    index_type: str
    columns: tuple[str, ...]
    times: int
    last: str
    error: str

    @property
    def key(self) -> EntryKey:
        """What tells it from other entries."""
        return self.path, self.index_type, self.columns

    def retry_at(self, settings: BuildSettings) -> datetime:
        """When a wake-up tries it again."""
        # 2^30 times a second is more than any maximum, and no overflow.
        wait = settings.retry_seconds * 2 ** min(self.times - 1, 30)
        return datetime.fromisoformat(self.last) + timedelta(
            seconds=min(wait, settings.retry_max_seconds)
        )

    def to_dict(self) -> dict[str, Any]:
        """As the build record has it."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class DeferredEntry:
    """An entry that is due and is left alone for now, since it failed a short while ago."""

    due: DueEntry
    failed: FailedEntry
    retry_at: datetime


def entry_key(due: DueEntry) -> EntryKey:
    """What tells the entry from others."""
    return due.base_file.path, due.index_type, tuple(column.name for column in due.columns)


def failed_entries(content: object) -> list[FailedEntry]:
    """The failed entries that a build record lists; what is not understood is left out."""
    found = []
    for each in content if isinstance(content, list) else []:
        try:
            failed = FailedEntry(**{**each, "columns": tuple(each["columns"])})
            datetime.fromisoformat(failed.last)
        except (TypeError, KeyError, ValueError):  # another release's
            continue
        found.append(failed)
    return found


def deferred_entries(
    due: Iterable[DueEntry], failed: Iterable[FailedEntry], settings: BuildSettings
) -> list[DeferredEntry]:
    """Those of the due entries that failed and whose time to be tried again has not come."""
    now, by_key = datetime.now(UTC), {each.key: each for each in failed}
    deferred = []
    for entry in due:
        known = by_key.get(entry_key(entry))
        if known is not None and known.retry_at(settings) > now:
            deferred.append(DeferredEntry(entry, known, known.retry_at(settings)))
    return deferred


def failed_after(
    before: Iterable[FailedEntry],
    due: Sequence[DueEntry],
    outcomes: Iterable[TaskOutcome],
    *,
    paths: Collection[str],
) -> list[FailedEntry]:
    """The failed entries after a build: those from before that it did not try, and its own.

    Args:
        before: As the build before left them.
        due: What was due in this build.
        outcomes: What became of it.
        paths: The base files of the snapshot; what failed for others is forgotten.
    """
    known: dict[EntryKey, FailedEntry] = {e.key: e for e in before if e.path in paths}
    tried: Mapping[tuple[str, str], EntryKey] = {
        (entry.base_file.path, entry.index_type): entry_key(entry) for entry in due
    }
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    for outcome in outcomes:
        if outcome.status is TaskStatus.LEFT:
            continue
        key = tried[outcome.path, outcome.index_type]
        if outcome.status is TaskStatus.FAILED:
            earlier = known.pop(key, None)
            times = 1 if earlier is None else earlier.times + 1
            known[key] = FailedEntry(*key, times, now, outcome.error or "unknown")
        else:  # also what failed with other columns, which it was asked for then, is over
            for other in [each for each in known if each[:2] == key[:2]]:
                del known[other]
    return list(known.values())
