"""Pydantic's validation errors as one line, without pydantic's prefix and the value."""

from pydantic import ValidationError


def first_mistake(error: ValidationError) -> str:
    """The first mistake and its location: ``section.key: what``, without full stop."""
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(map(str, first["loc"]))
    said = first["msg"].removeprefix("Value error, ").rstrip(".")
    return f"{where}: {said}" if where else said
