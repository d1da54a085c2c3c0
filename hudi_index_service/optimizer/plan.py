"""A query's plan: how each file slice is read, and why."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import NamedTuple, TypeAlias

import pyarrow as pa

from hudi_index_service.hudi.snapshot import BaseFile, FileSlice, Snapshot
from hudi_index_service.index.metadata.segments.exclusion import LocatedValues
from hudi_index_service.optimizer.expected import Expected
from hudi_index_service.optimizer.partitions import PartitionValues
from hudi_index_service.optimizer.serving import ServingEntry
from hudi_index_service.predicate.expression import In, Predicate

BY_COST, BY_HISTORY = "cheaper_by_cost", "corrected_by_history"
"""The rules that decline a usable index because reading the rows costs too much."""

PATH_RULES = ("contradiction", "partition_pruning")
"""The rules that skip slices by the predicate and the partitions' paths alone."""

NOT_COVERED = "not_covered"
"""The rule that leaves a slice out, rows that may match included, since the query asked for covered
rows alone."""


class Access(Enum):
    """How a file slice is read. Slices with log files that are not merged whole give their log
    rows, too: the merged rows of the record keys in their log files."""

    INDEX = "index"  #: row ids from entries, then those rows of the base file
    SCAN = "scan"  #: the whole base file, with column pushdown
    MERGE = "merge"  #: base file and log files, merged whole by the table reader
    LOGS = "logs"  #: no row of the base file, only log rows
    SKIP = "skip"  #: not at all: none of its rows can match


BY_ENTRY = (Access.INDEX, Access.SKIP, Access.LOGS)
"""How slices are read that entries serve, or exclude."""

OTHERS = (Access.SCAN, Access.MERGE)
"""How all others are."""


class SlicePlan(NamedTuple):
    """How one file slice is read. A tuple, since a query makes some for each file slice: a frozen
    data class takes three times as long.

    Attributes:
        entries: The entries that may be used; empty unless the access is INDEX.
        reason: Why this access was chosen, in one sentence without full stop.
        rule: The name of the rule that decided; "coverage" if none had to.
        values: Partition columns whose value is in the partition's path; Spark takes it from there,
            even if the slice's files hold another.
        expected: The expected cost of reading it; None if not estimated or not known.
        rejected_entries: Usable entries that a rule decided against.
    """

    file_slice: FileSlice
    access: Access
    entries: tuple[ServingEntry, ...] = ()
    reason: str = ""
    rule: str = "coverage"
    values: Mapping[str, pa.Scalar] = {}
    expected: Expected | None = None
    rejected_entries: tuple[ServingEntry, ...] = ()

    @property
    def known_entries(self) -> tuple[ServingEntry, ...]:
        """The entries, or else those that a rule decided against."""
        return self.entries or self.rejected_entries

    @property
    def total(self) -> int:
        """The number of rows of the base file, from its entries or rejected entries."""
        return self.known_entries[0].rows

    @property
    def is_merged_in_part(self) -> bool:
        """Whether only its log rows are merged."""
        return bool(self.file_slice.log_files) and self.access not in (Access.MERGE, Access.SKIP)

    def served(self, entries: tuple[ServingEntry, ...], reason: str) -> "SlicePlan":
        """The same slice with the entries that may be used."""
        return self._replace(access=Access.INDEX, entries=entries, reason=reason)

    def declined(
        self, reason: str, rule: str, expected: Expected | None = None, access: Access = Access.SCAN
    ) -> "SlicePlan":
        """The same slice not read through the index, with the expected cost if cost is the
        reason."""
        return self._replace(
            access=access,
            entries=(),
            reason=reason,
            rule=rule,
            expected=expected or self.expected,
            rejected_entries=self.known_entries,
        )

    def skipped(self, reason: str, rule: str) -> "SlicePlan":
        """The same slice, not read."""
        return self.declined(reason, rule, access=Access.SKIP)

    def without_base_rows(self, reason: str, rule: str) -> "SlicePlan":
        """The same slice without the rows of its base file that no log file touches: none of them
        can match."""
        access = Access.LOGS if self.file_slice.log_files else Access.SKIP
        return self.declined(reason, rule, access=access)

    def for_counting(self) -> "SlicePlan":
        """The same slice for a query that reads few or no rows: an index that was declined for the
        cost of reading rows is used again."""
        if self.rule not in (BY_COST, BY_HISTORY) or not self.rejected_entries:
            return self
        entries = self.rejected_entries
        return self._replace(access=Access.INDEX, entries=entries, rejected_entries=())


Routes: TypeAlias = Callable[[In, str, Sequence[BaseFile]], LocatedValues | None]
"""Tells which of the listed values some base files may hold; None if the facts of the entries of
that index type do not tell."""


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """A plan over one snapshot.

    Attributes:
        predicate: In negation normal form; None for a query without where.
        use_index: The caller's choice: ``auto``, ``never`` or ``require``.
        switched_off: Whether a kill switch of the table forbids any index.
        fast: Whether slices that no entry serves are left out.
        covered_to: The requested time up to which each base file must be served; None for none.
        partitions: Values from the paths of partitions; None if not known.
        needed: The columns that are read; None if not known.
        remote: Whether the base files are in a remote store.
        opened: Paths of the data files of entries that are open already.
        share: The share of a base file's bytes that the columns to be read take; None if unknown.
        table: The table's base path; "" if not known.
        shape: The predicate without its literals; "" unless the query history was read.
        routes: Tells which values of a list the snapshot's base files may hold; None if unknown.
        counted: For slices that are skipped since a count needs only the number of their matching
            rows, that number, by position.
    """

    snapshot: Snapshot
    predicate: Predicate | None
    slices: tuple[SlicePlan, ...]
    use_index: str = "auto"
    switched_off: bool = False
    fast: bool = False
    covered_to: str | None = None
    partitions: PartitionValues | None = None
    needed: pa.Schema | None = None
    remote: bool = False
    opened: AbstractSet[str] = frozenset()
    share: float | None = None
    table: str = ""
    shape: str = ""
    routes: Routes | None = field(default=None, repr=False, compare=False)
    counted: Mapping[int, int] = field(default_factory=dict, repr=False, compare=False)
    _known_left: tuple[tuple[SlicePlan, ...], Sequence[int]] = field(
        default=((), ()), repr=False, compare=False
    )
    """The result of `left` for these slices."""

    def __repr__(self) -> str:
        ways = ", ".join(f"{n} {each.value}" for each in Access if (n := self.count(each)))
        return f"<QueryPlan at {self.snapshot.instant or '(none)'}: {ways or 'no slices'}>"

    def left(self) -> Sequence[int]:
        """The positions of slices that are not skipped."""
        slices, left = self._known_left
        if slices is self.slices:  # looking at ten thousand slices takes a millisecond
            return left
        return left_of(self.slices, range(len(self.slices)))

    def with_slices(self, slices: tuple[SlicePlan, ...], left: Sequence[int]) -> "QueryPlan":
        """The plan with other slices.

        Args:
            left: The positions of those that are not skipped, in order.
        """
        return replace(self, slices=slices, _known_left=(slices, left))

    def with_skipped(self, before: "QueryPlan", left: Sequence[int]) -> "QueryPlan":
        """The plan for all slices of an earlier one, of which this one has those at the positions
        `left`."""
        slices = list(before.slices)
        for number, each in zip(left, self.slices, strict=True):
            slices[number] = each
        return self.with_slices(tuple(slices), left_of(slices, left))

    @property
    def in_paths(self) -> frozenset[str]:
        """The columns whose values are in the partitions' paths, even if base files hold others."""
        return frozenset(self.partitions.table.schema.names if self.partitions else ())

    @property
    def uses_index(self) -> bool:
        """Whether any slice is to be read through an index."""
        return any(each.access is Access.INDEX for each in self.slices)

    def count(self, access: Access) -> int:
        """The number of slices with this access."""
        return sum(each.access is access for each in self.slices)

    @property
    def asks_coverage(self) -> bool:
        """Whether the query asks what indexes cover; see `optimizer/rules.py`."""
        return self.fast or self.covered_to is not None

    @property
    def left_out(self) -> int | None:
        """The number of slices with rows that may match, but are left out; None if the query is to
        have all rows."""
        return sum(each.rule == NOT_COVERED for each in self.slices) if self.fast else None

    def size(self, *accesses: Access) -> int:
        """The bytes of the base files of slices with one of these accesses."""
        return base_file_bytes(each for each in self.slices if each.access in accesses)


def left_of(slices: Sequence[SlicePlan], among: Iterable[int]) -> list[int]:
    """The given positions of slices that are not skipped."""
    skip = Access.SKIP
    return [number for number in among if slices[number].access is not skip]


def base_file_bytes(slices: Iterable[SlicePlan]) -> int:
    """The bytes of the base files of some slices."""
    return sum(each.file_slice.base_file.size for each in slices)
