"""What a benchmark was to reach, and whether it did: the list ``targets`` of a result file."""

from typing import TypedDict


class Target(TypedDict):
    """One aim of a benchmark.

    Attributes:
        name: What is measured, with its unit.
        wanted: The bound.
        measured: The result; None if the run left it out.
        reached: Whether the result is within the bound.
    """

    name: str
    wanted: str
    measured: float | None
    reached: bool


def at_most(name: str, wanted: float, measured: float | None) -> Target:
    """A result that must not exceed a bound."""
    reached = measured is not None and measured <= wanted
    return Target(name=name, wanted=f"at most {wanted:g}", measured=measured, reached=reached)


def at_least(name: str, wanted: float, measured: float | None) -> Target:
    """A result that must not fall below a bound."""
    reached = measured is not None and measured >= wanted
    return Target(name=name, wanted=f"at least {wanted:g}", measured=measured, reached=reached)
