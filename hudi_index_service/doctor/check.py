"""The result of a check: what was found, and how to fix what is wrong; and the check of packages,
by what this package's own metadata requires, for itself and for each of its extras."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from enum import StrEnum
from importlib.metadata import requires
from typing import Any

from packaging.requirements import Requirement

from hudi_index_service.tested import version_of

OWN = "hudi-index-service"


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


def package_check(name: str, purpose: str, extra: str = "") -> Check:
    """Whether the packages are installed, in versions that fit.

    Args:
        name: The name of the check.
        purpose: What the packages are for: a sentence without full stop.
        extra: The extra that requires them; "" for what this package always requires.
    """
    missing, wrong, present = [], [], []
    for requirement in _requirements(extra):
        found = version_of(requirement.name)
        if found is None:
            missing.append(requirement.name)
            continue
        present.append(f"{requirement.name} {found}")
        if not requirement.specifier.contains(found, prereleases=True):
            wrong.append(f"{requirement.name} is {found}, not {requirement.specifier}")
    required = not extra
    package = f"'{OWN}[{extra}]'" if extra else OWN
    remedy = f"pip install {package}"
    if wrong:
        detail = f"{'; '.join(wrong)}."
        return Check(name, Status.WRONG_VERSION, detail, f"Fix: {remedy}.", required)
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        detail = f"{', '.join(missing)} {verb} not installed."
        return Check(name, Status.MISSING, detail, f"{purpose}: {remedy}.", required)
    return Check(name, Status.OK, f"{', '.join(present)}.", required=required)


def _requirements(extra: str) -> Iterator[Requirement]:
    """What an extra adds; what the package itself requires if there is no extra."""
    for line in requires(OWN) or ():
        requirement = Requirement(line)
        if requirement.name == OWN:
            continue  # an extra that includes another one, which has a check of its own
        marker = requirement.marker
        if marker is None or marker.evaluate({"extra": ""}):
            if not extra:
                yield requirement
        elif extra and marker.evaluate({"extra": extra}):
            yield requirement
