"""The targets of a benchmark, and whether it reached them: ``targets`` of a result file."""

from typing import Any, TypedDict


class Target(TypedDict):
    """One target of a benchmark.

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


def at_most(name: str, bound: float, measured: float | None) -> Target:
    """A result that must not exceed a bound."""
    reached = measured is not None and measured <= bound
    return Target(name=name, wanted=f"at most {bound:g}", measured=measured, reached=reached)


def at_least(name: str, bound: float, measured: float | None) -> Target:
    """A result that must not fall below a bound."""
    reached = measured is not None and measured >= bound
    return Target(name=name, wanted=f"at least {bound:g}", measured=measured, reached=reached)


def found(result: dict[str, Any], *names: str) -> Any:
    """A value of a result by the names on the way to it; None if its part was left out."""
    value: Any = result
    for name in names:
        value = None if value is None else value.get(name)
    return value
