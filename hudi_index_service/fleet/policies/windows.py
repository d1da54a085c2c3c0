"""When builds may begin: windows of a week in a time zone, through summer time and back."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo, available_timezones

from hudi_index_service.errors import ConfigInvalid
from hudi_index_service.wording import did_you_mean

_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_WEEK = len(_DAYS)
_HOURS = r"(?P<{0}_hour>\d\d):(?P<{0}_minute>\d\d)"
_WINDOW = re.compile(
    rf"(?:(?P<days>[a-z,\s-]+?)\s+)?{_HOURS.format('start')}\s*-\s*{_HOURS.format('end')}"
)
_MINUTES_OF_A_DAY = 24 * 60


@dataclass(frozen=True, slots=True)
class Window:
    """Some hours on some days of the week, by the wall clock.

    Attributes:
        days: Days on which it begins, Monday 0.
        start: Minutes after midnight.
        end: Likewise, of the next day if it is not greater than `start`; 1440 for midnight.
    """

    days: frozenset[int]
    start: int
    end: int

    @classmethod
    def parse(cls, text: str) -> "Window":
        """The window of a text: ``22:00-06:00``, ``mon-fri 22:00-06:00``, ``sat,sun 00:00-24:00``.

        Raises:
            ValueError: it is not of this form.
        """
        match = _WINDOW.fullmatch(text.strip().lower())
        if match is None:
            raise ValueError(f"{text!r} is not of the form mon-fri 22:00-06:00")
        start, end = (_minutes(text, match, side) for side in ("start", "end"))
        if start in (end, _MINUTES_OF_A_DAY):
            raise ValueError(f"{text!r}: the window is empty; a whole day is 00:00-24:00")
        return cls(frozenset(_days_of(match["days"] or "mon-sun")), start, end)

    def opening(self, day: date, zone: ZoneInfo) -> datetime:
        """When it begins, if it does on this day, in UTC."""
        return _moment(day, self.start, zone, last=False)

    def closing(self, day: date, zone: ZoneInfo) -> datetime:
        """When that one ends."""
        if self.end <= self.start:
            day += timedelta(days=1)
        return _moment(day, self.end, zone, last=True)


@dataclass(frozen=True, slots=True)
class Windows:
    """The windows of a table; without any, builds may begin at any time.

    A time that the change to summer time leaves out is the moment of the change. Of a time that the
    change back repeats, a window begins with the first and ends with the second.

    Attributes:
        time_zone: An IANA name, such as ``Europe/Berlin``.
    """

    time_zone: str = "UTC"
    windows: tuple[Window, ...] = ()

    def is_open(self, now: datetime) -> bool:
        """Whether a build may begin. `now` has a time zone of its own."""
        if not self.windows:
            return True
        zone = ZoneInfo(self.time_zone)
        today = now.astimezone(zone).date()
        return any(
            window.opening(day, zone) <= now < window.closing(day, zone)
            for day in (today - timedelta(days=1), today)  # on which it may have begun
            for window in self.windows
            if day.weekday() in window.days
        )


def check_time_zone(name: str) -> str:
    """The name. Raises ConfigInvalid if it is not that of a time zone."""
    if name not in available_timezones():
        raise ConfigInvalid(
            f"There is no time zone {name!r}.",
            remedy=did_you_mean(name, available_timezones())
            + "Use a name of the IANA's database, such as Europe/Berlin.",
        )
    return name


def _minutes(text: str, match: re.Match[str], side: str) -> int:
    hour, minute = int(match[f"{side}_hour"]), int(match[f"{side}_minute"])
    total = 60 * hour + minute
    if minute >= 60 or total > _MINUTES_OF_A_DAY:
        raise ValueError(f"{text!r}: there is no time {hour:02}:{minute:02}")
    return total


def _days_of(text: str) -> Iterator[int]:
    for part in text.split(","):
        first, _, last = (each.strip() for each in part.partition("-"))
        for name in filter(None, (first, last)) if first else (first,):
            if name not in _DAYS:
                raise ValueError(f"{name!r} is no day of the week: {', '.join(_DAYS)}")
        start = _DAYS.index(first)
        length = (_DAYS.index(last) - start) % _WEEK if last else 0
        yield from ((start + number) % _WEEK for number in range(length + 1))


def _moment(day: date, minutes: int, zone: ZoneInfo, *, last: bool) -> datetime:
    """A wall-clock time in UTC: the moment of the change for one that does not exist, and the first
    or `last` of one that there is twice."""
    wall = datetime(day.year, day.month, day.day) + timedelta(minutes=minutes)
    earlier, later = (wall.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    if earlier.astimezone(zone).replace(tzinfo=None) == wall:
        return later if last else earlier
    # In the gap, the offset before the change leads past it, and the one after it to before it.
    before, after = later, earlier
    offset = before.astimezone(zone).utcoffset()
    while after - before > timedelta(seconds=1):
        middle = before + (after - before) / 2
        if middle.astimezone(zone).utcoffset() == offset:
            before = middle
        else:
            after = middle
    return after.replace(microsecond=0)
