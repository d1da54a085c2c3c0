"""A fleet in memory: tables that change as a test says, and requests that only become records."""

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import count

from hudi_index_service.errors import CallbackRefused, RequestUnknown, TableNotInFleet
from hudi_index_service.fleet.observation import EndedBuild, Observation, Refusal, RunningBuild
from hudi_index_service.fleet.policies.policy import TablePolicy
from hudi_index_service.fleet.task import Requested, Task
from hudi_index_service.index.metadata.build_records import BuildProgress, FailedEntry
from hudi_index_service.index.metadata.definitions import Column, IndexDefinition, SeenTimeline
from hudi_index_service.maintain.status import (
    IndexStatus,
    Outliving,
    PartitionCoverage,
    TableStatus,
)

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@dataclass(frozen=True)
class FakeReason:
    """Why a table needs attention, as a test says."""

    code: str
    severity: int
    words: str
    remedy: str
    since: datetime = NOW
    value: float | str | None = 1234.5
    limit: float | str | None = None


def status_of(
    uri: str,
    *,
    covered: int = 8,
    base_files: int = 10,
    columns: Sequence[str] = ("msg",),
    partitions: Sequence[str] = (),
    lag_seconds: float = 0.0,
    failing: Sequence[FailedEntry] = (),
) -> TableStatus:
    """The status of a table with one index."""
    definition = IndexDefinition(
        name="by_text",
        version=1,
        index_types=("lucene",),
        columns=tuple(Column(name=name) for name in columns),
        seen=SeenTimeline(start="0", instants=()),
        created="2026-01-01T00:00:00Z",
    )
    index = IndexStatus(
        definition,
        "lucene",
        base_files,
        covered,
        5_000_000,
        tuple(PartitionCoverage(each, 4, place % 5) for place, each in enumerate(partitions)),
        due=base_files - covered,
        lag_seconds=lag_seconds,
    )
    at = NOW.isoformat()
    return TableStatus(uri, at, "0", (index,), (), tuple(failing), Outliving(0, 0))


def seen(name: str, *, status: TableStatus | None = None, **policy: object) -> Observation:
    """A table as last seen, all well."""
    uri = str(policy.pop("uri", f"/data/{name}"))
    known = TablePolicy(name, uri, **policy)  # type: ignore[arg-type]
    return Observation(known, at=NOW, status=status or status_of(uri, covered=10))


def progress(done: int, total: int = 100) -> BuildProgress:
    """The progress of a build, in files of a MiB."""
    return BuildProgress(
        files=total,
        files_done=done,
        files_failed=0,
        bytes=total * 2**20,
        bytes_done=done * 2**20,
        rows=total * 1000,
        rows_done=done * 1000,
        rows_estimated=False,
        seconds=float(done),
        rows_per_second=1000.0,
        eta_seconds=float(total - done),
    )


@dataclass
class MemoryFleet:
    """What `Supervisor` is for pages and the API, for tests.

    Attributes:
        calls: What was asked for: action, table or id, who, and more.
        reasons: By table.
        busy: Whether it refuses builds.
        woken: Base paths of callbacks.
        ends: Of requests whose end is waited for; those of callbacks are for a test to set.
    """

    observations: dict[str, Observation] = field(default_factory=dict)
    calls: list[tuple[object, ...]] = field(default_factory=list)
    reasons: dict[str, list[FakeReason]] = field(default_factory=dict)
    busy: bool = False
    woken: list[str] = field(default_factory=list)
    ends: dict[str, Future[EndedBuild]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._numbers = count(1)
        self._keys: dict[tuple[str, str, str | None], Requested] = {}
        self._waiting: dict[str, str] = {}

    def add(self, *observations: Observation) -> None:
        """Adds tables, or changes them."""
        self.observations |= {each.policy.name: each for each in observations}

    def change(self, name: str, **fields: object) -> None:
        """Changes what was seen of a table."""
        self.observations[name] = replace(self.observations[name], **fields)  # type: ignore[arg-type]

    def reasons_of(self, observation: Observation) -> Sequence[FakeReason]:
        """The reasons that the test gave."""
        return self.reasons.get(observation.policy.name, ())

    def begin(self, request: str, done: int = 25) -> None:
        """Begins with the build of a request."""
        table = self._waiting.pop(request)
        by = self.calls[-1][2]
        run = RunningBuild(request, "request", NOW, NOW, progress(done), str(by))
        self.change(table, queued=None, running=run)

    def end(self, table: str, outcome: str, error: Refusal | None = None) -> None:
        """Ends the running build."""
        run = self.observations[table].running
        assert run is not None
        later = NOW + timedelta(minutes=3)
        ended = EndedBuild(run.id, run.trigger, NOW, later, outcome, error, 7, run.requested_by)
        self.change(table, running=None, ended=(ended, *self.observations[table].ended))

    # As the supervisor has it.

    def tables(self) -> Sequence[Observation]:
        return [self.observations[name] for name in sorted(self.observations)]

    def table(self, name: str) -> Observation:
        if name not in self.observations:
            raise TableNotInFleet(f"The fleet has no table {name!r}.")
        return self.observations[name]

    def ask(
        self, name: str, task: Task, *, key: str | None = None, requested_by: str = ""
    ) -> Requested:
        self.table(name)
        if task.action == "build":
            self._refuse_if_busy()
        known = self._keys.get((name, task.action, key))
        if known is not None:
            return replace(known, repeated=True)
        more: dict[str, list[object]] = {
            "build": [task.strategy and task.strategy.value],
            "clean": [task.dry_run],
            "verify": ["repair"] if task.repair else [],
            "define": [task.plan],
        }
        action = "approve" if task.action == "define" else task.action
        self.calls.append((action, name, requested_by, *more[task.action]))
        requested = Requested(f"r{next(self._numbers)}", name)
        if key is not None:
            self._keys[name, task.action, key] = requested
        self._waiting[requested.id] = name
        if task.action == "build":
            self.change(name, queued=NOW)
        return requested

    def build_of(self, request: str) -> RunningBuild | EndedBuild | None:
        if request in self._waiting:
            return None
        for each in self.observations.values():
            for build in (each.running, *each.ended):
                if build is not None and build.id == request:
                    return build
        raise RequestUnknown(f"There is no request {request!r}.")

    def callback(self, uri: str) -> Requested:
        self._refuse_if_busy()
        self.woken.append(uri)
        return Requested(f"r{next(self._numbers)}", uri)

    def end_of(self, request: str) -> Future[EndedBuild]:
        return self.ends.setdefault(request, Future())

    def cancel(self, request: str, *, requested_by: str = "") -> None:
        self.build_of(request)
        self.calls.append(("cancel", request, requested_by))
        for name, each in self.observations.items():
            if each.running is not None and each.running.id == request:
                self.end(name, "cancelled")
                break

    def mute(self, name: str, code: str, *, days: int, requested_by: str = "") -> None:
        self.table(name)
        self.calls.append(("mute", name, requested_by, code, days))

    def unmute(self, name: str, code: str, *, requested_by: str = "") -> None:
        self.table(name)
        self.calls.append(("unmute", name, requested_by, code))

    def _refuse_if_busy(self) -> None:
        if self.busy:
            raise CallbackRefused("Too many requests wait.", remedy="Try again later.")
