"""Estimates the cost of a build from earlier builds of the table. Nothing is guessed: entries with
columns that were never built here have no estimate."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from hudi_index_service.build.entry.parts import LEAST_BYTES, part_counts
from hudi_index_service.build.reconcile import DueEntry
from hudi_index_service.build.record import BuildRecord

_RECORDS = 20

_Kind = tuple[str, tuple[str, ...]]
"""Index type and columns: entries that share both cost about the same per byte of base file."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """The estimated cost of a build.

    Attributes:
        files: The number of entries to build: one per base file and index type.
        bytes: The total length of their base files; the build reads only the indexed columns.
        seconds: The time from the first task to the last; None if the table has no finished build
            for the index type and columns of some entry.
        index_bytes: The size of the entries' data files; None in the same case.
        builds: The ids of the builds on which `seconds` and `index_bytes` are based, newest first.
            They may have run on another machine.
    """

    files: int
    bytes: int
    seconds: float | None
    index_bytes: int | None
    builds: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The form printed as JSON, with the attributes' names."""
        return asdict(self)


@dataclass(slots=True)
class _Cost:
    bytes: int = 0
    seconds: float = 0.0
    index_bytes: int = 0


def estimate(
    due: Sequence[DueEntry], records: Iterable[BuildRecord], *, parallelism: int
) -> Estimate:
    """The cost of building `due`.

    Args:
        records: The table's builds, newest first; the newest that built such entries count.
        parallelism: The number of concurrent tasks.
    """
    costs, builds = _costs({_kind(entry) for entry in due}, records)
    total = sum(entry.base_file.size for entry in due)
    if any(_kind(entry) not in costs for entry in due):
        return Estimate(len(due), total, None, None)
    seconds = [_share(entry, costs[_kind(entry)], costs[_kind(entry)].seconds) for entry in due]
    sizes = [_share(entry, costs[_kind(entry)], costs[_kind(entry)].index_bytes) for entry in due]
    # Tasks run in parallel, but no base file takes less time than one of its parts.
    parts = part_counts(
        [entry.base_file.size for entry in due], slots=parallelism, least=LEAST_BYTES
    )
    alone = (each / part for each, part in zip(seconds, parts, strict=True))
    wall = max(sum(seconds) / parallelism, max(alone, default=0.0))
    return Estimate(len(due), total, round(wall, 1), round(sum(sizes)), tuple(builds))


def _kind(entry: DueEntry) -> _Kind:
    return entry.index_type, tuple(column.name for column in entry.columns)


def _share(entry: DueEntry, cost: _Cost, amount: float) -> float:
    return entry.base_file.size * amount / cost.bytes


def _costs(
    kinds: set[_Kind], records: Iterable[BuildRecord]
) -> tuple[Mapping[_Kind, _Cost], list[str]]:
    costs: dict[_Kind, _Cost] = {}
    builds: list[str] = []
    for record in records:
        if len(builds) == _RECORDS:
            break
        used = False
        for outcome in record.outcomes:
            kind = (outcome.get("index_type"), tuple(outcome.get("columns") or ()))
            if outcome.get("status") == "built" and outcome.get("bytes") and kind in kinds:
                cost = costs.setdefault(kind, _Cost())
                cost.bytes += outcome["bytes"]
                cost.seconds += outcome["seconds"]
                cost.index_bytes += outcome["index_bytes"]
                used = True
        if used:
            builds.append(record.id)
    return costs, builds
