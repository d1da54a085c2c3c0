"""What entries cost by the records of the table's past builds."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hudi_index_service.build.costs.rate import Cost, Measurement
from hudi_index_service.build.record import BuildRecord

_RECORDS = 20

Kind = tuple[str, tuple[tuple[str, tuple[str, ...]], ...]]
"""Index type, and columns with their fields: entries that share both cost about the same per byte
of base file."""


@dataclass(frozen=True, slots=True)
class PastCosts:
    """The costs of the kinds of entries that were built before, and the ids of those builds, newest
    first."""

    costs: Mapping[Kind, Cost]
    builds: tuple[str, ...]


def past_costs(kinds: Collection[Kind], records: Iterable[BuildRecord]) -> PastCosts:
    """The costs of those kinds of entries that past builds built.

    Args:
        records: The table's builds, newest first; the newest that built such entries count.
    """
    measurements: defaultdict[Kind, list[Measurement]] = defaultdict(list)
    builds: list[str] = []
    for record in records:
        if len(builds) == _RECORDS:
            break
        used = False
        for outcome in record.outcomes:
            kind = _kind(outcome)
            if outcome.get("status") == "built" and outcome.get("bytes") and kind in kinds:
                measurements[kind].append(
                    Measurement(outcome["bytes"], outcome["seconds"], outcome["index_bytes"])
                )
                used = True
        if used:
            builds.append(record.id)
    return PastCosts({kind: Cost.of(each) for kind, each in measurements.items()}, tuple(builds))


def _kind(outcome: Mapping[str, Any]) -> Kind:
    """The kind of entry of a recorded outcome. Records of older releases have no fields, and equal
    no kind."""
    names, fields = outcome.get("columns") or (), outcome.get("fields") or ()
    columns = tuple((name, tuple(each)) for name, each in zip(names, fields, strict=False))
    return str(outcome.get("index_type")), columns
