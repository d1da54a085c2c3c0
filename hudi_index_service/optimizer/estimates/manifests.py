"""Estimates the rows of a predicate in base files from the statistics in their entries' manifests,
without opening an index.

Bounds come from the number of NULLs and the least and greatest value. The guess comes from the
number of distinct values and, for ranges and prefixes, from the position of the literal between the
least and greatest value.
"""

from collections.abc import Iterable
from functools import lru_cache, partial

from hudi_index_service.optimizer.estimates.leaves import (
    Estimate,
    Part,
    leaf_rows,
    range_rows,
    ranges,
)
from hudi_index_service.optimizer.expected import RowEstimate, all_of, any_of
from hudi_index_service.optimizer.partitions import PartitionValues
from hudi_index_service.optimizer.plan import Access, SlicePlan
from hudi_index_service.optimizer.serving import values_of
from hudi_index_service.predicate.evaluate import with_values
from hudi_index_service.predicate.expression import Predicate
from hudi_index_service.predicate.fold import fold

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
        self._estimate = _compiled(predicate)
        self._by_partition: dict[str, Estimate] = {}
        if partitions is not None and not self._columns.isdisjoint(partitions.table.schema.names):
            within = partitions.within(predicate)
            estimates = {each: _compiled(each) for each in set(within.values())}
            self._by_partition = {name: estimates[each] for name, each in within.items()}

    def rows(self, plan: SlicePlan) -> RowEstimate | None:
        """The matching rows of a slice; None if it has no entry, so that even its number of rows is
        unknown."""
        if plan.access is Access.SKIP:
            return _NOTHING
        entries = plan.entries or plan.rejected_entries
        if not entries:
            return None
        estimate = self._estimate
        if plan.values and not self._columns.isdisjoint(plan.values):
            estimate = self._in_partition(plan)
        values = entries[0].values if len(entries) == 1 else partial(values_of, entries)
        return estimate(values, entries[0].rows)

    def _in_partition(self, plan: SlicePlan) -> Estimate:
        """Estimates the predicate that remains for the slice."""
        partition = plan.file_slice.partition
        if partition not in self._by_partition:
            remaining = with_values(self._predicate, plan.values)
            self._by_partition[partition] = _compiled(remaining)
        return self._by_partition[partition]


_estimates = lru_cache(maxsize=256)(ManifestEstimates)


def estimated_rows(plan: SlicePlan, predicate: Predicate) -> RowEstimate | None:
    """See `ManifestEstimates`, which is faster for many slices.

    Args:
        predicate: In negation normal form, or a leaf.
    """
    return _estimates(predicate).rows(plan)


def _compiled(predicate: Predicate) -> Estimate:
    return _all_of([fold(predicate, lambda leaf: leaf, _all_of, _any_of)])


def _all_of(parts: Iterable[Part]) -> Estimate:
    value_ranges, others = ranges(parts)
    estimates = [*map(range_rows, value_ranges), *map(_estimate, others)]
    if len(estimates) == 1:
        return estimates[0]
    return lambda statistics, total: all_of([each(statistics, total) for each in estimates], total)


def _any_of(parts: Iterable[Part]) -> Estimate:
    estimates = [_all_of([each]) for each in parts]
    return lambda statistics, total: any_of([each(statistics, total) for each in estimates], total)


def _estimate(part: Part) -> Estimate:
    return part if callable(part) else leaf_rows(part)
