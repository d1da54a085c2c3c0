"""Estimates the rows of a predicate in base files from the statistics in their entries' manifests,
without opening an index.

Bounds come from the number of NULLs and the least and greatest value. The guess comes from the
number of distinct values and, for ranges and prefixes, from the position of the literal between the
least and greatest value.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache

from hudi_index_service.optimizer.estimates.algebra import all_of, any_of
from hudi_index_service.optimizer.estimates.leaves import Estimate, constant_rows, leaf_rows
from hudi_index_service.optimizer.estimates.ranges import range_rows, ranges
from hudi_index_service.optimizer.estimates.values import Values
from hudi_index_service.optimizer.expected import RowEstimate
from hudi_index_service.optimizer.partitions import PartitionValues
from hudi_index_service.optimizer.plan import Access, SlicePlan
from hudi_index_service.optimizer.serving import ServingEntry
from hudi_index_service.predicate.evaluate import with_values
from hudi_index_service.predicate.expression import (
    And,
    Compare,
    Constant,
    Not,
    Operator,
    Or,
    Predicate,
)
from hudi_index_service.predicate.fold import negation_normal_form

_NOTHING = RowEstimate(0, 0, 0)


class ManifestEstimates:
    """Estimates one predicate for many slices. Make it once per query.

    Args:
        predicate: In negation normal form, or a leaf.
        partitions: Values from the paths of the slices' partitions. They only save time if there
            are many partitions, since each slice has its own values.
    """

    def __init__(self, predicate: Predicate, partitions: PartitionValues | None = None) -> None:
        self._predicate = predicate
        self._columns = predicate.columns()
        self._by_partition: dict[str, Predicate] = {}
        self._estimates: dict[int, Estimate] = {id(predicate): _compiled(predicate)}
        names = partitions.table.schema.names if partitions and partitions.table.num_columns else ()
        if partitions is not None and not self._columns.isdisjoint(names):
            self._by_partition.update(partitions.within(predicate))

    def rows(self, plan: SlicePlan) -> RowEstimate | None:
        """The matching rows of a slice; None if it has no entry, so that even its number of rows is
        unknown."""
        if plan.access is Access.SKIP:
            return _NOTHING
        entries = plan.entries or plan.rejected_entries
        if not entries:
            return None
        predicate = self._predicate
        if plan.values and not self._columns.isdisjoint(plan.values):
            predicate = self._in_partition(plan)
        estimate = self._estimates.get(id(predicate))
        if estimate is None:
            estimate = self._estimates[id(predicate)] = _compiled(predicate)
        return estimate(self._statistics(entries), entries[0].rows)

    def _in_partition(self, plan: SlicePlan) -> Predicate:
        """The predicate that remains for the slice; kept so that its id is not reused."""
        partition = plan.file_slice.partition
        predicate = self._by_partition.get(partition)
        if predicate is None:
            predicate = self._by_partition[partition] = with_values(self._predicate, plan.values)
        return predicate

    def _statistics(self, entries: Sequence[ServingEntry]) -> Mapping[str, Values]:
        """The statistics in the entries' manifests; for each column, of the first entry with it."""
        if len(entries) == 1:
            return entries[0].values
        return {
            name: each.values[name]
            for each in reversed(entries)
            for name in self._columns
            if name in each.values
        }


@lru_cache(maxsize=256)
def _estimates(predicate: Predicate) -> ManifestEstimates:
    return ManifestEstimates(predicate)


def estimated_rows(plan: SlicePlan, predicate: Predicate) -> RowEstimate | None:
    """See `ManifestEstimates`, which is faster for many slices.

    Args:
        predicate: In negation normal form, or a leaf.
    """
    return _estimates(predicate).rows(plan)


def _compiled(predicate: Predicate) -> Estimate:
    match predicate:
        case Constant(value):
            return constant_rows(value)
        case Not(Constant(value)):
            return constant_rows(None if value is None else not value)
        case And(operands):
            value_ranges, others = ranges(operands)
            return _all_of([*map(range_rows, value_ranges), *map(_compiled, others)])
        case Or(operands):
            return _any_of([_compiled(each) for each in operands])
        case Not(Compare(operator=operator)) if operator is not Operator.EQ_NULL_SAFE:
            return _compiled(negation_normal_form(predicate))
    value_ranges, _ = ranges((predicate,))
    return range_rows(value_ranges[0]) if value_ranges else leaf_rows(predicate)


def _all_of(parts: list[Estimate]) -> Estimate:
    return lambda statistics, total: all_of([each(statistics, total) for each in parts], total)


def _any_of(parts: list[Estimate]) -> Estimate:
    return lambda statistics, total: any_of([each(statistics, total) for each in parts], total)
