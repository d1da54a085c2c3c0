"""The result of a check: what was found, and how to fix what is wrong."""

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class Status(StrEnum):
    """What a check found."""

    OK = "ok"
    MISSING = "missing"
    WRONG_VERSION = "wrong version"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Check:
    """One check.

    Attributes:
        name: What was checked.
        status: What was found.
        detail: The version and place of what is there, or what is wrong, in one sentence.
        remedy: How to fix it; "" if there is nothing to fix.
        required: Whether the service needs it; otherwise only an optional part does.
    """

    name: str
    status: Status
    detail: str
    remedy: str = ""
    required: bool = True

    def line(self) -> str:
        """The check as `hudi-index doctor` prints it."""
        optional = "" if self.required else " (optional)"
        return f"{self.status:<14} {self.name}{optional}: {self.detail} {self.remedy}".rstrip()


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """All checks, in order."""

    checks: tuple[Check, ...]

    @property
    def is_well(self) -> bool:
        """Whether everything works that the service needs."""
        return all(each.status is Status.OK for each in self.checks if each.required)

    def to_dict(self) -> dict[str, Any]:
        """The form printed as JSON."""
        return {"ok": self.is_well, "checks": [asdict(each) for each in self.checks]}
