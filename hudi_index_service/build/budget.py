"""What a build may spend before it stops by itself."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

from hudi_index_service.build.reconcile import DueEntry
from hudi_index_service.errors import ConfigInvalid


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of one build. What was begun when a limit is reached is finished; the next build goes
    on with what is left, newest instant first, and last of all with what failed before.

    Attributes:
        files: Entries to build at most: one a base file and index type.
        bytes: Base file bytes to read: a base file is begun while less than this has been begun,
            so that one larger than the whole budget is built too.
        minutes: Time after which nothing more is begun.
        requests_per_second: Rate of requests to the table's store, of all tasks together. It stops
            nothing.

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
            if value is not None and not 0 < value < float("inf"):
                raise ConfigInvalid(
                    f"The budget's {each.name} is {value}.", remedy="Use a number above 0."
                )

    def affordable(self, due: Sequence[DueEntry]) -> tuple[DueEntry, ...]:
        """The first entries, as many as files and bytes allow."""
        return tuple(self._affordable(due))

    def _affordable(self, due: Sequence[DueEntry]) -> Iterator[DueEntry]:
        read = 0
        for number, entry in enumerate(due):
            if self.files is not None and number >= self.files:
                return
            if self.bytes is not None and read >= self.bytes:
                return
            read += entry.base_file.size
            yield entry


UNLIMITED = Budget()
