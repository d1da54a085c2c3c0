"""What is wrong with the service itself, and with no table of its own: a wrong fleet file, a
catalog that is down, a full disk. Page, API and metrics show it, and the log says it once."""

from collections.abc import Iterable
from dataclasses import replace
from threading import Lock

from hudi_index_service.fleet.observation import Refusal
from hudi_index_service.fleet.policies.discovery import FailedSource

WRONG_FILE, FAILED_SOURCES, CERTIFICATE = "fleet file", "sources", "certificate"
"""Where problems are from."""


def of_source(failed: FailedSource) -> Refusal:
    """The problem of a source that cannot be looked up, with where the file has it."""
    error = Refusal.of(failed.error)
    return replace(error, message=f"{failed.source} of group {failed.group}: {error.message}")


class Problems:
    """The present problems. Its methods may be called in any thread."""

    def __init__(self) -> None:
        self._by_origin: dict[str, tuple[Refusal, ...]] = {}
        self._lock = Lock()

    def set(self, origin: str, problems: Iterable[Refusal]) -> None:
        """From now on these are the problems from there, and no others."""
        with self._lock:
            self._by_origin[origin] = tuple(problems)

    def all(self) -> tuple[Refusal, ...]:
        """All problems, by where they are from."""
        with self._lock:
            return tuple(each for _, some in sorted(self._by_origin.items()) for each in some)
