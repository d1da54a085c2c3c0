"""What needs an operator's attention: a closed list of codes, and which of them a table gives.

Page, `hudi-index fleet status`, JSON and metrics all show what `attention` says. It knows nothing
of earlier observations: `seen.py` beside it keeps a reason
from coming and going.
"""

import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Self

from hudi_index_service.build.strategy import Strategy
from hudi_index_service.errors import BuildInProgress
from hudi_index_service.fleet.observation import EndedBuild, Observation
from hudi_index_service.fleet.policies.policy import TablePolicy
from hudi_index_service.index.metadata.build_records import BuildRecord, BuildState
from hudi_index_service.maintain.status import IndexStatus, TableStatus
from hudi_index_service.wording import counted

WELL = 5
"""The severity of a table without a reason, for sorting."""

_PAUSED = 6
_FOREVER = datetime.max.replace(tzinfo=UTC)

UNREACHABLE_POLLS = 3
FAILED_BUILDS = 2

_FAILED = frozenset({"failed", "died", "out_of_memory", "hung"})
_FAILED_STATES = (BuildState.FAILED, BuildState.DEAD)

_DOCTOR = "hudi-index doctor {uri}"
_BUILD = "hudi-index build {uri}"
_CLEAN = "hudi-index clean {uri}"
_CHECK = "hudi-index fleet check fleet.yaml --explain {name}"


class Code(StrEnum):
    """A reason for attention. The list is closed: programs may rely on it.

    Attributes:
        severity: From 1, the worst, to 4.
        meaning: When a table gives it, in one line.
        remedy: The command against it, with ``{uri}`` and ``{name}`` for the table's.
    """

    severity: int
    meaning: str
    remedy: str

    def __new__(cls, value: str, severity: int, meaning: str, remedy: str) -> Self:
        """A member of the list."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.severity, member.meaning, member.remedy = severity, meaning, remedy
        return member

    UNREACHABLE = (
        "unreachable",
        1,
        "The table could not be looked at for three polls in a row.",
        _DOCTOR,
    )
    DAMAGED_ENTRIES = (
        "damaged_entries",
        1,
        "Entries of an index are damaged, so that their base files are scanned.",
        "hudi-index verify {uri} --repair",
    )
    FAILED_BUILDS = (
        "failed_builds",
        2,
        "The last two builds failed, or more in a row.",
        _BUILD,
    )
    HUNG_BUILD = (
        "hung_build",
        2,
        "A build makes no progress for longer than its timeout, or the last was ended for it.",
        "hudi-index cancel {uri}",
    )
    INVALID_DEFINITION = (
        "invalid_definition",
        2,
        "An index of the fleet file cannot be defined on the table.",
        _CHECK,
    )
    OWNER_CLASH = (
        "owner_clash",
        2,
        "An index of the fleet file has the name of one that the fleet does not own.",
        _CHECK,
    )
    LAG = (
        "lag",
        3,
        "The oldest base file that is due waits for longer than `max_lag`, and no build advances.",
        _BUILD,
    )
    LOW_COVERAGE = (
        "low_coverage",
        3,
        "An index covers less than `min_coverage` of what its strategy builds, and nothing builds.",
        _BUILD,
    )
    ORPHANED_BYTES = (
        "orphaned_bytes",
        4,
        "Entries that no snapshot needs take more than `max_orphaned`.",
        _CLEAN,
    )
    ERASED_VALUES = (
        "erased_values",
        4,
        "Entries still hold values that were erased from the table.",
        _CLEAN,
    )
    DRIFT = (
        "drift",
        4,
        "Indexes of the table differ from the fleet file.",
        _CHECK,
    )


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a table needs attention.

    Attributes:
        since: Since when, as far as is known; never later than now.
        words: What is wrong, in one sentence.
        value, limit: The number that is beyond its limit, and the limit; durations in seconds. None
            where there is no number.
        remedy: The command against it.
    """

    code: Code
    since: datetime
    words: str
    value: float | None
    limit: float | None
    remedy: str

    @property
    def severity(self) -> int:
        """From 1, the worst, to 4."""
        return self.code.severity


ReasonsOf = Callable[[Observation], Sequence[Reason]]
"""Why a table needs attention, as it is shown."""


def attention(observation: Observation, now: datetime) -> tuple[Reason, ...]:
    """The reasons why a table needs attention by what was last seen of it and by its policy, the
    worst first. A paused table gives none.

    Args:
        now: The present time, in UTC. If it is before what was seen, the clock was set back: then
            nothing counts as older than it was when it was seen.
    """
    if not observation.policy.enabled:
        return ()
    return tuple(_Table(observation, now).reasons())


def place(policy: TablePolicy, reasons: Sequence[Reason]) -> tuple[int, int, datetime, str]:
    """The place of a table among others, by the reasons that are shown of it: severity, priority,
    age of the oldest reason, name. Tables that are well come after all with a reason, and paused
    ones last."""
    oldest = min((each.since for each in reasons), default=_FOREVER)
    severity = min((each.severity for each in reasons), default=WELL)
    return severity if policy.enabled else _PAUSED, -policy.priority, oldest, policy.name


def oldest_due(status: TableStatus) -> datetime | None:
    """When the oldest base file that is due was written; None if none is."""
    if not status.lag_seconds:
        return None
    return datetime.fromisoformat(status.at) - timedelta(seconds=status.lag_seconds)


class _Table:
    """One table at one moment."""

    def __init__(self, observation: Observation, now: datetime) -> None:
        self._seen = observation
        self._policy = observation.policy
        self._status = observation.status
        self._at = observation.at or now
        self._now = now

    def reasons(self) -> Iterator[Reason]:
        """All reasons, by severity."""
        yield from self._unreachable()
        yield from self._damaged()
        yield from self._failed()
        yield from self._hung()
        yield from self._definitions()
        if not self._advances():
            yield from self._late()
            yield from self._uncovered()
        yield from self._leftovers()

    def _unreachable(self) -> Iterator[Reason]:
        polls = self._seen.unreachable_polls
        if polls >= UNREACHABLE_POLLS:
            since = self._seen.unreachable_since or self._at
            error = "" if self._seen.error is None else f": {self._seen.error.message}"
            words = f"The last {polls} polls failed{error or '.'}"
            yield self._reason(Code.UNREACHABLE, since, words, polls, UNREACHABLE_POLLS)

    def _damaged(self) -> Iterator[Reason]:
        # What a look at the manifests shows, or what a verification found beyond it.
        damaged = max((each.damaged for each in self._indexes()), default=0)
        damaged = max(damaged, self._seen.damaged)
        if damaged:
            words = f"The entries of {counted(damaged, 'base file')} are damaged."
            yield self._reason(Code.DAMAGED_ENTRIES, self._at, words, damaged, 0)

    def _failed(self) -> Iterator[Reason]:
        row = _failures(self._seen)
        if len(row) >= FAILED_BUILDS:
            last = next(filter(_counts, self._seen.ended), None)
            why = f": {last.error.message}" if last is not None and last.error else "."
            words = f"The last {len(row)} builds failed{why}"
            yield self._reason(Code.FAILED_BUILDS, row[-1], words, len(row), FAILED_BUILDS)

    def _hung(self) -> Iterator[Reason]:
        limit = self._policy.build_timeout.total_seconds()
        if silence := self._silence():
            words = f"A build has made no progress for {_words(silence)}."
            since = self._now - silence + self._policy.build_timeout
            yield self._reason(Code.HUNG_BUILD, since, words, silence.total_seconds(), limit)
        elif self._seen.running is None:
            last = next(filter(_counts, self._seen.ended), None)
            if last is not None and last.outcome == "hung":
                words = "The last build made no progress, and was ended."
                yield self._reason(
                    Code.HUNG_BUILD, last.ended, words, None, limit, like=Code.FAILED_BUILDS
                )

    def _definitions(self) -> Iterator[Reason]:
        if self._seen.invalid_definition is not None:
            words = self._seen.invalid_definition.message
            yield self._reason(Code.INVALID_DEFINITION, self._at, words)
        if self._seen.clash is not None:
            yield self._reason(Code.OWNER_CLASH, self._at, self._seen.clash.message)

    def _late(self) -> Iterator[Reason]:
        limit = self._policy.max_lag
        due = None if self._status is None else oldest_due(self._status)
        if limit is None or due is None or self._status is None:
            return
        # A clock that was set back makes no file younger than it was at the look.
        waits = max(self._now, datetime.fromisoformat(self._status.at)) - due
        if waits > limit:
            words = f"A base file has waited for {_words(waits)} to be indexed."
            yield self._reason(
                Code.LAG, due + limit, words, waits.total_seconds(), limit.total_seconds()
            )

    def _uncovered(self) -> Iterator[Reason]:
        limit = self._policy.min_coverage
        # A table that waits for its turn builds soon; if not, its lag tells.
        if limit is None or self._seen.queued is not None:
            return
        worst = min(self._indexes(), key=self._coverage, default=None)
        if worst is None or (coverage := self._coverage(worst)) >= limit:
            return
        words = (
            f"Index {worst.definition.name} covers {coverage:.1%} of the base files that it should."
        )
        # Entries that are not up to date are left as they are by other strategies.
        strategy = Strategy.REFRESH if worst.outdated > worst.due else None
        yield self._reason(Code.LOW_COVERAGE, self._at, words, coverage, limit, strategy=strategy)

    def _leftovers(self) -> Iterator[Reason]:
        orphaned, limit = self._seen.orphaned_bytes, self._policy.max_orphaned
        if limit is not None and orphaned > limit:
            words = f"Entries that no snapshot needs take {orphaned / (1 << 20):,.0f} MiB."
            yield self._reason(Code.ORPHANED_BYTES, self._at, words, orphaned, limit)
        if erased := self._seen.erased:
            entries = counted(erased, "entry")
            words = f"Erased values are still in {entries}."
            yield self._reason(Code.ERASED_VALUES, self._at, words, erased, 0)
        if drift := self._seen.drift:
            words = f"Not as in the fleet file: {', '.join(drift)}."
            yield self._reason(Code.DRIFT, self._at, words, len(drift), 0)

    def _indexes(self) -> tuple[IndexStatus, ...]:
        return () if self._status is None else self._status.indexes

    def _coverage(self, index: IndexStatus) -> float:
        """The covered fraction of what builds by the table's strategy cover."""
        files = index.base_files - index.newer
        if self._policy.strategy is not Strategy.ALL:
            files -= index.left
        return index.covered / files if files else 1.0

    def _silence(self) -> timedelta | None:
        """For how long the running build has made no progress, if that is too long."""
        if self._seen.running is None:
            return None
        silence = self._now - self._seen.running.advanced
        return silence if silence > self._policy.build_timeout else None

    def _advances(self) -> bool:
        """Whether a build runs, here or in another process, and is not hung."""
        if self._seen.running is not None:
            return self._silence() is None
        if self._status is None or self._status.build is None:
            return False
        # What an old look saw may have died since.
        age = self._now - datetime.fromisoformat(self._status.at)
        is_recent = age <= self._policy.build_timeout
        return is_recent and self._status.build.state is BuildState.RUNNING

    def _reason(
        self,
        code: Code,
        since: datetime,
        words: str,
        value: float | None = None,
        limit: float | None = None,
        *,
        like: Code | None = None,
        strategy: Strategy | None = None,
    ) -> Reason:
        """A reason, with the remedy of its code, or of another one."""
        of = like or code
        policy = self._policy
        remedy = of.remedy.format(uri=shlex.quote(policy.uri), name=shlex.quote(policy.name))
        if of.remedy == _BUILD:
            asked = strategy or policy.strategy
            remedy += "" if asked is Strategy.INCREMENTAL else f" --strategy {asked.value}"
        since = min(since, self._now)
        return Reason(code, since, words, value, limit, remedy)


def _counts(build: EndedBuild) -> bool:
    """Whether this is the end of a build that says something: it was neither cancelled, nor refused
    because another process builds the table."""
    refused = build.error is not None and build.error.code == BuildInProgress.code
    return build.action == "build" and build.outcome != "cancelled" and not refused


def _failures(observation: Observation) -> list[datetime]:
    """The ends of the builds that failed in a row, newest first: those of this service, and before
    them those in the table's records, which outlive a restart."""
    row: list[datetime] = []
    for each in filter(_counts, observation.ended):
        if each.outcome not in _FAILED:
            return row
        row.append(each.ended)
    for record in () if observation.status is None else observation.status.builds:
        moment = _end(record)
        if record.state in (BuildState.RUNNING, BuildState.CANCELLED):
            continue
        if moment is not None and observation.ended and moment >= observation.ended[-1].started:
            continue  # it is one of those above
        if moment is None or record.state not in _FAILED_STATES:
            break
        row.append(moment)
    return row


def _end(record: BuildRecord) -> datetime | None:
    """When a build ended, or began if it died; None if the record does not say."""
    moment = (record.finished or {}).get("finished") or record.started.get("started")
    return datetime.fromisoformat(moment) if isinstance(moment, str) else None


def _words(time: timedelta) -> str:
    """A duration for people."""
    minutes = int(time.total_seconds() // 60)
    if minutes < 120:
        return counted(minutes, "minute")
    return counted(minutes // 60, "hour") if minutes < 48 * 60 else counted(minutes // 1440, "day")
