"""Days and microseconds of the proleptic Gregorian calendar, for Spark's whole range of years.

Python's own dates only cover the years 1 to 9999.
"""

from datetime import date

DAY_MICROS = 86_400_000_000

_CYCLE_YEARS = 400
_CYCLE_DAYS = 146_097
_EPOCH = date(1970, 1, 1).toordinal()


def days_since_epoch(year: int, month: int, day: int) -> int | None:
    """Days from 1970-01-01 to the date; None if there is no such date. Year 0 is 1 BC."""
    # The calendar repeats every 400 years: compute in the cycle that starts in the year 2000.
    cycles, year_in_cycle = divmod(year - 2000, _CYCLE_YEARS)
    try:
        base = date(2000 + year_in_cycle, month, day)
    except ValueError:
        return None
    return base.toordinal() - _EPOCH + cycles * _CYCLE_DAYS


def format_date(days: int) -> str:
    """``yyyy-MM-dd`` as Spark casts a date to a string: a sign for years above 9999 or below 0."""
    cycles, day_in_cycle = divmod(days + _EPOCH - date(2000, 1, 1).toordinal(), _CYCLE_DAYS)
    base = date.fromordinal(date(2000, 1, 1).toordinal() + day_in_cycle)
    year = base.year + cycles * _CYCLE_YEARS
    sign = "+" if year > 9999 else "-" if year < 0 else ""
    return f"{sign}{abs(year):04}-{base.month:02}-{base.day:02}"


def format_timestamp(micros: int) -> str:
    """Microseconds from 1970-01-01 00:00:00 as Spark casts them to a string: no trailing zeros in
    the fraction."""
    days, in_day = divmod(micros, DAY_MICROS)
    seconds, fraction = divmod(in_day, 1_000_000)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    tail = f".{fraction:06}".rstrip("0") if fraction else ""
    return f"{format_date(days)} {hour:02}:{minute:02}:{second:02}{tail}"
