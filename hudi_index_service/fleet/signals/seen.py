"""What to show of the reasons for attention: none that comes and goes, and none that an operator
has muted."""

from dataclasses import dataclass, replace
from datetime import datetime
from threading import Lock

from hudi_index_service.fleet.observation import Observation
from hudi_index_service.fleet.signals.attention import Code, Reason, attention

APPEARS_AFTER = 2
"""Observations in a row that give a reason before it is shown. The first without it ends it."""


@dataclass(frozen=True, slots=True)
class Change:
    """The reasons that one observation made appear and go."""

    appeared: tuple[Reason, ...] = ()
    gone: tuple[Reason, ...] = ()


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

    def shown(self, observation: Observation, now: datetime) -> tuple[Reason, ...]:
        """The reasons to show of a table, the worst first."""
        name = observation.policy.name
        with self._lock:
            visible = _visible(self._kept.get(name, {}))
            muted = {
                code
                for (table, code), until in self._mutes.items()
                if table == name and now < until
            }
        return tuple(reason for code, reason in visible.items() if code not in muted)

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
