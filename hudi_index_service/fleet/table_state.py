"""What the supervisor holds of one table: its observation, what waits and what runs."""

import logging
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from hudi_index_service.config import Settings
from hudi_index_service.fleet import tracing
from hudi_index_service.fleet.builds.messages import Order, settings_for_child
from hudi_index_service.fleet.builds.pool import Job
from hudi_index_service.fleet.ledger import Action, Request
from hudi_index_service.fleet.looks import Looker
from hudi_index_service.fleet.observation import Observation, RunningBuild
from hudi_index_service.fleet.policies.policy import TablePolicy, settings_for
from hudi_index_service.fleet.policies.references import resolved
from hudi_index_service.fleet.task import Task
from hudi_index_service.index.metadata.build_records import BuildProgress

_NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(slots=True)
class TableState:
    """One table. Not for several threads at once, except for `looker`, which one poll uses at a
    time.

    Attributes:
        version: The version that was seen last; "" before the first look.
        is_stale: Whether the next look asks for the status in any case.
        waiting: What waits: operators' requests first.
        planned: The version and policy for which a plan was made, or is to be.
        drift: The drift that the last look found, which is not shown before the fleet has tried to
            change it unasked.
        together: The requests that run together.
        job: What runs for them.
        running: The first of them, as it is shown.
        started: When they began.
    """

    uri: str
    policy: TablePolicy
    observation: Observation
    looker: Looker = field(default_factory=Looker)
    version: str = ""
    planned: tuple[str, TablePolicy] | None = None
    drift: Sequence[str] = ()
    is_stale: bool = True
    waiting: list[Request] = field(default_factory=list)
    together: Sequence[Request] = ()
    job: Job | None = None
    progress: BuildProgress | None = None
    started: datetime = _NEVER
    advanced: datetime = _NEVER

    def new_request(
        self, task: Task, trigger: str, *, key: str = "", requested_by: str = ""
    ) -> Request:
        """A request for this table, not added yet. It belongs to the present span, and an approval
        is for the plan that is shown, if it names no other."""
        is_plan = task.action == "define"
        return Request(
            secrets.token_hex(8),
            self.uri,
            task.action,
            trigger,
            datetime.now(UTC),
            "" if task.strategy is None else task.strategy.value,
            task.dry_run,
            key,
            requested_by,
            task.repair,
            plan_id=task.plan or self.observation.plan_id if is_plan else "",
            plan_bytes=self.observation.plan_bytes if is_plan else 0,
            traceparent=tracing.traceparent(),
        )

    @property
    def queued(self) -> datetime | None:
        """When the first of the builds that wait was asked for."""
        return min((each.at for each in self.waiting if each.action == "build"), default=None)

    @property
    def is_building(self) -> bool:
        """Whether a build runs."""
        return any(each.action == "build" for each in self.together)

    @property
    def running(self) -> RunningBuild | None:
        """The build that runs; None if none does."""
        return self.running_of(self.together[0].id) if self.is_building else None

    def settled_as(self, version: str) -> str:
        """What is remembered if all is built for a version: with another strategy, more may be
        due."""
        return f"{self.policy.strategy.value} {version}"

    @property
    def changes_unasked(self) -> bool:
        """Whether the fleet is about to change definitions without an operator, or is at it."""
        is_running = any(each.action == "define" for each in self.together)
        is_coming = is_running or self.automatic("define") is not None
        return is_coming and self.policy.enabled and self.policy.apply == "auto"

    def automatic(self, action: Action) -> Request | None:
        """What waits and no operator asked for."""
        found = (each for each in self.waiting if each.action == action and not each.is_kept)
        return next(found, None)

    def add(self, request: Request) -> None:
        """Adds a request, or changes the one with its id."""
        others = [each for each in self.waiting if each.id != request.id]
        self.waiting = sorted([*others, request], key=lambda each: not each.is_kept)

    def remove(self, request: str) -> Request:
        """Takes back a request that waits."""
        (found,) = (each for each in self.waiting if each.id == request)
        self.waiting.remove(found)
        return found

    def has(self, request: str) -> bool:
        """Whether a request waits or runs."""
        return any(each.id == request for each in (*self.waiting, *self.together))

    def next_together(self) -> Sequence[Request]:
        """Takes the first request, and those that ask for the same."""
        what = self.waiting[0].asks_for
        together = tuple(each for each in self.waiting if each.asks_for == what)
        self.waiting = [each for each in self.waiting if each not in together]
        return together

    def begin(self, requests: Sequence[Request], job: Job | None = None) -> None:
        """The requests run."""
        self.together, self.job, self.progress = requests, job, None
        self.started = self.advanced = datetime.now(UTC)

    def advance(self, progress: BuildProgress) -> None:
        """The build has told its progress."""
        if self.progress is None or progress.done != self.progress.done:
            self.advanced = datetime.now(UTC)
        self.progress = progress

    def end(self) -> None:
        """Nothing runs."""
        self.together, self.job, self.progress = (), None, None

    def put_back(self, requests: Sequence[Request]) -> Sequence[Request]:
        """What ran waits again. Returns those in whose place another one waits already."""
        replaced = []
        for each in requests:
            if each.is_kept or self.automatic(each.action) is None:
                self.add(each)
            else:
                replaced.append(each)
        return replaced

    def cancel(self, request: str) -> bool:
        """Cancels what runs. Returns whether the request does."""
        if self.job is None or all(each.id != request for each in self.together):
            return False
        self.job.cancelled.set()
        return True

    def running_of(self, request: str) -> RunningBuild | None:
        """How a request runs; None if it waits."""
        for each in self.together:
            if each.id == request:
                return RunningBuild(
                    each.id,
                    each.trigger,
                    self.started,
                    self.advanced,
                    self.progress,
                    each.requested_by,
                    each.action,
                )
        return None


def order_of(
    requests: Sequence[Request], policy: TablePolicy, settings: Settings, *, traceparent: str = ""
) -> Order:
    """What a child is to do for requests that ask for the same.

    Args:
        traceparent: The span of what it does.

    Raises:
        ConfigInvalid: the options of the table's store cannot be read.
    """
    first = requests[0]
    return Order(
        first.id,
        first.action,
        policy,
        is_asked=any(each.is_kept for each in requests),
        strategy=first.strategy,
        dry_run=first.dry_run,
        repair=first.repair,
        plan_id=first.plan_id,
        plan_bytes=first.plan_bytes,
        storage_options=resolved(policy.storage),
        settings=settings_for_child(settings_for(policy, settings)),
        trigger=first.trigger,
        traceparent=traceparent,
        log_level=logging.getLogger("hudi_index_service").getEffectiveLevel(),
    )
