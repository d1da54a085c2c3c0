"""One table as API and page show it: the observation, and what follows from it."""

import shlex
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from hudi_index_service.fleet.observation import Observation
from hudi_index_service.fleet.signals.attention import WELL, Reason, ReasonsOf, place
from hudi_index_service.maintain.status import TableStatus

BUTTONS = ("build", "clean", "verify", "approve", "cancel")
"""The commands that the page and the API can carry out."""


@dataclass(frozen=True, slots=True)
class Button:
    """What a reason's remedy is as a request.

    Attributes:
        action: One of `BUTTONS`.
        strategy: That of a build; "" for the table's own.
        repair: Whether a verification builds damaged entries anew.
    """

    action: str
    strategy: str = ""
    repair: bool = False


def button_of(remedy: str) -> Button | None:
    """The button for a remedy; None for a command that is run elsewhere."""
    try:
        words = shlex.split(remedy)
    except ValueError:  # a quote without its end
        return None
    if words[:1] != ["hudi-index"]:
        return None
    words = words[2:] if words[1:2] == ["fleet"] else words[1:]
    if not words or words[0] not in BUTTONS:
        return None
    options = iter(words)
    strategy = next((next(options, "") for word in options if word == "--strategy"), "")
    return Button(words[0], strategy, "--repair" in words)


@dataclass(frozen=True, slots=True)
class TableView:
    """A table with the reasons for attention, the worst first."""

    seen: Observation
    reasons: tuple[Reason, ...]

    @classmethod
    def of(cls, seen: Observation, reasons_of: ReasonsOf) -> "TableView":
        """The view of an observation."""
        reasons = sorted(reasons_of(seen), key=lambda each: (each.severity, each.since))
        return cls(seen, tuple(reasons))

    @property
    def name(self) -> str:
        """The table's name."""
        return self.seen.policy.name

    @property
    def status(self) -> TableStatus | None:
        """What the last look that succeeded found."""
        return self.seen.status

    @property
    def severity(self) -> int:
        """That of the worst reason; `WELL` without any."""
        return self.reasons[0].severity if self.reasons else WELL

    @property
    def state(self) -> str:
        """``paused``, ``building``, ``waiting``, ``unseen``, ``unreachable`` or ``idle``."""
        seen = self.seen
        if not seen.policy.enabled:
            return "paused"
        if seen.running is not None:
            return "building"
        if seen.queued is not None:
            return "waiting"
        if seen.unreachable_polls:
            return "unreachable"
        return "unseen" if seen.at is None else "idle"

    @property
    def progress(self) -> float | None:
        """The part of the running build that is done, by bytes; None while it is not known."""
        running = self.seen.running
        progress = None if running is None else running.progress
        if progress is None or not progress.bytes:
            return None
        return min(1.0, progress.bytes_done / progress.bytes)

    @property
    def coverage(self) -> float | None:
        """That of the index that covers least; None without an index."""
        return min((each.coverage for each in self.status or ()), default=None)

    @property
    def due(self) -> int:
        """The base files that builds take, of the index with most of them."""
        return max((each.due for each in self.status or ()), default=0)

    @property
    def lag_seconds(self) -> float:
        """How long the oldest due base file waits."""
        return 0.0 if self.status is None else self.status.lag_seconds

    @property
    def muted(self) -> list[tuple[str, datetime]]:
        """The codes of the reasons that are muted now, and until when; the first to come back
        first."""
        now = datetime.now(UTC)
        codes = [(code, until) for code, until in self.seen.muted.items() if until > now]
        return sorted(codes, key=lambda each: (each[1], each[0]))

    def button(self, reason: Reason) -> Button | None:
        """The button for a reason: no second build is asked for, and nothing is cancelled that does
        not run."""
        button = button_of(reason.remedy)
        runs = self.seen.running is not None
        if button is not None and button.action in ("build", "cancel"):
            return button if runs == (button.action == "cancel") else None
        return button

    @property
    def by_attention(self) -> tuple[int, int, datetime, str]:
        """See `place`."""
        return place(self.seen.policy, self.reasons)


SORTS: dict[str, Callable[[TableView], tuple[object, ...]]] = {
    "attention": lambda view: view.by_attention,
    "name": lambda view: (view.name,),
    "owner": lambda view: (view.seen.policy.owner, view.name),
    "group": lambda view: (view.seen.policy.group, view.name),
    "coverage": lambda view: (1.1 if view.coverage is None else view.coverage, view.name),
    "lag": lambda view: (-view.lag_seconds, view.name),
}
"""The orders of a list of tables, by name."""


def selected(
    views: Iterable[TableView], *, text: str = "", owner: str = "", group: str = "", sort: str = ""
) -> list[TableView]:
    """The tables of a list.

    Args:
        text: Part of the name, in letters of any case; "" for all.
        owner, group: Exactly; "" for all.
        sort: One of `SORTS`; any other is ``attention``. A ``-`` before it turns it round.
    """
    chosen = [
        view
        for view in views
        if text.casefold() in view.name.casefold()
        and owner in ("", view.seen.policy.owner)
        and group in ("", view.seen.policy.group)
    ]
    key = SORTS.get(sort.removeprefix("-"), SORTS["attention"])
    return sorted(chosen, key=key, reverse=sort.startswith("-"))
