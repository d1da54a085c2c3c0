"""Estimates the cost of a build: from earlier builds of the table, else from a sample that is built
for real. Of a large index it says how it could be smaller."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from hudi_index_service.build.entry.parts import LEAST_BYTES, part_counts
from hudi_index_service.build.executor import Executor
from hudi_index_service.build.reconcile import DueEntry
from hudi_index_service.build.sample import Columns, Cost, Rate, Sample, indexed_together
from hudi_index_service.errors import (
    ColumnNotIndexable,
    IndexDefinitionInvalid,
    IndexServiceError,
    IndexTypeUnknown,
    NativeModuleMissing,
)
from hudi_index_service.hudi.snapshot import BaseFile
from hudi_index_service.index.contract import ColumnSpec
from hudi_index_service.index.factory import index_type
from hudi_index_service.index.metadata.build_records import BuildRecord
from hudi_index_service.index.metadata.requirements import (
    STORED,
    Requirement,
    by_index_type,
    indexed,
    merged,
)
from hudi_index_service.predicate.comparison import is_string

_RECORDS = 20  # past builds that count
_LARGE = 0.5  # of its base files' size, for an index
_LEAST_SHARE = 0.1  # of the index, for a column that makes it large
_WORTH = 0.8  # a column has to become smaller than this fraction
_BTREE = "btree"

_Kind = tuple[str, tuple[tuple[str, tuple[str, ...]], ...]]
"""Index type, and columns with their fields: entries that share both cost about the same per byte
of base file."""


@dataclass(frozen=True, slots=True)
class SmallerColumn:
    """A column that could be indexed in less space.

    Attributes:
        index_bytes: What it takes now, in the index type `index_type`.
        using, options: Another index type, or options of the same type.
        smaller_bytes: What it would take.
        loses: What the index would no longer answer, in words; "" if nothing.
    """

    column: str
    index_type: str
    index_bytes: int
    using: str
    options: Mapping[str, str]
    smaller_bytes: int
    loses: str

    def __str__(self) -> str:
        options = " and ".join(f"{name}={value}" for name, value in self.options.items())
        how = f"with {options}" if options else f"in an index of type {self.using}"
        loss = f", but would not answer {self.loses}" if self.loses else ""
        return (
            f"{self.column} takes about {self.index_bytes:,} bytes ({self.index_type}); {how} it "
            f"would take about {self.smaller_bytes:,}{loss}."
        )


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
    seconds: float | None = None
    index_bytes: int | None = None
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
        return self.size_ratio is not None and self.size_ratio > _LARGE

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
    due: Sequence[DueEntry], records: Iterable[BuildRecord], *, executor: Executor, sample: Sample
) -> Estimate:
    """The cost of building `due`.

    Args:
        records: The table's builds, newest first; the newest that built such entries count.
        executor: What would run the build.
        sample: Rows of the base files, to be indexed if no build tells the cost.
    """
    files = {entry.base_file.path: entry.base_file.size for entry in due}
    plan = Estimate(
        len(due),
        sum(entry.base_file.size for entry in due),
        tasks=executor.parallelism,
        table_bytes=sum(files.values()),
    )
    costs, builds = _past_costs({_kind(entry) for entry in due}, records)
    new = [entry for entry in due if _kind(entry) not in costs]
    try:
        for entry in new:
            if _kind(entry) not in costs:
                costs[_kind(entry)] = _sampled_cost(entry, sample)
        known = _estimated(plan, due, costs, slots=executor.cores if new else executor.parallelism)
        return replace(
            known,
            builds=builds,
            sampled_rows=sample.rows if new else 0,
            columns=tuple(_columns(new, sample)),
            smaller=_smaller_columns(due, sample) if known.is_large else (),
        )
    except (IndexServiceError, OSError) as error:  # such as an index type without its runtime
        return replace(plan, unknown=str(error))


def _kind(entry: DueEntry) -> _Kind:
    return entry.index_type, tuple((column.name, column.fields) for column in entry.columns)


def _recorded_kind(outcome: Mapping[str, Any]) -> _Kind:
    """The kind of entry of a recorded outcome. Records of older releases have no fields, and equal
    no kind."""
    names, fields = outcome.get("columns") or (), outcome.get("fields") or ()
    columns = tuple((name, tuple(each)) for name, each in zip(names, fields, strict=False))
    return str(outcome.get("index_type")), columns


def _past_costs(
    kinds: set[_Kind], records: Iterable[BuildRecord]
) -> tuple[dict[_Kind, Cost], tuple[str, ...]]:
    """The costs of those kinds of entries that were built before, and the ids of those builds,
    newest first."""
    measured: defaultdict[_Kind, list[tuple[float, float, float]]] = defaultdict(list)
    builds: dict[str, None] = {}
    for record in records:
        if len(builds) == _RECORDS:
            break
        for outcome in record.outcomes:
            kind = _recorded_kind(outcome)
            if outcome.get("status") == "built" and outcome.get("bytes") and kind in kinds:
                measured[kind].append(
                    (outcome["bytes"], outcome["seconds"], outcome["index_bytes"])
                )
                builds[record.id] = None
    return {kind: Cost.of(each) for kind, each in measured.items()}, tuple(builds)


def _sampled_cost(entry: DueEntry, sample: Sample) -> Cost:
    costs = [
        sample.cost(entry.index_type, group)
        for group in indexed_together(entry.index_type, entry.columns)
    ]
    return Cost(
        Rate.sum(each.seconds for each in costs), Rate.sum(each.index_bytes for each in costs)
    )


def _estimated(
    plan: Estimate, due: Sequence[DueEntry], costs: Mapping[_Kind, Cost], *, slots: int
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


def _by_columns(due: Iterable[DueEntry]) -> Mapping[tuple[str, Columns], int]:
    """Index type, and columns that are indexed together → the bytes of their base files."""
    of_entries: defaultdict[tuple[str, Columns], int] = defaultdict(int)
    for entry in due:
        of_entries[entry.index_type, entry.columns] += entry.base_file.size
    base_bytes: defaultdict[tuple[str, Columns], int] = defaultdict(int)
    for (name, columns), size in of_entries.items():
        for group in indexed_together(name, columns):
            base_bytes[name, group] += size
    return base_bytes


def _columns(due: Sequence[DueEntry], sample: Sample) -> Iterator[ColumnEstimate]:
    for (name, columns), base_bytes in _by_columns(due).items():
        cost = sample.cost(name, columns)
        yield ColumnEstimate(
            name,
            ", ".join(column.name for column in columns),
            round(base_bytes * cost.seconds.mean, 3),
            round(base_bytes * cost.index_bytes.mean),
        )


def _smaller_columns(due: Sequence[DueEntry], sample: Sample) -> tuple[SmallerColumn, ...]:
    """The columns that make an index large and could be smaller, the largest saving first.

    Raises what `Sample.cost` raises.
    """
    base_bytes = _by_columns(due)
    sizes = {each: base_bytes[each] * sample.cost(*each).index_bytes.mean for each in base_bytes}
    least = _LEAST_SHARE * sum(sizes.values())
    found = []
    for (name, columns), size in sizes.items():
        if size < least:
            continue
        smaller = []
        for using, spec, options, loses in _alternatives(name, columns):
            try:
                rate = sample.cost(using, (spec,)).index_bytes.mean
            except NativeModuleMissing:
                continue
            own = round(base_bytes[name, columns] * rate)
            smaller.append(SmallerColumn(spec.name, name, round(size), using, options, own, loses))
        best = min(smaller, key=lambda each: each.smaller_bytes, default=None)
        if best is not None and best.smaller_bytes < _WORTH * size:
            found.append(best)
    return tuple(sorted(found, key=lambda each: each.smaller_bytes - each.index_bytes))


def _alternatives(
    name: str, columns: Columns
) -> Iterator[tuple[str, ColumnSpec, Mapping[str, str], str]]:
    """Other index types or options for a column that is indexed by itself, and what they lose.
    Stored values stay stored, except where that is the alternative."""
    own = indexed(columns)
    if len(own) != 1:
        return
    (spec,) = own
    kind, is_stored = index_type(name), own != columns
    stored = (STORED,) if is_stored else ()
    if is_stored:
        yield name, spec, {STORED: "false"}, "queries without the base file"
    option = kind.smaller_options(spec)
    if option is not None:
        fields = kind.fields(spec.name, spec.type, option.options) + stored
        yield name, replace(spec, fields=fields), option.options, option.loses
    if name != _BTREE:
        try:
            fields = index_type(_BTREE).fields(spec.name, spec.type, {}) + stored
        except (ColumnNotIndexable, IndexDefinitionInvalid, IndexTypeUnknown):
            return
        losses = ["patterns that begin with %"] if is_string(spec.type) else []
        if kind.analyzed_text(spec) is not None:
            losses.insert(0, "full-text search")
        yield _BTREE, replace(spec, fields=fields), {}, " and ".join(losses)
