"""The limits at which a build stops by itself."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from hudi_index_service.errors import ConfigInvalid

if TYPE_CHECKING:
    from hudi_index_service.build.reconcile import DueEntry


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of one build. Entries begun when a limit is reached are finished. The next build
    continues with the rest: newest instant first, entries that failed before last.

    Attributes:
        files: The maximum number of entries to build: one per base file and index type.
        bytes: Base file bytes to read. A base file is begun while the total of those begun is
            below this limit, so a base file larger than the whole budget is built too.
        minutes: The time after which nothing more is begun.
        requests_per_second: The maximum rate of requests to the table's store, of all tasks
            together. It stops nothing.

    Raises:
        ConfigInvalid: a limit is not greater than 0.
    """

    files: int | None = None
    bytes: int | None = None
    minutes: float | None = None
    requests_per_second: float | None = None

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if value is None:
                continue
            if not isinstance(value, int | float) or not 0 < value < float("inf"):
                raise ConfigInvalid(
                    f"The budget's {each.name} is {value!r}.", remedy="Use a number above 0."
                )

    def affordable(self, due: "Sequence[DueEntry]") -> "tuple[DueEntry, ...]":
        """The first entries, as many as files and bytes allow."""
        return tuple(self._affordable(due))

    def _affordable(self, due: "Sequence[DueEntry]") -> "Iterator[DueEntry]":
        total_bytes = 0
        for number, entry in enumerate(due):
            if self.files is not None and number >= self.files:
                return
            if self.bytes is not None and total_bytes >= self.bytes:
                return
            total_bytes += entry.base_file.size
            yield entry


UNLIMITED = Budget()
