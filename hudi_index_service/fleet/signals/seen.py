"""What to show of the reasons for attention: none that comes and goes, none that an operator has
muted, and the worst table first."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum
from threading import Lock

from hudi_index_service.fleet.observation import Observation
from hudi_index_service.fleet.signals.attention import Code, Reason, attention, place

APPEARS_AFTER = 2
"""Observations in a row that give a reason before it is shown. The first without it ends it."""


class Group(Enum):
    """The groups of tables, in the order in which they are shown."""

    NEEDS_ATTENTION = "needs_attention"
    WELL = "well"
    PAUSED = "paused"


@dataclass(frozen=True, slots=True)
class Shown:
    """A table with the reasons to show, the worst first, and those that are muted."""

    observation: Observation
    reasons: tuple[Reason, ...]
    muted: tuple[Reason, ...] = ()

    @property
    def severity(self) -> int | None:
        """The severity of the worst reason; None without one."""
        return min((each.severity for each in self.reasons), default=None)

    @property
    def group(self) -> Group:
        """The group in which the table is shown."""
        if not self.observation.policy.enabled:
            return Group.PAUSED
        return Group.NEEDS_ATTENTION if self.reasons else Group.WELL


@dataclass(frozen=True, slots=True)
class Change:
    """The reasons that one observation made appear and go."""

    appeared: tuple[Reason, ...] = ()
    gone: tuple[Reason, ...] = ()


def ranked(tables: Iterable[Shown]) -> list[Shown]:
    """Tables by group, severity, priority, age of the oldest reason, and name."""
    return sorted(tables, key=lambda each: place(each.observation.policy, each.reasons))


@dataclass(frozen=True, slots=True)
class _Kept:
    """A reason, and in how many observations in a row it was given."""

    reason: Reason
    times: int


class Seen:
    """The reasons that the observations of all tables gave. Its methods may be called in any
    thread."""

    def __init__(self) -> None:
        self._mutes: dict[tuple[str, Code], datetime] = {}
        self._kept: dict[str, dict[Code, _Kept]] = {}
        self._last: dict[str, datetime | None] = {}
        self._lock = Lock()

    def observe(self, observation: Observation, now: datetime) -> Change:
        """Takes note of an observation, and tells what changed by it. What is told again of the
        same look counts once.

        Args:
            now: The present time, in UTC.
        """
        name = observation.policy.name
        with self._lock:
            before = self._kept.get(name, {})
            # Compared by being another, not by being later: a clock may have been set back.
            is_new = name not in self._last or self._last[name] != observation.at
            after = {
                each.code: _kept(each, before.get(each.code), is_new=is_new)
                for each in attention(observation, now)
            }
            self._kept[name], self._last[name] = after, observation.at
        was, now_shown = _visible(before), _visible(after)
        return Change(
            tuple(reason for code, reason in now_shown.items() if code not in was),
            tuple(reason for code, reason in was.items() if code not in now_shown),
        )

    def shown(self, observation: Observation, now: datetime) -> Shown:
        """A table with what to show of it."""
        name = observation.policy.name
        with self._lock:
            visible = tuple(_visible(self._kept.get(name, {})).values())
            muted = {
                code
                for (table, code), until in self._mutes.items()
                if table == name and now < until
            }
        return Shown(
            observation,
            tuple(each for each in visible if each.code not in muted),
            tuple(each for each in visible if each.code in muted),
        )

    def ranked(self, observations: Iterable[Observation], now: datetime) -> list[Shown]:
        """All tables with what to show of them, the worst first."""
        return ranked(self.shown(each, now) for each in observations)

    def mute(self, table: str, code: Code, until: datetime) -> None:
        """Hides a reason of a table until a date; a date that has passed shows it again."""
        with self._lock:
            self._mutes[table, code] = until

    def forget(self, table: str) -> None:
        """Forgets a table that has left the fleet; what was muted of it stays so."""
        with self._lock:
            self._kept.pop(table, None)
            self._last.pop(table, None)


def _kept(reason: Reason, before: _Kept | None, *, is_new: bool) -> _Kept:
    if before is None:
        return _Kept(reason, 1)
    since = min(reason.since, before.reason.since)
    return _Kept(replace(reason, since=since), before.times + is_new)


def _visible(kept: dict[Code, _Kept]) -> dict[Code, Reason]:
    return {code: each.reason for code, each in kept.items() if each.times >= APPEARS_AFTER}
