"""A query's plan: for every file slice, how it will be read, and why."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from operator import is_

import pyarrow as pa

from hudi_index_service.optimizer.expected import Expected, RowEstimate
from hudi_index_service.optimizer.partitions import PartitionValues
from hudi_index_service.optimizer.serving import ServingEntry
from hudi_index_service.predicate.expression import Predicate
from hudi_index_service.table.protocol import FileSlice, Snapshot

COST_RULES = ("cheaper_by_cost", "corrected_by_history")
"""The rules that decline an index that could serve because reading the rows costs too much."""


class Access(Enum):
    """How a file slice is read."""

    INDEX = "index"  #: row ids from entries, then those rows of the base file
    SCAN = "scan"  #: the whole base file, with column pushdown
    MERGE = "merge"  #: base file and log files through the table reader
    SKIP = "skip"  #: not at all: none of its rows can match


@dataclass(frozen=True, slots=True)
class SlicePlan:
    """How one file slice is read.

    Attributes:
        entries: The entries that may be asked; empty unless the access is INDEX.
        reason: Why this access, in one sentence without full stop.
        rule: Name of the rule that decided; "coverage" when none had to.
        values: Partition columns whose value the partition's path tells: Spark takes it from there,
            whatever the slice's files hold.
        expected: What reading it costs; None where nobody asked, or nothing is known.
        unused: The entries that could have been asked, where a rule decided against it.
    """

    file_slice: FileSlice
    access: Access
    entries: tuple[ServingEntry, ...] = ()
    reason: str = ""
    rule: str = "coverage"
    values: Mapping[str, pa.Scalar] = field(default_factory=dict, hash=False)
    expected: Expected | None = None
    unused: tuple[ServingEntry, ...] = ()

    @property
    def total(self) -> int:
        """Rows of the base file, by the entries that it has, or had."""
        return (self.entries or self.unused)[0].rows

    # Made by their fields rather than by `replace`: that takes three times as long, a slice.

    def served(self, entries: tuple[ServingEntry, ...], reason: str) -> "SlicePlan":
        """The same slice with the entries that may be asked."""
        return SlicePlan(self.file_slice, Access.INDEX, entries, reason, self.rule, self.values)

    def costing(self, expected: Expected) -> "SlicePlan":
        """The same slice with what reading it costs."""
        return SlicePlan(
            self.file_slice,
            self.access,
            self.entries,
            self.reason,
            self.rule,
            self.values,
            expected,
            self.unused,
        )

    def declined(self, reason: str, rule: str, expected: Expected | None = None) -> "SlicePlan":
        """The same slice scanned instead of read through the index, for what that costs if that is
        the reason."""
        return self._without_entries(Access.SCAN, reason, rule, expected or self.expected)

    def skipped(self, reason: str, rule: str) -> "SlicePlan":
        """The same slice, not read."""
        return self._without_entries(Access.SKIP, reason, rule, self.expected)

    def by_index_after_all(self, reason: str, rule: str) -> "SlicePlan":
        """A declined slice read through the index all the same."""
        return replace(
            self, access=Access.INDEX, entries=self.unused, unused=(), reason=reason, rule=rule
        )

    def for_counting(self) -> "SlicePlan":
        """The same slice for somebody who wants no rows or few of them: what was declined for the
        cost of reading rows is asked all the same."""
        if self.rule not in COST_RULES or not self.unused:
            return self
        return self.by_index_after_all(self.reason, self.rule)

    def _without_entries(
        self, access: Access, reason: str, rule: str, expected: Expected | None
    ) -> "SlicePlan":
        unused = self.entries or self.unused
        return SlicePlan(self.file_slice, access, (), reason, rule, self.values, expected, unused)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the cost of a query depends on beside the query and the table's files.

    Attributes:
        remote: Whether the base files are in a remote store.
        opened: Paths of the data files of entries that are open already.
        share: Of a base file's bytes that the columns to be read take; None if not known.
    """

    remote: bool = False
    opened: frozenset[str] = frozenset()
    share: float | None = None


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """A plan over one snapshot.

    Attributes:
        predicate: In negation normal form; None for a query without where.
        use_index: What the caller asked for: ``auto``, ``never`` or ``require``.
        switched_off: Whether the table's own kill switch forbids any index.
        partitions: What the paths of partitions tell; None where they are not known.
        needed: The columns that are read; None where that is not known.
        surroundings: What costs depend on besides.
        estimated: Of each slice the rows that match, in the slices' order, where its entries tell;
            empty before a rule has asked.
        narrowed: Of each slice whether its entries narrow the predicate; empty before a rule has
            asked.
        table: The table's base path; "" where that is not known.
        shape: The predicate without its literals, where the history of queries was looked at.
    """

    snapshot: Snapshot
    predicate: Predicate | None
    slices: tuple[SlicePlan, ...]
    use_index: str = "auto"
    switched_off: bool = False
    partitions: PartitionValues | None = None
    needed: pa.Schema | None = None
    surroundings: Surroundings = Surroundings()
    estimated: tuple[RowEstimate | None, ...] = ()
    narrowed: tuple[bool, ...] = ()
    table: str = ""
    shape: str = ""

    def __repr__(self) -> str:
        ways = ", ".join(f"{n} {each.value}" for each in Access if (n := self.count(each)))
        return f"<QueryPlan at {self.snapshot.instant or '(none)'}: {ways or 'no slices'}>"

    def decline_index(
        self,
        reason: str,
        rule: str,
        where: Callable[[SlicePlan], bool] = lambda plan: True,
    ) -> "QueryPlan":
        """The plan with the indexed slices that `where` picks scanned instead."""
        slices = [
            each.declined(reason, rule) if each.access is Access.INDEX and where(each) else each
            for each in self.slices
        ]
        if all(map(is_, slices, self.slices)):
            return self
        return replace(self, slices=tuple(slices))

    @property
    def asks_index(self) -> bool:
        """Whether any slice is to be read through an index."""
        return any(each.access is Access.INDEX for each in self.slices)

    def count(self, access: Access) -> int:
        """How many slices are read this way."""
        return sum(each.access is access for each in self.slices)

    def size(self, *accesses: Access) -> int:
        """Bytes of the base files of slices that are read in one of these ways."""
        return base_file_bytes(each for each in self.slices if each.access in accesses)


def base_file_bytes(slices: Iterable[SlicePlan]) -> int:
    """Bytes of the base files of some slices."""
    base_files = (each.file_slice.base_file for each in slices)
    return sum(each.size for each in base_files if each is not None)
