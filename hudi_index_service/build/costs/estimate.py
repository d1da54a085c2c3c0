"""Estimates the cost of a build: from earlier builds of the table, else from a sample that is built
for real."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from hudi_index_service.build.costs.past_builds import Kind, past_costs
from hudi_index_service.build.costs.rate import Cost, Rate
from hudi_index_service.build.costs.sample import Sample, indexed_together
from hudi_index_service.build.costs.smaller import LARGE, SmallerColumn, smaller_columns
from hudi_index_service.build.entry.parts import LEAST_BYTES, part_counts
from hudi_index_service.build.reconcile import DueEntry
from hudi_index_service.build.record import BuildRecord
from hudi_index_service.errors import IndexServiceError
from hudi_index_service.hudi.snapshot import BaseFile
from hudi_index_service.index.contract import ColumnSpec
from hudi_index_service.index.metadata.requirements import Requirement, by_index_type, merged


@dataclass(frozen=True, slots=True)
class ColumnEstimate:
    """What a column, or the columns of a composite key, cost in all entries of an index type: the
    seconds on one core, and the bytes."""

    index_type: str
    column: str
    seconds: float
    index_bytes: int


@dataclass(frozen=True, slots=True)
class Estimate:
    """The estimated cost of a build.

    Attributes:
        files: The number of entries to build: one per base file and index type.
        bytes: The total length of their base files; the build reads only the indexed columns.
        seconds: The time from the first task to the last; None if unknown.
        index_bytes: The size of the entries' data files; None if unknown.
        builds: The ids of the builds on which the estimate is based, newest first. They may have
            run on another machine.
        sampled_rows: The number of rows that were indexed to learn what no build tells; 0 if the
            builds tell all.
        seconds_error, index_bytes_error: How far time and size may be off: two standard errors of
            the sample, or of the builds' entries; None if unknown.
        tasks: The number of concurrent tasks for which `seconds` holds.
        table_bytes: The total length of the base files, each counted once.
        columns: What each sampled column costs.
        entries: The seconds on one core and the bytes of each entry, in the order of what is due;
            empty if unknown.
        unknown: Why the cost is unknown; None if it is known.
        smaller: For a large index, the columns that could be indexed in less space.
    """

    files: int
    bytes: int
    seconds: float | None
    index_bytes: int | None
    builds: tuple[str, ...] = ()
    sampled_rows: int = 0
    seconds_error: float | None = None
    index_bytes_error: int | None = None
    tasks: int = 1
    table_bytes: int = 0
    columns: tuple[ColumnEstimate, ...] = ()
    entries: tuple[tuple[float, int], ...] = ()
    unknown: str | None = None
    smaller: tuple[SmallerColumn, ...] = ()

    @property
    def size_ratio(self) -> float | None:
        """The size of the index, as a fraction of that of its base files; None if unknown."""
        if self.index_bytes is None or not self.table_bytes:
            return None
        return self.index_bytes / self.table_bytes

    @property
    def is_large(self) -> bool:
        """Whether the index is known to be larger than half of its base files."""
        return self.size_ratio is not None and self.size_ratio > LARGE

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences on a large index, and how it could be smaller; empty for any other."""
        if not self.is_large:
            return ()
        size = f"The index will take {self.size_ratio:.0%} of the space of its base files."
        if self.smaller or not self.columns:
            return size, *(str(each) for each in self.smaller)
        largest = max(self.columns, key=lambda each: each.index_bytes)
        return size, f"Most of it is for {largest.column}: {largest.index_bytes:,} bytes."

    def to_dict(self) -> dict[str, Any]:
        """The form printed as JSON, with the attributes' names, except `entries`."""
        fields = {**asdict(self), "warnings": self.warnings}
        del fields["entries"]
        return fields


def due_with(
    base_files: Iterable[BaseFile],
    requirements: Iterable[Requirement],
    using: str,
    columns: Iterable[ColumnSpec],
) -> list[DueEntry]:
    """The entries of an index type that would be due if these columns were required, too."""
    required = by_index_type(requirements).get(using, ())
    specs = merged([*(spec for each in required for spec in each.columns), *columns])
    return [DueEntry(each, using, specs, {}) for each in base_files]


def estimate(
    due: Sequence[DueEntry],
    records: Iterable[BuildRecord],
    *,
    parallelism: int,
    cores: int,
    sample: Sample,
) -> Estimate:
    """The cost of building `due`.

    Args:
        records: The table's builds, newest first; the newest that built such entries count.
        parallelism: The number of concurrent tasks.
        cores: How many of them run at full speed.
        sample: Rows of the base files, to be indexed if no build tells the cost.
    """
    files = {entry.base_file.path: entry.base_file.size for entry in due}
    plan = Estimate(
        len(due),
        sum(entry.base_file.size for entry in due),
        *(None, None),
        tasks=parallelism,
        table_bytes=sum(files.values()),
    )
    kinds = {_kind(entry): entry for entry in due}
    past = past_costs(kinds, records)
    new = {kind: entry for kind, entry in kinds.items() if kind not in past.costs}
    try:
        costs = {kind: _cost(entry, sample) for kind, entry in new.items()}
        known = _estimated(plan, due, {**past.costs, **costs}, slots=cores if new else parallelism)
        return replace(
            known,
            builds=past.builds,
            sampled_rows=sample.rows if new else 0,
            columns=tuple(each for kind in new for each in _columns(kind, due, sample)),
            smaller=smaller_columns(due, sample) if known.is_large else (),
        )
    except (IndexServiceError, OSError) as error:  # such as an index type without its runtime
        return replace(plan, unknown=str(error))


def _kind(entry: DueEntry) -> Kind:
    return entry.index_type, tuple((column.name, column.fields) for column in entry.columns)


def _cost(entry: DueEntry, sample: Sample) -> Cost:
    groups = indexed_together(entry.index_type, entry.columns)
    return Cost.sum(sample.cost(entry.index_type, group) for group in groups)


def _columns(kind: Kind, due: Sequence[DueEntry], sample: Sample) -> list[ColumnEstimate]:
    """What each column of a kind of entries costs in all of them."""
    entries = [entry for entry in due if _kind(entry) == kind]
    size = sum(entry.base_file.size for entry in entries)
    costs = [
        (group, sample.cost(kind[0], group))
        for group in indexed_together(kind[0], entries[0].columns)
    ]
    return [
        ColumnEstimate(
            kind[0],
            ", ".join(column.name for column in group),
            round(size * cost.seconds.mean, 3),
            round(size * cost.index_bytes.mean),
        )
        for group, cost in costs
    ]


def _estimated(
    plan: Estimate, due: Sequence[DueEntry], costs: Mapping[Kind, Cost], *, slots: int
) -> Estimate:
    sizes = [entry.base_file.size for entry in due]
    each = [costs[_kind(entry)] for entry in due]
    seconds = [size * cost.seconds.mean for size, cost in zip(sizes, each, strict=True)]
    index_bytes = [size * cost.index_bytes.mean for size, cost in zip(sizes, each, strict=True)]
    # Tasks run in parallel, but no base file takes less time than one of its parts.
    parts = part_counts(sizes, slots=slots, least=LEAST_BYTES)
    alone = (time / part for time, part in zip(seconds, parts, strict=True))
    work = sum(seconds)
    wall = max(work / slots, max(alone, default=0.0))
    work_error = _error(sizes, [cost.seconds for cost in each])
    size_error = _error(sizes, [cost.index_bytes for cost in each])
    return replace(
        plan,
        seconds=round(wall, 1),
        index_bytes=round(sum(index_bytes)),
        seconds_error=round(wall * work_error / work, 1) if work_error and work else work_error,
        index_bytes_error=None if size_error is None else round(size_error),
        entries=tuple(
            (round(time, 3), round(size)) for time, size in zip(seconds, index_bytes, strict=True)
        ),
    )


def _error(sizes: Sequence[int], rates: Sequence[Rate]) -> float | None:
    """How far the total of some entries may be off; None if that is unknown of one of them."""
    errors = [rate.error for rate in rates]
    known = [size * error for size, error in zip(sizes, errors, strict=True) if error is not None]
    return sum(known) if len(known) == len(errors) else None
