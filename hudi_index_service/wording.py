"""Words of messages: numbers with their nouns, and the messages of others in one line."""

import difflib
import re
from collections.abc import Iterable

from pydantic import ValidationError


def counted(number: int, noun: str) -> str:
    """A number with its noun, such as ``1 row``, ``2 rows``, ``3 queries``, ``4 indexes``,
    ``5 keys``."""
    if number == 1:
        return f"1 {noun}"
    stem, ending = (noun[:-1], "ies") if re.search("[^aeiou]y$", noun) else (noun, "s")
    return f"{number:,} {stem}{'es' if noun.endswith('x') else ending}"


def did_you_mean(name: str, choices: Iterable[str]) -> str:
    """A question that names the choice most like a misspelt name, with a space at its end; empty if
    there is none."""
    by_lower_case = {choice.lower(): choice for choice in choices}
    near = difflib.get_close_matches(name.lower(), by_lower_case, n=1)
    return f"Did you mean {by_lower_case[near[0]]}? " if near else ""


def reason(error: Exception) -> str:
    """Why an operation failed, without full stop: of the operating system's errors without number
    and path, which messages name themselves."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return first_line(error)


def one_line(message: object) -> str:
    """A message of several lines in one."""
    return re.sub(r"\s*[\r\n]\s*", " ", str(message)).strip()


# What ends a line, controls a terminal, or is no character.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def printable(text: str) -> str:
    """A text with Python's escapes for what ends a line, controls a terminal, or is no character:
    names of files and values may contain it."""
    return _UNPRINTABLE.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


_QUOTED = 100  # maximum characters of a text quoted in messages


def shortened(text: str) -> str:
    """A text cut to a length that a message can quote."""
    return text if len(text) <= _QUOTED else f"{text[:_QUOTED]}… ({len(text):,} characters)"


def first_line(message: object) -> str:
    """The first line of a message, without full stop."""
    return str(message).split("\n", 1)[0].rstrip(". ")


def first_mistake(error: ValidationError) -> str:
    """The first mistake and its location: ``section.key: message``, without full stop, pydantic's
    prefix and the value."""
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(map(str, first["loc"]))
    message = first["msg"].removeprefix("Value error, ").rstrip(".")
    return f"{where}: {message}" if where else message
