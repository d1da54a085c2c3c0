"""A query's plan: for every file slice, how it will be read, and why."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

import pyarrow as pa

from hudi_index_service.index.contract import Answer, IndexType, StoredColumn
from hudi_index_service.index.entry import Entry
from hudi_index_service.index.factory import index_type
from hudi_index_service.predicate.expression import Predicate
from hudi_index_service.table.protocol import FileSlice, Snapshot


class Access(Enum):
    """How a file slice is read."""

    INDEX = "index"  #: row ids from entries, then those rows of the base file
    SCAN = "scan"  #: the whole base file, with column pushdown
    MERGE = "merge"  #: base file and log files through the table reader
    SKIP = "skip"  #: not at all: none of its rows can match


@dataclass(frozen=True, slots=True)
class ServingEntry:
    """An entry that may serve a query: with the columns that live definitions still ask for."""

    entry: Entry
    index_type: IndexType
    columns: tuple[StoredColumn, ...]

    def answer(self, leaf: Predicate) -> Answer:
        """How well the entry answers a leaf."""
        return self.index_type.answer(leaf, self.columns)

    def __reduce__(self) -> tuple[object, ...]:
        # To Spark tasks the index type crosses by its name: it is found there by its entry point.
        return _serving_entry, (self.entry, self.index_type.name, self.columns)


def _serving_entry(
    entry: Entry, index_type_name: str, columns: tuple[StoredColumn, ...]
) -> ServingEntry:
    return ServingEntry(entry, index_type(index_type_name), columns)


@dataclass(frozen=True, slots=True)
class SlicePlan:
    """How one file slice is read.

    Attributes:
        entries: The entries that may be asked; empty unless the access is INDEX.
        reason: Why this access, in one sentence without full stop.
        rule: Name of the rule that decided; "coverage" when none had to.
        values: Partition columns whose value the partition's path tells: Spark takes it from there,
            whatever the slice's files hold.
    """

    file_slice: FileSlice
    access: Access
    entries: tuple[ServingEntry, ...] = ()
    reason: str = ""
    rule: str = "coverage"
    values: Mapping[str, pa.Scalar] = field(default_factory=dict, hash=False)

    def declined(self, reason: str, rule: str) -> "SlicePlan":
        """The same slice scanned instead of read through the index."""
        return replace(self, access=Access.SCAN, entries=(), reason=reason, rule=rule)

    def skipped(self, reason: str, rule: str) -> "SlicePlan":
        """The same slice, not read."""
        return replace(self, access=Access.SKIP, entries=(), reason=reason, rule=rule)


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """A plan over one snapshot.

    Attributes:
        predicate: In negation normal form; None for a query without where.
        use_index: What the caller asked for: ``auto``, ``never`` or ``require``.
        switched_off: Whether the table's own kill switch forbids any index.
    """

    snapshot: Snapshot
    predicate: Predicate | None
    slices: tuple[SlicePlan, ...]
    use_index: str = "auto"
    switched_off: bool = False

    def decline_index(
        self,
        reason: str,
        rule: str,
        where: Callable[[SlicePlan], bool] = lambda plan: True,
    ) -> "QueryPlan":
        """The plan with the indexed slices that `where` picks scanned instead."""
        slices = tuple(
            each.declined(reason, rule) if each.access is Access.INDEX and where(each) else each
            for each in self.slices
        )
        return replace(self, slices=slices)

    def count(self, access: Access) -> int:
        """How many slices are read this way."""
        return sum(each.access is access for each in self.slices)
