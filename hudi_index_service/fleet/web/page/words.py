"""Numbers and times as the pages show them."""

from datetime import UTC, datetime
from math import floor

from hudi_index_service.fleet.signals.attention import Code
from hudi_index_service.fleet.timeline import SeenInstant
from hudi_index_service.wording import counted


def percent(part: float | None) -> str:
    """A fraction as a percentage, never rounded up to 100 %; – if there is none."""
    if part is None:
        return "–"
    shown = floor(part * 1000) / 10
    return f"{shown:.0f} %" if shown == int(shown) else f"{shown:.1f} %"


def duration(seconds: float | None, units_shown: int = 2) -> str:
    """Seconds in the largest units; – if there are none."""
    if seconds is None:
        return "–"
    rest = max(0, int(seconds))
    units: list[tuple[int, str]] = []
    for length, name in ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s")):
        number, rest = divmod(rest, length)
        if number or units:
            units.append((number, name))
    if not units:
        return "0 s"
    return " ".join(f"{number} {name}" for number, name in units[:units_shown] if number)


def bytes_in_units(number: float) -> str:
    """Bytes in a unit of 1024."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(number) < 1024 or unit == "TiB":
            break
        number /= 1024
    return f"{number:,.0f} {unit}" if unit == "B" or number >= 100 else f"{number:,.1f} {unit}"


def age(moment: datetime, now: datetime | None = None) -> str:
    """How long ago something was, in its largest unit."""
    seconds = ((now or datetime.now(UTC)) - moment).total_seconds()
    return "now" if seconds < 1 else f"{duration(seconds, 1)} ago"


def time_of(moment: datetime | None) -> str:
    """A time in UTC, to the second."""
    return "–" if moment is None else f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def value_of(number: float | str) -> str:
    """The value or the limit of a reason."""
    return number if isinstance(number, str) else f"{number:,.6g}"


def meaning_of(code: str) -> str:
    """When a table gives the reason of this code."""
    known = next((each for each in Code if each == code), None)
    return "A reason of another release." if known is None else known.meaning.replace("`", "")


def instant_time(requested: str) -> str:
    """The time of an instant, to the second, by its writer's clock."""
    try:
        return f"{datetime.strptime(requested[:14], '%Y%m%d%H%M%S'):%Y-%m-%d %H:%M:%S}"
    except ValueError:
        return "–"


def index_state(instant: SeenInstant) -> str:
    """What indexes have of an instant's base files."""
    files, covered = instant.base_files, instant.covered
    if not files:
        return "–"
    if covered >= files:
        return f"{counted(files, 'base file')} indexed"
    rest = files - covered - instant.due
    parts = [f"{covered} of {counted(files, 'base file')} indexed"]
    parts += [f"{instant.due} due"] if instant.due else []
    parts += [f"{rest} left to scans"] if rest > 0 else []
    return ", ".join(parts)


FILTERS = {
    "instant": instant_time,
    "index_state": index_state,
    "meaning": meaning_of,
    "value": value_of,
    "percent": percent,
    "duration": duration,
    "bytes": bytes_in_units,
    "age": age,
    "time": time_of,
    "counted": counted,
}
