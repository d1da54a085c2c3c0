"""What the service last saw of one table. Attention, page, API and metrics are made from this, and
from nothing else: no request looks at a store."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, Self

from hudi_index_service.errors import IndexServiceError
from hudi_index_service.fleet.policies.policy import TablePolicy
from hudi_index_service.fleet.timeline import SeenInstant
from hudi_index_service.index.metadata.build_records import BuildProgress
from hudi_index_service.maintain.prewarm import Prewarmed
from hudi_index_service.maintain.status import TableStatus


@dataclass(frozen=True, slots=True)
class Refusal:
    """An error as it is shown: its code, one sentence, and what to do."""

    code: str
    message: str
    remedy: str

    @classmethod
    def of(cls, error: Exception) -> Self:
        """An error, with the remedy for the command line; one that is none of the service's is a
        mistake of the program."""
        if isinstance(error, IndexServiceError):
            return cls(error.code, error.message, error.remedies.command)
        message = f"{type(error).__name__}: {error}"
        return cls(IndexServiceError.code, message, "Report it, with the service's log.")


@dataclass(frozen=True, slots=True)
class RunningBuild:
    """A build in one of the service's processes.

    Attributes:
        id: The request's id, by which it is asked for and cancelled.
        trigger: What asked for it: ``callback``, ``poll``, ``retry``, ``schedule`` or ``request``.
        started: When its process began with it.
        advanced: When it last made progress.
        progress: The last that it told; None before.
        requested_by: The name of the token, for a request.
        action: ``build``, or for a request of another kind ``clean``, ``verify`` or ``define``.
    """

    id: str
    trigger: str
    started: datetime
    advanced: datetime
    progress: BuildProgress | None = None
    requested_by: str = ""
    action: str = "build"


@dataclass(frozen=True, slots=True)
class EndedBuild:
    """A build that ended, newest first in `Observation.ended`.

    Attributes:
        outcome: ``finished``, ``failed``, ``cancelled``, ``hung``, ``died`` or ``out_of_memory``.
        error: Why it failed; None if it did not.
        failed, deferred: The entries that could not be built, in this build or recently.
        action: ``build``, or for a request of another kind ``clean`` or ``verify``.
        summary: What a clean or a verification found, in one sentence.
    """

    id: str
    trigger: str
    started: datetime
    ended: datetime
    outcome: str
    error: Refusal | None = None
    built: int = 0
    requested_by: str = ""
    action: str = "build"
    summary: str = ""
    failed: int = 0
    deferred: int = 0


@dataclass(frozen=True, slots=True)
class Warmed:
    """What the service has made ready for queries.

    Attributes:
        at: When.
        ready: What; None if that failed.
        error: Why it failed; None if it did not.
    """

    at: datetime
    ready: Prewarmed | None = None
    error: Refusal | None = None


@dataclass(frozen=True, slots=True)
class DefinitionsSeen:
    """How a table's definitions relate to the fleet's file; see `Observation`."""

    invalid_definition: Refusal | None = None
    clash: Refusal | None = None
    drift: tuple[str, ...] = ()
    plan: tuple[str, ...] = ()
    plan_id: str = ""
    plan_bytes: int = 0

    def fields(self) -> dict[str, Any]:
        """The fields of an `Observation`."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


@dataclass(frozen=True, slots=True)
class Observation:
    """One table, as last seen.

    Attributes:
        at: When it was last looked at; None before the first look.
        status: What the last look that succeeded found; None before.
        unreachable_polls: The looks in a row that failed.
        unreachable_since: When the first of them was.
        error: Why the last look failed; None if it did not.
        queued: When a build that has not begun was first asked for.
        running: The build that runs.
        ended: The builds that ended, newest first, at most ten.
        invalid_definition: Why a definition of the file cannot be applied.
        clash: Why another owner's definition is in the way.
        drift: Definitions that differ from the file, or left it, by name.
        plan: The definitions' changes that wait for an operator, in sentences.
        plan_id, plan_bytes: What an approval of them is for; see `DefinitionPlan`.
        erased: Erased values that entries still hold: the number of these entries.
        orphaned_bytes: Bytes in entries that no snapshot needs.
        damaged: Base files whose entries the last verification found damaged.
        timeline: The last instants of the table's timeline, newest first.
        muted: Codes of reasons that an operator has muted → until when.
        warmed: What was last made ready for queries; None before, and if nothing is to be.
    """

    policy: TablePolicy
    at: datetime | None = None
    status: TableStatus | None = None
    unreachable_polls: int = 0
    unreachable_since: datetime | None = None
    error: Refusal | None = None
    queued: datetime | None = None
    running: RunningBuild | None = None
    ended: Sequence[EndedBuild] = ()
    invalid_definition: Refusal | None = None
    clash: Refusal | None = None
    drift: Sequence[str] = ()
    plan: Sequence[str] = ()
    plan_id: str = ""
    plan_bytes: int = 0
    erased: int = 0
    orphaned_bytes: int = 0
    damaged: int = 0
    timeline: Sequence[SeenInstant] = ()
    muted: Mapping[str, datetime] = field(default_factory=dict)
    warmed: Warmed | None = None
