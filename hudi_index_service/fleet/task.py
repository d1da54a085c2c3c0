"""What operators ask of the fleet: a task for a table, which becomes a request."""

from dataclasses import dataclass

from hudi_index_service.build.strategy import Strategy
from hudi_index_service.fleet.ledger import Action


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
