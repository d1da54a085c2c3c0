"""Words of messages: numbers with their nouns, and the messages of others in one line."""

import re

from pydantic import ValidationError


def counted(number: int, noun: str) -> str:
    """A number with its noun, such as ``1 row``, ``2 rows``, ``3 queries``, ``4 indexes``,
    ``5 keys``."""
    if number == 1:
        return f"1 {noun}"
    stem, ending = (noun[:-1], "ies") if re.search("[^aeiou]y$", noun) else (noun, "s")
    return f"{number:,} {stem}{'es' if noun.endswith('x') else ending}"


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
