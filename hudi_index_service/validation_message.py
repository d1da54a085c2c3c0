"""What pydantic found wrong, in words of ours: one line, without its prefix and the value."""

from pydantic import ValidationError


def first_mistake(error: ValidationError) -> str:
    """The first thing that is wrong, and where: ``section.key: what``, without full stop."""
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(map(str, first["loc"]))
    said = first["msg"].removeprefix("Value error, ").rstrip(".")
    return f"{where}: {said}" if where else said
