"""What the API takes and gives, as models from which its description is made too."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from hudi_index_service.build.strategy import Strategy
from hudi_index_service.fleet.observation import EndedBuild, Refusal, RunningBuild, Warmed
from hudi_index_service.fleet.signals.attention import Code
from hudi_index_service.fleet.task import Task
from hudi_index_service.fleet.web.table_view import TableView


class _Message(BaseModel):
    # Made from objects with attributes of the same names, too, also where one is a field of it.
    model_config = ConfigDict(extra="forbid", from_attributes=True)

    @field_validator("*", mode="before")
    @classmethod
    def _characters(cls, value: Any) -> Any:
        """Escapes what is no character, which names of files may hold."""
        if isinstance(value, str):
            return value.encode("utf-8", "backslashreplace").decode()
        if isinstance(value, list):
            return [cls._characters(each) for each in value]
        if isinstance(value, dict):
            return {cls._characters(key): cls._characters(each) for key, each in value.items()}
        return value


class ErrorMessage(_Message):
    """Why a request is not carried out.

    code: Stable, for programs.
    message: One sentence.
    remedy: What to do about it.
    """

    code: str
    message: str
    remedy: str


class ReasonMessage(_Message):
    """Why a table needs attention; severity 1 is the worst, and the remedy a command."""

    code: str
    severity: Annotated[int, Field(ge=1, le=4)]
    since: datetime
    value: float | str | None
    limit: float | str | None
    words: str
    remedy: str


class BuildMessage(_Message):
    """A build that was asked for.

    id: The request's id.
    table: Its table; null if the service has not looked at it since the request.
    state: ``waiting``, ``running``, or how it ended.
    action: ``build``, ``clean``, ``verify`` or ``define``.
    trigger: What asked for it: ``callback``, ``poll``, ``retry``, ``schedule`` or ``request``.
    advanced: When it last made progress.
    built: The entries built.
    summary: What a clean or a verification found, in one sentence.
    progress: Files, bytes and rows, done and in all, with the rate and the seconds left.
    requested_by: The name of the token.
    """

    id: str
    table: str | None
    state: str
    action: str = "build"
    trigger: str = ""
    started: datetime | None = None
    advanced: datetime | None = None
    ended: datetime | None = None
    built: int = 0
    summary: str = ""
    progress: dict[str, Any] | None = None
    error: ErrorMessage | None = None
    requested_by: str = ""

    @classmethod
    def of(
        cls, id: str, table: str | None, build: RunningBuild | EndedBuild | None
    ) -> "BuildMessage":
        """The message of a build; None is one that waits."""
        if build is None:
            return cls(id=id, table=table, state="waiting")
        if isinstance(build, EndedBuild):
            return cls(
                id=id,
                table=table,
                state=build.outcome,
                action=build.action,
                summary=build.summary,
                trigger=build.trigger,
                started=build.started,
                ended=build.ended,
                built=build.built,
                error=build.error,
                requested_by=build.requested_by,
            )
        return cls(
            id=id,
            table=table,
            state="running",
            action=build.action,
            trigger=build.trigger,
            started=build.started,
            advanced=build.advanced,
            progress=None if build.progress is None else build.progress.to_dict(),
            requested_by=build.requested_by,
        )


class InstantMessage(_Message):
    """An instant of the timeline, and the base files of the snapshot that it wrote: those that
    every index covers, and those that builds take."""

    requested: str
    action: str
    completed: bool
    base_files: int
    covered: int
    due: int


class MuteMessage(_Message):
    """A reason that an operator has muted, whether the table gives it or not."""

    code: str
    until: datetime


class TableMessage(_Message):
    """A table of the fleet.

    state: ``paused``, ``building``, ``waiting``, ``unseen``, ``unreachable`` or ``idle``.
    severity: That of the worst reason, from 1; 0 if it needs no attention.
    reasons: The worst first.
    coverage: From 0 to 1, of the index that covers least; null without an index.
    due: Base files that builds take.
    lag_seconds: How long the oldest of them waits.
    at: When the table was last looked at.
    """

    name: str
    uri: str
    group: str
    owner: str
    labels: dict[str, str]
    priority: int
    enabled: bool
    state: str
    severity: Annotated[int, Field(ge=0, le=4)]
    reasons: list[ReasonMessage]
    coverage: float | None
    due: int
    lag_seconds: float
    at: datetime | None
    running: BuildMessage | None

    @classmethod
    def of(cls, view: TableView) -> "TableMessage":
        """The message of a table."""
        return cls(**_fields(view))


class PrewarmedMessage(_Message):
    """What is ready for queries in the service.

    entries: Index entries that are open.
    files: Base files whose pages are kept, of the columns in the fleet's file.
    left_out: Entries and files for which there was no room, or that cannot be used.
    bytes: The size of all pages that the service keeps, of any table.
    error: Why nothing was made ready.
    """

    at: datetime
    entries: int = 0
    files: int = 0
    left_out: int = 0
    bytes: int = 0
    error: ErrorMessage | None = None

    @classmethod
    def of(cls, warmed: Warmed) -> "PrewarmedMessage":
        """The message of what was made ready."""
        ready = warmed.ready
        if ready is None:
            return cls(at=warmed.at, error=warmed.error)
        return cls(
            at=warmed.at,
            entries=ready.entries,
            files=ready.files,
            left_out=ready.left_out,
            bytes=ready.kept_bytes,
        )


class TableStatusMessage(TableMessage):
    """A table of the fleet, with all that is known of it.

    status: As ``hudi-index status --output json`` prints it; null before the first look.
    error: Why the last look failed.
    ended: The last builds, newest first.
    plan: Changes of definitions that wait for approval, in sentences.
    plan_id: What an approval of them names.
    drift: Definitions that differ from the fleet's file.
    muted: The reasons that are not shown.
    timeline: The last instants, newest first.
    prewarmed: What is ready for queries; null if nothing is to be, or not yet.
    """

    status: dict[str, Any] | None
    error: ErrorMessage | None
    ended: list[BuildMessage]
    plan: list[str]
    plan_id: str
    drift: list[str]
    orphaned_bytes: int
    erased: int
    muted: list[MuteMessage] = []
    timeline: list[InstantMessage] = []
    prewarmed: PrewarmedMessage | None = None

    @classmethod
    def of(cls, view: TableView) -> "TableStatusMessage":
        """The message of a table."""
        seen = view.seen
        return cls(
            **_fields(view),
            status=None if seen.status is None else seen.status.to_dict(),
            error=seen.error,
            ended=[BuildMessage.of(each.id, view.name, each) for each in seen.ended],
            plan=list(seen.plan),
            plan_id=seen.plan_id,
            drift=list(seen.drift),
            orphaned_bytes=seen.orphaned_bytes,
            erased=seen.erased,
            muted=[MuteMessage(code=code, until=until) for code, until in view.muted],
            timeline=seen.timeline,
            prewarmed=None if seen.warmed is None else PrewarmedMessage.of(seen.warmed),
        )


def _fields(view: TableView) -> dict[str, Any]:
    policy, running = view.seen.policy, view.seen.running
    return {
        "name": policy.name,
        "uri": policy.uri,
        "group": policy.group,
        "owner": policy.owner,
        "labels": dict(policy.labels),
        "priority": policy.priority,
        "enabled": policy.enabled,
        "state": view.state,
        "severity": view.severity if view.reasons else 0,
        "reasons": view.reasons,
        "coverage": view.coverage,
        "due": view.due,
        "lag_seconds": view.lag_seconds,
        "at": view.seen.at,
        "running": None if running is None else BuildMessage.of(running.id, policy.name, running),
    }


class TablesMessage(_Message):
    """The tables that the token is for, those first that need attention most.

    problems: What is wrong with the service itself, such as a wrong fleet file, a source that
    cannot be listed, or a full disk; none for a token that is not for all tables.
    """

    tables: list[TableMessage]
    problems: list[ErrorMessage] = []

    @classmethod
    def of(cls, views: Sequence[TableView], problems: Sequence[Refusal]) -> "TablesMessage":
        """The message of a list."""
        return cls(
            tables=[TableMessage.of(view) for view in views],
            problems=problems,
        )


class RequestedMessage(_Message):
    """A request that was taken.

    repeated: Whether it is that of an earlier call with the same Idempotency-Key.
    build: What has become of it after `wait`; null without.
    """

    id: str
    table: str
    repeated: bool
    build: BuildMessage | None = None


class DoneMessage(_Message):
    """What was asked for is done."""

    done: Literal[True] = True


class BuildRequest(_Message):
    """A build to start. strategy: null for the table's own."""

    strategy: Literal["incremental", "all", "refresh"] | None = None

    def task(self) -> Task:
        return Task("build", None if self.strategy is None else Strategy(self.strategy))


class CleanRequest(_Message):
    """Entries to remove that no snapshot needs. dry_run: only say what would be removed."""

    dry_run: bool = False

    def task(self) -> Task:
        return Task("clean", dry_run=self.dry_run)


class VerifyRequest(_Message):
    """Entries to verify. repair: build damaged ones anew, and delete them."""

    repair: bool = False

    def task(self) -> Task:
        return Task("verify", repair=self.repair)


class UnmuteRequest(_Message):
    """A reason to show again."""

    code: Code


class MuteRequest(_Message):
    """A reason to hide for some days."""

    code: Code
    days: Annotated[int, Field(ge=1, le=365)]


class ApproveRequest(_Message):
    """A plan to carry out. plan: the `plan_id` that was shown; empty for the present plan."""

    plan: Annotated[str, Field(max_length=64)] = ""

    def task(self) -> Task:
        return Task("define", plan=self.plan)


class EmptyRequest(_Message):
    """Nothing more is to be said."""
