"""What API, page and metrics ask of the running fleet. The supervisor answers; tests bring one of
their own."""

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Protocol

from hudi_index_service.build.strategy import Strategy
from hudi_index_service.fleet.ledger import Action
from hudi_index_service.fleet.observation import EndedBuild, Observation, RunningBuild


@dataclass(frozen=True, slots=True)
class Task:
    """What an operator may ask for of a table.

    Attributes:
        action: ``build``, ``clean``, ``verify`` all entries, or ``define``: carry out the table's
            `Observation.plan`.
        strategy: What a build covers; None for the table's own.
        dry_run: Whether a clean only counts.
        repair: Whether a verification builds damaged entries anew.
        plan: The `Observation.plan_id` that the operator has seen; "" for the present one. If
            another one is due by then, nothing is changed.
    """

    action: Action
    strategy: Strategy | None = None
    dry_run: bool = False
    repair: bool = False
    plan: str = ""

    def __str__(self) -> str:
        match self.action:
            case "build" if self.strategy is not None:
                return f"build {self.strategy.value}"
            case "clean" if self.dry_run:
                return "clean dry run"
            case "verify" if self.repair:
                return "verify and repair"
            case "define":
                return "approve"
        return self.action


@dataclass(frozen=True, slots=True)
class Requested:
    """A request that was taken: its id, and whether it is the one of an earlier call with the same
    idempotency key."""

    id: str
    table: str
    repeated: bool = False


class Fleet(Protocol):
    """The running fleet. Every method returns from memory at once, and may be called in any thread.

    Methods that name a table raise `TableNotInFleet` for an unknown one.
    """

    def tables(self) -> Sequence[Observation]:
        """All tables, in order of their names."""

    def table(self, name: str) -> Observation:
        """One table."""

    def ask(
        self, name: str, task: Task, *, key: str | None = None, requested_by: str = ""
    ) -> Requested:
        """Asks for something; the same `key` for the same table and action gives the same request.

        Raises:
            CallbackRefused: too many requests wait, or the service is ending.
        """

    def build_of(self, request: str) -> RunningBuild | EndedBuild | None:
        """The build of a request; None while it waits.

        Raises:
            RequestUnknown: no such request.
        """

    def end_of(self, request: str) -> Future[EndedBuild]:
        """How a request ends, once it has. It is cancelled if the request will have no end, as when
        its table leaves the fleet. Others wait for it, too: do not cancel it.

        Raises:
            RequestUnknown: no such request.
        """

    def cancel(self, request: str, *, requested_by: str = "") -> None:
        """Cancels a waiting or running build. One that has ended stays as it is.

        Raises:
            RequestUnknown: no such request.
        """

    def callback(self, uri: str) -> Requested:
        """A writer has committed to the table at this base path: asks for a build. Callbacks that
        come before it begins share one.

        Raises:
            CallbackRefused: the table is paused or built by polls alone, or the service is ending.
        """

    def mute(self, name: str, code: str, *, days: int, requested_by: str = "") -> None:
        """Hides a reason of a table for some days: `code` is one of `attention.Code`."""

    def unmute(self, name: str, code: str, *, requested_by: str = "") -> None:
        """Shows a reason of a table again."""
