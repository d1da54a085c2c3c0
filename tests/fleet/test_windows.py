"""When builds may begin, on ordinary days and when the clock changes."""

from datetime import UTC, datetime, timedelta

import pytest

from hudi_index_service.errors import ConfigInvalid
from hudi_index_service.fleet.policies.windows import Window, Windows, check_time_zone

BERLIN = "Europe/Berlin"


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def in_berlin(window: str) -> Windows:
    return Windows(BERLIN, (Window.parse(window),))


def next_opening(windows: Windows, now: datetime) -> datetime:
    """The first minute from then on at which builds may begin."""
    while not windows.is_open(now):
        now += timedelta(minutes=1)
    return now


def openings(windows: Windows, start: str, number: int) -> list[str]:
    """The next openings and closings from a time on when it is closed, minute by minute."""
    now, found = utc(start), []
    while len(found) < number:
        now = next_opening(windows, now)
        found.append(now.strftime("%m-%d %H:%M"))
        while windows.is_open(now):
            now += timedelta(minutes=1)
        found.append(now.strftime("%m-%d %H:%M"))
    return found[:number]


def test_without_windows_builds_begin_at_any_time() -> None:
    now = utc("2026-11-29T12:00")
    assert Windows().is_open(now)


def test_a_window_is_by_the_clock_of_its_zone_and_may_pass_midnight() -> None:
    nights = in_berlin("mon-fri 22:00-06:00")
    assert not nights.is_open(utc("2026-11-27T20:59"))  # Friday
    assert nights.is_open(utc("2026-11-27T21:00"))
    assert nights.is_open(utc("2026-11-28T04:59"))  # Saturday, of Friday's window
    assert not nights.is_open(utc("2026-11-28T05:00"))
    assert next_opening(nights, utc("2026-11-28T05:00")) == utc("2026-11-30T21:00")
    assert nights.is_open(utc("2026-11-27T23:00"))


def test_days_by_list_range_and_over_the_end_of_the_week() -> None:
    assert Window.parse("sat, sun 00:00-24:00") == Window(frozenset({5, 6}), 0, 1440)
    assert Window.parse("fri-mon 01:00-02:00").days == {4, 5, 6, 0}
    assert Window.parse("08:00 - 09:30").days == set(range(7))


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        # 02:00 to 03:00 do not exist on March 29th: the day's window is left out.
        ("02:00-03:00", ["03-28 01:00", "03-28 02:00", "03-30 00:00", "03-30 01:00"]),
        # A beginning in the gap is the moment of the change, and so is an end.
        ("02:30-04:00", ["03-28 01:30", "03-28 03:00", "03-29 01:00", "03-29 02:00"]),
        ("01:00-02:30", ["03-28 00:00", "03-28 01:30", "03-29 00:00", "03-29 01:00"]),
        # A night is an hour shorter.
        ("22:00-06:00", ["03-27 21:00", "03-28 05:00", "03-28 21:00", "03-29 04:00"]),
    ],
)
def test_the_clock_is_put_forward(window: str, expected: list[str]) -> None:
    assert openings(in_berlin(window), "2026-03-27T20:00", 4) == expected


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        # The hour from 02:00 to 03:00 is there twice on October 25th, and belongs to it twice.
        ("02:00-03:00", ["10-24 00:00", "10-24 01:00", "10-25 00:00", "10-25 02:00"]),
        ("02:30-04:00", ["10-24 00:30", "10-24 02:00", "10-25 00:30", "10-25 03:00"]),
        ("01:00-02:30", ["10-23 23:00", "10-24 00:30", "10-24 23:00", "10-25 01:30"]),
        # A night is an hour longer.
        ("22:00-06:00", ["10-23 20:00", "10-24 04:00", "10-24 20:00", "10-25 05:00"]),
    ],
)
def test_the_clock_is_put_back(window: str, expected: list[str]) -> None:
    assert openings(in_berlin(window), "2026-10-23T19:00", 4) == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("nightly", "not of the form"),
        ("25:00-26:00", "no time 25:00"),
        ("22:60-23:00", "no time 22:60"),
        ("08:00-08:00", "empty"),
        ("mon-fry 08:00-09:00", "'fry' is no day"),
        (", 08:00-09:00", "no day of the week"),
    ],
)
def test_a_wrong_window_says_why(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        Window.parse(text)


def test_a_wrong_time_zone_says_what_was_meant() -> None:
    with pytest.raises(ConfigInvalid, match="Did you mean Europe/Berlin") as raised:
        check_time_zone("Europe/Berlyn")
    assert "no time zone 'Europe/Berlyn'" in raised.value.message
